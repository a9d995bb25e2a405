"""Logins on the wire: who a connection belongs to, before anything else is served on it.

A token may come with the greeting, and then no round trip is lost. Otherwise our greeting tells the
ways to prove oneself, and the newcomer has a few seconds and one try: by SCRAM in two requests, by
a token or a JWT in one. Whoever fails is told why, and the connection is closed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from angarium.errors import AngariumError, DeadlineExceeded, Unauthenticated
from angarium.security.scram import Mechanism
from angarium.security.tls import is_node_context
from angarium.wire import Handlers
from angarium.wire.operations import Operation
from angarium.wire.operations.logins import (
    BEARER,
    NOT_BY_CERTIFICATE,
    AuthenticateAnswer,
    AuthenticateHeader,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from angarium.api.access import Principal
    from angarium.security.authenticating import Authenticator, ScramLogin
    from angarium.security.tls import Certificate
    from angarium.wire import Connection, Request
    from angarium.wire.handlers import RequestHandler

    Attend: TypeAlias = Callable[[Principal, Callable[[AngariumError], None]], Callable[[], None]]

PROOFS: Final = (Mechanism.SHA_256.value, Mechanism.SHA_512.value, BEARER)

LOGIN_S_MAX: Final = 10.0
"""How long somebody may take to prove who they are."""


class Logins:
    """Makes newcomers on the wire port principals."""

    def __init__(
        self,
        authenticator: Authenticator,
        *,
        served: Callable[[Principal], Handlers],
        attend: Attend,
        enter: Callable[[Principal], Callable[[], None]],
    ) -> None:
        """`served` says what a principal may ask; `attend` tells when it is nobody any more.

        `enter` takes a place for a connection, and raises if there is none left.
        """
        self.authenticator = authenticator
        self._served = served
        self._attend = attend
        self._enter = enter

    def welcome(self, connection: Connection, beside: Mapping[int, RequestHandler]) -> Handlers:
        """Return what a newcomer may do: everything of its own, or prove who it is first.

        What is `beside` needs no principal.
        """
        authenticator = self.authenticator
        brought = connection.peer.hello.auth
        principal = authenticator.anonymous
        if principal is None and brought:
            # A JWT that was not seen before takes work: then the way is by a request.
            if brought != NOT_BY_CERTIFICATE:
                principal = authenticator.known(f"Bearer {brought.decode(errors='replace')}")
        elif principal is None:
            principal = authenticator.known(None, _certificate_of(connection))
        if principal is None:
            return Login(self, connection, beside).handlers
        return self.handlers_of(principal, connection).and_requests(beside)

    def handlers_of(self, principal: Principal, connection: Connection) -> Handlers:
        """Return what a principal is served, and see to it that this ends with its proof."""
        handlers = self._served(principal)
        if principal is self.authenticator.anonymous:
            return handlers
        go = self._enter(principal)
        leave = self._attend(principal, connection.fail)

        def closed(*_: object) -> None:
            go()
            leave()

        return replace(handlers, on_closed=closed)


class Login:
    """One newcomer who has still to prove who it is."""

    def __init__(
        self, logins: Logins, connection: Connection, beside: Mapping[int, RequestHandler]
    ) -> None:
        self._logins = logins
        self._connection = connection
        self._scram: ScramLogin | None = None
        self._way = ""
        self._timer: asyncio.TimerHandle = connection.loop.call_later(LOGIN_S_MAX, self._late)
        self.handlers = Handlers(
            requests={**beside, int(Operation.AUTHENTICATE): self._serve},
            on_closed=lambda *_: self._timer.cancel(),
            proofs=PROOFS,
            on_unproven=logins.authenticator.missing,
        )

    async def _serve(self, request: Request) -> None:
        try:
            await self._take(request)
        except AngariumError as error:
            request.fail(error)
            # One try for each connection: the next guess costs a new one.
            self._connection.fail(error)

    async def _take(self, request: Request) -> None:
        header = request.read(AuthenticateHeader)
        if self._way and header.way != self._way:
            raise Unauthenticated("a login is done in one way from its beginning to its end")
        if self._way == BEARER:
            raise Unauthenticated("this login is under way already")
        authenticator, self._way = self._logins.authenticator, header.way
        if header.way == BEARER:
            principal = await authenticator.bearer(_text(header.line))
            self._done(request, b"", principal)
        elif header.way not in PROOFS:
            raise Unauthenticated(f"the ways to prove who one is are {', '.join(PROOFS)}")
        elif self._scram is None:
            way = Mechanism(header.way)
            self._scram = authenticator.scram(way, source=self._connection.source)
            said = self._scram.first(_text(header.line))
            request.answer(AuthenticateAnswer(said.encode(), is_done=False))
        else:
            said, principal = self._scram.final(_text(header.line))
            self._done(request, said.encode(), principal)

    def _done(self, request: Request, line: bytes, principal: Principal) -> None:
        self._timer.cancel()
        if not self._connection.is_open:
            return
        self._connection.admit(self._logins.handlers_of(principal, self._connection))
        request.answer(AuthenticateAnswer(line, is_done=True))

    def _late(self) -> None:
        connection = self._connection
        if connection.is_serving:
            # A node that wants to come in waits for that, and never becomes a principal.
            self._timer = connection.loop.call_later(LOGIN_S_MAX, self._late)
            return
        connection.fail(DeadlineExceeded(f"nobody proved who they are within {LOGIN_S_MAX:g} s"))


def _certificate_of(connection: Connection) -> Certificate | None:
    """Return what a client has shown; one that was checked by the nodes' authorities is none."""
    context = connection.tls_context
    is_clients = context is not None and not is_node_context(context)
    return connection.peer_certificate if is_clients else None


def _text(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise Unauthenticated("what came as proof is no text") from None
