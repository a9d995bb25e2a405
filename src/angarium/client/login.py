"""How a client proves who it is, to each node that it dials.

A password is never sent: the client shows by SCRAM that it knows it, and the node that it does. A
token goes with the greeting. It may be given as a function, which is asked for each connection, so
that a token with a short life is always a fresh one.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from angarium.errors import InvalidArgument, Unauthenticated
from angarium.security.credentials import MISSING
from angarium.security.scram import ClientExchange, Mechanism, ScramRefused, salted_password
from angarium.security.secret import Secret
from angarium.wire.operations import Operation
from angarium.wire.operations.logins import (
    BEARER,
    NOT_BY_CERTIFICATE,
    AuthenticateAnswer,
    AuthenticateHeader,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from angarium.wire import Connection

SecretText: TypeAlias = "str | Secret"
TokenLike: TypeAlias = "str | Secret | Callable[[], str]"

USER_VARIABLE: Final = "ANGARIUM_USER"
PASSWORD_VARIABLE: Final = "ANGARIUM_PASSWORD"  # noqa: S105  (the name of a variable)
TOKEN_VARIABLE: Final = "ANGARIUM_TOKEN"  # noqa: S105

SALTED_MAX: Final = 16
"""Salted passwords kept, so that each connection does not cost the whole work again."""

_MECHANISMS: Final = (Mechanism.SHA_256, Mechanism.SHA_512)
"""In the order in which they are taken; both are good, the first is quicker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginOptions:
    """A login as a value: it can be compared, sent to another process, and printed without harm."""

    user: str = ""
    password: Secret = field(default=Secret(""))
    token: Secret = field(default=Secret(""))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> LoginOptions:
        """Return what the environment has: a token before a name and a password."""
        found = os.environ if environment is None else environment
        if token := found.get(TOKEN_VARIABLE):
            return cls(token=Secret(token))
        if user := found.get(USER_VARIABLE):
            return cls(user=user, password=Secret(found.get(PASSWORD_VARIABLE, "")))
        return cls()

    def as_environment(self) -> dict[str, str]:
        """Return the variables that say the same."""
        pairs = {
            USER_VARIABLE: self.user,
            PASSWORD_VARIABLE: self.password.reveal(),
            TOKEN_VARIABLE: self.token.reveal(),
        }
        return {name: text for name, text in pairs.items() if text}

    def login(self) -> Login:
        """Return what proves it; raises `InvalidArgument` for half a login."""
        return Login(
            user=self.user or None, password=self.password or None, token=self.token or None
        )


NO_LOGIN: Final = LoginOptions()


def has_login(environment: Mapping[str, str]) -> bool:
    """Tell whether an environment says who to be."""
    return bool(environment.get(TOKEN_VARIABLE) or environment.get(USER_VARIABLE))


class Login:
    """What a client has to show; nothing of it is printed."""

    def __init__(
        self,
        *,
        user: str | None = None,
        password: SecretText | None = None,
        token: TokenLike | None = None,
    ) -> None:
        """Give a token, or a name and a password, or nothing at all."""
        if token is not None and (user is not None or password is not None):
            raise InvalidArgument("give a token, or a user and a password, but not both")
        if (user is None) != (password is None):
            there = "a user without a password" if password is None else "a password without a user"
            raise InvalidArgument(f"{there}: give both, or a token")
        self._user = user
        self._password = _secret(password)
        self._token = token if callable(token) else _secret(token)
        self._is_nobody = False
        self._salted: dict[tuple[Mechanism, bytes, int], bytes] = {}

    @classmethod
    def of(
        cls,
        *,
        user: str | None = None,
        password: SecretText | None = None,
        token: TokenLike | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> Login:
        """Return the login that is given, or the one that the environment has.

        A password may come from the environment for a user that is given.
        """
        if user is None and password is None and token is None:
            token = environment.get(TOKEN_VARIABLE) or None
            if token is None:
                user = environment.get(USER_VARIABLE) or None
        if user is not None and password is None:
            password = environment.get(PASSWORD_VARIABLE)
        return cls(user=user, password=password, token=token)

    @classmethod
    def nobody(cls) -> Login:
        """Return a login without a proof, which a certificate that is shown is not either."""
        made = cls()
        made._is_nobody = True
        return made

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return self._user is None and self._token is None

    def __repr__(self) -> str:
        how = f"user={self._user!r}" if self._user is not None else ""
        return f"Login({how or ('token' if self._token is not None else 'none')})"

    def greeting(self) -> bytes:
        """Return what goes with the greeting: a token, if there is one; else whether a certificate
        that is shown says who this is."""
        if self._token is not None:
            return self._token_text().encode(errors="replace")
        return NOT_BY_CERTIFICATE if self._user is not None or self._is_nobody else b""

    async def prove(self, connection: Connection, *, timeout_s: float) -> None:
        """Prove who we are if the node wants to know; raises `Unauthenticated`."""
        wanted = connection.peer.hello.auth.decode(errors="replace").split()
        if not wanted:
            return
        asked = _Asking(connection, timeout_s)
        if self._token is not None and BEARER in wanted:
            await asked.line(BEARER, self._token_text())
            return
        mechanism = next((one for one in _MECHANISMS if one in wanted), None)
        if self._user is None or self._password is None:
            raise Unauthenticated(MISSING)
        if mechanism is None:
            raise Unauthenticated(f"the node knows none of our ways, only {', '.join(wanted)}")
        try:
            await self._prove_password(asked, mechanism, self._user, self._password)
        except ScramRefused as error:
            raise Unauthenticated(f"the login with {connection.address} failed: {error}") from None

    async def _prove_password(
        self, asked: _Asking, mechanism: Mechanism, user: str, password: Secret
    ) -> None:
        exchange = ClientExchange(user, mechanism)
        challenge = await asked.line(mechanism, exchange.first())
        salt, iterations = exchange.challenge(challenge)
        salted = self._salted.get((mechanism, salt, iterations))
        if salted is None:
            salted = await asyncio.to_thread(
                salted_password,
                password.reveal(),
                mechanism,
                salt=salt,
                iterations=iterations,
            )
            if len(self._salted) >= SALTED_MAX:
                self._salted.clear()
            self._salted[mechanism, salt, iterations] = salted
        exchange.check(await asked.line(mechanism, exchange.final(challenge, salted)))

    def _token_text(self) -> str:
        token = self._token
        assert token is not None
        return token.reveal() if isinstance(token, Secret) else token()


class _Asking:
    """One login on one connection."""

    def __init__(self, connection: Connection, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s

    async def line(self, way: str, line: str) -> str:
        """Send a line and return the node's."""
        header = AuthenticateHeader(way, line.encode(errors="replace"))
        frame = await self._connection.request(
            int(Operation.AUTHENTICATE), header, timeout_s=self._timeout_s
        )
        return frame.read(AuthenticateAnswer).line.decode(errors="replace")


def _secret(text: SecretText | None) -> Secret | None:
    return Secret(text) if isinstance(text, str) else text
