"""Who somebody is: the one place where a proof becomes a `Principal`.

Every refusal is `Unauthenticated`, in the same words whether the name is unknown, locked, or the
password wrong. Guesses are slowed (`slowing`), expensive checks run in few threads (`users`), and
what was found out is remembered until the account changes.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import TYPE_CHECKING, Final

from angarium.api.access import Principal, Proof
from angarium.errors import LimitExceeded, Unauthenticated
from angarium.ids import Micros
from angarium.security.credentials import MISSING, Bearer, Password, credentials_in
from angarium.security.jwt import JwtRefused
from angarium.security.scram import Mechanism, ScramRefused, ServerExchange, Verifier
from angarium.security.slowing import Slowing, source_of
from angarium.security.tokens import is_token, token_digest
from angarium.security.users import PasswordChecks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.security.accounts import Accounts
    from angarium.security.credentials import Credentials
    from angarium.security.jwt import JwtIssuer
    from angarium.security.jwt_keys import IssuerKeys

REMEMBERED_MAX: Final = 4_096
"""JWTs whose signature is not checked again. At the bound the oldest is forgotten."""

WAITING_PER_SOURCE_MAX: Final = 8
"""Password checks that one source may have waiting, so that it cannot take every turn."""

WRONG: Final = "the name or the password is wrong"


class Authenticator:
    """Makes principals out of proofs, for all doors of a node."""

    def __init__(
        self,
        accounts: Accounts,
        *,
        anonymous: Principal | None,
        issuers: Sequence[JwtIssuer] = (),
        slowing: Slowing | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """`anonymous` is who brings no proof; None if one is required."""
        self.anonymous = anonymous
        self._accounts = accounts
        self._issuers = tuple(issuers)
        self._slowing = slowing or Slowing()
        self._wall_clock = wall_clock
        self._passwords = PasswordChecks(self._hash_of)
        self._waiting: dict[str, int] = {}
        self._jwts: dict[bytes, tuple[Principal, IssuerKeys, object]] = {}
        """Those whose signature is right; by which edition of whose keys."""
        self._key = secrets.token_bytes(32)

    # --- what doors call ----------------------------------------------------------------------

    def known(self, header: str | None) -> Principal | None:
        """Return at once who an `Authorization` header stands for, if no work is needed; else None.

        With authentication off everybody is the same, whatever they bring.
        """
        if self.anonymous is not None:
            return self.anonymous
        if header is None:
            return None
        try:
            brought = credentials_in(header)
        except Unauthenticated:
            return None
        if isinstance(brought, Password):
            is_right = self._passwords.remembered(brought.name, brought.password.reveal())
            return self._user(brought.name) if is_right else None
        text = brought.text.reveal()
        if is_token(text):
            return self._token(text)
        return self._known_jwt(text)

    async def header(self, header: str | None, *, source: str) -> Principal:
        """Return who an `Authorization` header stands for; raises `Unauthenticated`."""
        if self.anonymous is not None:
            return self.anonymous
        if header is None:
            raise Unauthenticated(MISSING)
        return await self.credentials(credentials_in(header), source=source)

    async def credentials(self, brought: Credentials, *, source: str) -> Principal:
        """Return who these credentials stand for; raises `Unauthenticated`."""
        match brought:
            case Password():
                return await self.password(brought.name, brought.password.reveal(), source=source)
            case Bearer():
                return await self.bearer(brought.text.reveal())

    async def password(self, name: str, password: str, *, source: str) -> Principal:
        """Return the user with this password."""
        slowing = self._slowing
        if self._passwords.remembered(name, password):
            # It was right a moment ago. Slowing it would keep somebody out who is in already.
            return self.let_in(name)
        slowing.check(source, name, is_costly=True)
        where = source_of(source)
        waiting = self._waiting.get(where, 0)
        if waiting >= WAITING_PER_SOURCE_MAX:
            raise LimitExceeded("password_checks_max", "too many of your passwords are in check")
        self._waiting[where] = waiting + 1
        try:
            is_right = await self._passwords.knows(
                name, password, before=lambda: slowing.check(source, name, is_costly=True)
            )
        finally:
            self._waiting[where] -= 1
            if not self._waiting[where]:
                del self._waiting[where]
        if not is_right:
            slowing.failed(source, name)
            raise Unauthenticated(WRONG)
        slowing.succeeded(source, name)
        return self.let_in(name)

    def scram(self, mechanism: Mechanism, *, source: str) -> ScramLogin:
        """Return the node's side of a login by SCRAM."""
        return ScramLogin(self, mechanism, source=source)

    async def bearer(self, text: str) -> Principal:
        """Return who a token or a JWT stands for."""
        if is_token(text):
            found = self._token(text)
            if found is None:
                # Not slowed: nobody guesses 256 bits, and a fleet with an old token is no attack.
                raise Unauthenticated("the token is unknown, has expired, or was revoked")
            return found
        return self._known_jwt(text) or await self._jwt(text)

    def certificate(self, name: str, *, until: Micros | None = None) -> Principal:
        """Return the user that a verified client certificate names."""
        account = self._accounts.find_user(name)
        if account is None or account.is_locked:
            raise Unauthenticated("the certificate names nobody who has an account here")
        return Principal(name=name, proof=Proof.CERTIFICATE, until=until, since=account.created_at)

    # --- for a login --------------------------------------------------------------------------

    def verifier(self, name: str, mechanism: Mechanism) -> Verifier:
        """Return what checks the proof of `name`; for who has no account, what nothing passes."""
        account = self._accounts.find_user(name)
        for known in account.verifiers if account is not None and not account.is_locked else ():
            if known.mechanism is mechanism:
                return known
        return Verifier.decoy(name, mechanism, key=self._key)

    @property
    def slowing(self) -> Slowing:
        """What failed logins have to wait for."""
        return self._slowing

    def let_in(self, name: str) -> Principal:
        """Return the user of that name, who has proven it; raises `Unauthenticated`."""
        found = self._user(name)
        if found is None:
            raise Unauthenticated(WRONG)
        return found

    def _user(self, name: str) -> Principal | None:
        account = self._accounts.find_user(name)
        if account is None or account.is_locked:
            return None
        return Principal(name=account.name, proof=Proof.PASSWORD, since=account.created_at)

    def _hash_of(self, name: str) -> str | None:
        account = self._accounts.find_user(name)
        return None if account is None or account.is_locked else account.password_hash or None

    def _token(self, text: str) -> Principal | None:
        found = self._accounts.find_token(token_digest(text))
        if found is None or (found.until is not None and found.until <= self._now()):
            return None
        owner = self._accounts.find_user(found.owner)
        if owner is None or owner.is_locked:
            return None
        return Principal(
            name=owner.name,
            proof=Proof.TOKEN,
            until=found.until,
            token=found.name,
            since=found.created_at,
        )

    # --- JWTs ---------------------------------------------------------------------------------

    def _known_jwt(self, text: str) -> Principal | None:
        remembered = self._jwts.get(self._digest(text)) if self._jwts else None
        if remembered is None:
            return None
        found, keys, edition = remembered
        if found.until is not None and found.until <= self._now():
            return None
        # An issuer that takes a key back wants nothing believed that it has signed.
        return found if keys.edition is edition else None

    async def _jwt(self, text: str) -> Principal:
        if not self._issuers:
            raise Unauthenticated("the token is unknown, has expired, or was revoked")
        refused = ""
        for issuer in self._issuers:
            try:
                claimed = await issuer.claims(text)
                edition = issuer.keys.edition  # nothing is awaited between a check and this
            except JwtRefused as error:
                refused = str(error)
                continue
            principal = Principal(
                name=claimed.name,
                roles=tuple(sorted(claimed.roles)),
                proof=Proof.JWT,
                until=Micros(int(claimed.until_s * 1_000_000)),
            )
            if len(self._jwts) >= REMEMBERED_MAX:
                del self._jwts[next(iter(self._jwts))]
            self._jwts[self._digest(text)] = (principal, issuer.keys, edition)
            return principal
        # Not slowed, for the same reason as a token: what is wrong with it is no guess.
        raise Unauthenticated(f"the JWT proves nothing here: {refused}")

    def _digest(self, text: str) -> bytes:
        octets = text.encode(errors="surrogatepass")
        return hashlib.blake2b(octets, key=self._key, digest_size=32).digest()

    def _now(self) -> int:
        return int(self._wall_clock() * 1_000_000)


class ScramLogin:
    """One login by SCRAM: `first`, then `final`, which says who it was."""

    def __init__(self, authenticator: Authenticator, mechanism: Mechanism, *, source: str) -> None:
        self._authenticator = authenticator
        self._source = source
        self._exchange = ServerExchange(
            mechanism, lambda name: authenticator.verifier(name, mechanism)
        )

    def first(self, line: str) -> str:
        """Take the client's first line and return the node's; raises `Unauthenticated`."""
        try:
            answer = self._exchange.first(line)
        except ScramRefused as error:
            raise Unauthenticated(f"the login makes no sense: {error}") from None
        self._authenticator.slowing.check(self._source, self._exchange.name)
        return answer

    def final(self, line: str) -> tuple[str, Principal]:
        """Take the client's proof; return the node's own, and who is there."""
        name, slowing = self._exchange.name, self._authenticator.slowing
        # Again, and without a pause between asking and counting: a thousand logins that were begun
        # together are as many guesses.
        slowing.check(self._source, name)
        try:
            answer = self._exchange.final(line)
        except ScramRefused:
            slowing.failed(self._source, name)
            raise Unauthenticated(WRONG) from None
        slowing.succeeded(self._source, name)
        return answer, self._authenticator.let_in(name)
