"""Who calls a door, and what is made for them: one face for each principal.

A door has no broker of its own. It has `Callers`, and gets from them what serves one principal:
a broker that asks in that principal's name, and what the door keeps beside it (an intake, so that
no record travels in another principal's batch). With authentication off there is one face, for
everybody, and nothing is looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

from angarium.api.access import ANONYMOUS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from angarium.api.access import Principal
    from angarium.security.authenticating import Authenticator

BrokerT = TypeVar("BrokerT")
FaceT = TypeVar("FaceT")

FACES_MAX: Final = 1_024
"""Principals whose faces a door keeps. At the bound the oldest is made anew when it comes again."""


class Callers(Generic[BrokerT]):
    """Those who may come in by the doors of a node, and the brokers that ask for them."""

    def __init__(
        self, authenticator: Authenticator | None, broker_for: Callable[[Principal], BrokerT]
    ) -> None:
        """Without an authenticator everybody is anonymous."""
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

    def known(self, header: str | None) -> Principal | None:
        """Return at once who calls with this `Authorization`, if no work is needed for that."""
        if self._authenticator is None:
            return ANONYMOUS
        return self._authenticator.known(header)

    async def principal(self, header: str | None, *, source: str) -> Principal:
        """Return who calls with this `Authorization`; raises `Unauthenticated`."""
        if self._authenticator is None:
            return ANONYMOUS
        return await self._authenticator.header(header, source=source)


class Faces(Generic[BrokerT, FaceT]):
    """What one door has made for each principal."""

    def __init__(self, callers: Callers[BrokerT], make: Callable[[BrokerT], FaceT]) -> None:
        self.callers = callers
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

    def known(self, header: str | None) -> FaceT | None:
        """Return at once what serves who calls with this `Authorization`, if it is known who."""
        if self.everybodys is not None:
            return self.everybodys
        principal = self.callers.known(header)
        return None if principal is None else self.of(principal)

    async def found(self, header: str | None, *, source: str) -> FaceT:
        """Return what serves who calls with this `Authorization`; raises `Unauthenticated`."""
        if self.everybodys is not None:
            return self.everybodys
        return self.of(await self.callers.principal(header, source=source))

    def all(self) -> Iterable[FaceT]:
        """Return every face there is."""
        return self._faces.values()
