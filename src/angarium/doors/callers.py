"""Who calls a door, and what is made for them: one face for each principal.

A door has no broker of its own. It has `Callers`, and gets from them what serves one principal:
a broker that asks in that principal's name, and what the door keeps beside it (an intake, so that
no record travels in another principal's batch). With authentication off there is one face, for
everybody, and nothing is looked at.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from angarium.api.access import ANONYMOUS
from angarium.errors import Unauthenticated
from angarium.security.credentials import MISSING
from angarium.security.origin import ORIGIN, Origin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from angarium.api.access import Principal
    from angarium.security.authenticating import Authenticator
    from angarium.security.tls import Certificate

BrokerT = TypeVar("BrokerT")
FaceT = TypeVar("FaceT")

FACES_MAX: Final = 1_024
"""Principals whose faces a door keeps. At the bound the oldest is made anew when it comes again."""


class Toll(Protocol):
    """Counts the requests of somebody who may make only so many."""

    def begin_request(self) -> float:
        """Count a request, and return for how many seconds it has to wait; raises
        `QuotaExceeded`."""
        ...

    async def admit_request(self) -> None:
        """Count a request, and wait until it may go; raises `QuotaExceeded`."""
        ...

    def take_request(self) -> float:
        """Count a request, and return for how long nothing more is to be taken from the other side;
        raises `QuotaExceeded`."""
        ...

    def read(self, size: int) -> None:
        """Count bytes that are handed out besides those that the broker has counted."""
        ...


class Counted(Protocol):
    """Somebody whose requests and streams may be counted; that can change at any time."""

    @property
    def toll(self) -> Toll | None:
        """What counts requests; None for who may make as many as it likes."""
        ...

    def enter(self) -> Callable[[], None]:
        """Take a place for something that stays open, until the returned callable is called;
        raises `QuotaExceeded`."""
        ...


class Uncounted:
    """Everybody, where nobody counts."""

    toll = None

    def enter(self) -> Callable[[], None]:
        """There is room."""
        return _leave_nothing


UNCOUNTED: Final = Uncounted()


def counted_of(broker: object) -> Counted:
    """Return who counts what is asked of a broker."""
    found: Counted | None = getattr(broker, "counted", None)
    return UNCOUNTED if found is None else found


@contextmanager
def presence_of(counted: Counted) -> Iterator[None]:
    """Take a place as long as something is open; raises `QuotaExceeded`."""
    leave = counted.enter()
    try:
        yield
    finally:
        leave()


def _leave_nothing() -> None:
    pass


class Sourced(Protocol):
    """A call that knows where it comes from."""

    @property
    def source(self) -> str:
        """The other side's host."""


class Callers(Generic[BrokerT]):
    """Those who may come in by the doors of a node, and the brokers that ask for them."""

    def __init__(
        self,
        authenticator: Authenticator | None,
        broker_for: Callable[[Principal], BrokerT],
        *,
        are_traced: bool = False,
    ) -> None:
        """Without an authenticator everybody is anonymous. `are_traced`: somebody wants to know
        where each call comes from (`security.origin`)."""
        self.are_traced = are_traced
        self._authenticator = authenticator
        self.broker_for = broker_for

    @classmethod
    def everybody(cls, broker: BrokerT) -> Callers[BrokerT]:
        """Return callers of whom nothing is known, served by one broker."""
        return cls(None, lambda _: broker)

    @property
    def anonymous(self) -> Principal | None:
        """Who calls without a proof; None: nobody may."""
        return ANONYMOUS if self._authenticator is None else self._authenticator.anonymous

    def known(self, header: str | None, certificate: Certificate | None = None) -> Principal | None:
        """Return at once who calls with this `Authorization`, if no work is needed for that; who
        calls without one is who the verified `certificate` names."""
        if self._authenticator is None:
            return ANONYMOUS
        return self._authenticator.known(header, certificate)

    async def principal(
        self, header: str | None, *, source: str, certificate: Certificate | None = None
    ) -> Principal:
        """Return who calls with this `Authorization`, or certificate; raises `Unauthenticated`."""
        if self._authenticator is None:
            return ANONYMOUS
        return await self._authenticator.header(header, source=source, certificate=certificate)

    def missing(self) -> Unauthenticated:
        """Return the refusal of who asks for something and brings no proof, and have it told."""
        known = self._authenticator
        return Unauthenticated(MISSING) if known is None else known.missing()


class Faces(Generic[BrokerT, FaceT]):
    """What one door has made for each principal."""

    def __init__(
        self, callers: Callers[BrokerT], make: Callable[[BrokerT], FaceT], *, door: str = ""
    ) -> None:
        """Prepare; `door` is what the door is called, for those who ask where a call came from."""
        self.callers = callers
        self._door = door if callers.are_traced else ""
        self._make = make
        self._faces: dict[Principal, FaceT] = {}
        anonymous = callers.anonymous
        self.everybodys = None if anonymous is None else self.of(anonymous)
        """What serves everybody while authentication is off; None while it is required."""

    def of(self, principal: Principal) -> FaceT:
        """Return what serves a principal."""
        face = self._faces.get(principal)
        if face is None:
            if len(self._faces) >= FACES_MAX:
                del self._faces[next(iter(self._faces))]
            face = self._faces[principal] = self._make(self.callers.broker_for(principal))
        return face

    def known(
        self,
        header: str | None,
        call: Sourced | None = None,
        *,
        certificate: Certificate | None = None,
    ) -> FaceT | None:
        """Return at once what serves who calls with this `Authorization`, or without one with this
        certificate, if it is known who."""
        if self.everybodys is not None:
            return self.everybodys
        if self._door and call is not None:
            ORIGIN.set(Origin(self._door, call.source))
        principal = self.callers.known(header, certificate)
        return None if principal is None else self.of(principal)

    async def found(
        self, header: str | None, *, source: str, certificate: Certificate | None = None
    ) -> FaceT:
        """Return what serves who calls with this `Authorization`, or certificate; raises
        `Unauthenticated`."""
        if self.everybodys is not None:
            return self.everybodys
        if self._door:
            ORIGIN.set(Origin(self._door, source))
        who = await self.callers.principal(header, source=source, certificate=certificate)
        return self.of(who)

    def missing(self, source: str) -> Unauthenticated:
        """Return the refusal of who brings no proof, and have it told."""
        if self._door:
            ORIGIN.set(Origin(self._door, source))
        return self.callers.missing()

    def all(self) -> Iterable[FaceT]:
        """Return every face there is."""
        return self._faces.values()
