"""Who somebody is: the one place where a proof becomes a `Principal`.

Every refusal is `Unauthenticated`, in the same words whether the name is unknown, locked, or the
password wrong. Guesses are slowed (`slowing`), expensive checks run in few threads (`users`), and
what was found out is remembered until the account changes.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from angarium.api.access import Principal, Proof
from angarium.errors import LimitExceeded, Unauthenticated
from angarium.ids import Micros
from angarium.security.credentials import MISSING, Bearer, Password, credentials_in
from angarium.security.jwt import JwtRefused
from angarium.security.principals import PasswordPrincipal, edition_of
from angarium.security.scram import Mechanism, ScramRefused, ServerExchange, Verifier
from angarium.security.slowing import Slowing, source_of
from angarium.security.tokens import is_token, token_digest
from angarium.security.users import PasswordChecks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from angarium.security.accounts import Accounts
    from angarium.security.certificate_users import CertificateUsers
    from angarium.security.credentials import Credentials
    from angarium.security.jwt import JwtIssuer
    from angarium.security.jwt_keys import IssuerKeys
    from angarium.security.tls import Certificate

REMEMBERED_MAX: Final = 4_096
"""JWTs whose signature is not checked again. At the bound the oldest is forgotten."""

WAITING_PER_SOURCE_MAX: Final = 8
"""Password checks that one source may have waiting, so that it cannot take every turn."""

WRONG: Final = "the name or the password is wrong"

NOBODYS_CERTIFICATE: Final = (
    "the certificate that was shown has expired, or names nobody who has an account here"
)


class Authenticator:
    """Makes principals out of proofs, for all doors of a node."""

    def __init__(
        self,
        accounts: Accounts,
        *,
        anonymous: Principal | None,
        issuers: Sequence[JwtIssuer] = (),
        certificates: CertificateUsers | None = None,
        slowing: Slowing | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """`anonymous` is who brings no proof; None if one is required. `certificates` finds the
        users in clients' certificates; None: those are no proof."""
        self.anonymous = anonymous
        self._accounts = accounts
        self._issuers = tuple(issuers)
        self._certificates = certificates
        self._slowing = slowing or Slowing()
        self._wall_clock = wall_clock
        self._passwords = PasswordChecks(self._hash_of)
        self._waiting: dict[str, int] = {}
        self._jwts: dict[bytes, tuple[Principal, IssuerKeys, object]] = {}
        """Those whose signature is right; by which edition of whose keys."""
        self._key = secrets.token_bytes(32)
        self.on_failure: Callable[[str, Proof, str], None] | None = None
        """Told of each that could not prove who it is: the name, if a user has it, else nothing;
        the way, and why."""

    # --- what doors call ----------------------------------------------------------------------

    def known(self, header: str | None, certificate: Certificate | None = None) -> Principal | None:
        """Return at once who an `Authorization` header stands for, if no work is needed; else None.

        Without a header it is who the `certificate` names that was shown and verified. With
        authentication off everybody is the same, whatever they bring.
        """
        if self.anonymous is not None:
            return self.anonymous
        if header is None:
            return None if certificate is None else self._certified(certificate)
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

    async def header(
        self, header: str | None, *, source: str, certificate: Certificate | None = None
    ) -> Principal:
        """Return who an `Authorization` header stands for, or without one who the certificate
        names; raises `Unauthenticated`."""
        if self.anonymous is not None:
            return self.anonymous
        with self.telling("", Proof.NONE):
            if header is None:
                found = None if certificate is None else self._certified(certificate)
                if found is not None:
                    return found
                is_counted = certificate is not None and self._certificates is not None
                raise Unauthenticated(NOBODYS_CERTIFICATE if is_counted else MISSING)
            brought = credentials_in(header)
        return await self.credentials(brought, source=source)

    def missing(self) -> Unauthenticated:
        """Tell of somebody who asks for something and brings no proof; return the refusal."""
        error = Unauthenticated(MISSING)
        if self.on_failure is not None:
            self.on_failure("", Proof.NONE, MISSING)
        return error

    async def credentials(self, brought: Credentials, *, source: str) -> Principal:
        """Return who these credentials stand for; raises `Unauthenticated`."""
        match brought:
            case Password():
                return await self.password(brought.name, brought.password.reveal(), source=source)
            case Bearer():
                return await self.bearer(brought.text.reveal())

    async def password(self, name: str, password: str, *, source: str) -> Principal:
        """Return the user with this password."""
        with self.telling(name, Proof.PASSWORD):
            return await self._by_password(name, password, source=source)

    async def _by_password(self, name: str, password: str, *, source: str) -> Principal:
        slowing = self._slowing
        if self._passwords.remembered(name, password):
            # It was right a moment ago. Slowing it would keep somebody out who is in already.
            return self.let_in(name, self.edition(name))
        edition = self.edition(name)
        if self._passwords.is_checking(name, password):
            # Who begins with many requests at once is no guesser: it is one try.
            if not await self._passwords.knows(name, password):
                raise Unauthenticated(WRONG)
            return self.let_in(name, edition)
        slowing.draw(source, name, is_costly=True)
        if not await self._checked(name, password, source):
            self.failed(source, name)
            raise Unauthenticated(WRONG)
        slowing.succeeded(source, name)
        return self.let_in(name, edition)

    async def _checked(self, name: str, password: str, source: str) -> bool:
        """Have a password checked, when it is its turn."""
        where = source_of(source)
        waiting = self._waiting.get(where, 0)
        if waiting >= WAITING_PER_SOURCE_MAX:
            raise LimitExceeded("password_checks_max", "too many of your passwords are in check")
        self._waiting[where] = waiting + 1
        try:
            return await self._passwords.knows(
                name, password, before=lambda: self._slowing.check(source, name)
            )
        finally:
            self._waiting[where] -= 1
            if not self._waiting[where]:
                del self._waiting[where]

    def scram(self, mechanism: Mechanism, *, source: str) -> ScramLogin:
        """Return the node's side of a login by SCRAM."""
        return ScramLogin(self, mechanism, source=source)

    async def bearer(self, text: str) -> Principal:
        """Return who a token or a JWT stands for."""
        if is_token(text):
            found = self._token(text)
            if found is None:
                # Not slowed: nobody guesses 256 bits, and a fleet with an old token is no attack.
                with self.telling("", Proof.TOKEN):
                    raise Unauthenticated("the token is unknown, has expired, or was revoked")
            return found
        with self.telling("", Proof.JWT):
            return self._known_jwt(text) or await self._jwt(text)

    def _certified(self, certificate: Certificate) -> Principal | None:
        """Return the user that a verified certificate names, for as long as it lasts."""
        if self._certificates is None:
            return None
        name = self._certificates.user_in(certificate)
        until = Micros(int(certificate.expires_at * 1_000_000))
        if name is None or until <= self._now():
            return None
        account = self._accounts.find_user(name)
        if account is None or account.is_locked:
            return None
        return Principal(
            name=account.name, proof=Proof.CERTIFICATE, until=until, since=account.created_at
        )

    # --- for a login --------------------------------------------------------------------------

    @contextmanager
    def telling(self, name: str, proof: Proof) -> Iterator[None]:
        """Tell of a login that fails within."""
        try:
            yield
        except (Unauthenticated, LimitExceeded) as error:
            if self.on_failure is not None:
                # A name that is none may be a password in the wrong field.
                is_known = bool(name) and self._accounts.find_user(name) is not None
                # Of one that came too early not how long it has to wait: it is one kind of failure.
                why = str(error)
                if isinstance(error, LimitExceeded):
                    why = f"not checked: {error.limit}"
                self.on_failure(name if is_known else "", proof, why)
            raise

    def verifier(self, name: str, mechanism: Mechanism) -> Verifier:
        """Return what checks the proof of `name`; for who has no account, what nothing passes."""
        account = self._accounts.find_user(name)
        verifiers = () if account is None else account.verifiers
        known = next((one for one in verifiers if one.mechanism is mechanism), None)
        if account is None or known is None:
            # Of the cluster, so that neither another node nor a restart gives another salt.
            key = self._accounts.decoy_key or self._key
            return Verifier.decoy(name, mechanism, key=key)
        # Whoever is locked out is asked for the same as before: the lock shows to nobody.
        return known.unprovable() if account.is_locked else known

    @property
    def slowing(self) -> Slowing:
        """What failed logins have to wait for."""
        return self._slowing

    def failed(self, source: str, name: str) -> None:
        """Note a wrong password, which slows the next ones.

        While nobody has an account nobody can guess one; but whoever is to be the first user of a
        cluster that is just being formed may well come a moment too early.
        """
        if self._accounts.version > 0:
            self._slowing.failed(source, name)

    def edition(self, name: str) -> str:
        """Return which password a name has now; to be asked before a proof of it is checked."""
        account = self._accounts.find_user(name)
        return "" if account is None else edition_of(account.password_hash)

    def let_in(self, name: str, edition: str) -> Principal:
        """Return the user of that name, who has proven to have that edition of its password.

        Raises `Unauthenticated`, also if it was changed meanwhile: a login may take its time.
        """
        found = self._user(name)
        if found is None or found.edition != edition:
            raise Unauthenticated(WRONG)
        return found

    def _user(self, name: str) -> PasswordPrincipal | None:
        account = self._accounts.find_user(name)
        if account is None or account.is_locked:
            return None
        return PasswordPrincipal(
            name=account.name,
            proof=Proof.PASSWORD,
            since=account.created_at,
            edition=edition_of(account.password_hash),
        )

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
                key=claimed.key,
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
        self._edition = ""
        self._exchange = ServerExchange(
            mechanism, lambda name: authenticator.verifier(name, mechanism)
        )

    def first(self, line: str) -> str:
        """Take the client's first line and return the node's; raises `Unauthenticated`."""
        telling = self._authenticator.telling
        try:
            answer = self._exchange.first(line)
        except ScramRefused as error:
            with telling("", Proof.PASSWORD):
                raise Unauthenticated(f"the login makes no sense: {error}") from None
        self._edition = self._authenticator.edition(self._exchange.name)
        with telling(self._exchange.name, Proof.PASSWORD):
            self._authenticator.slowing.check(self._source, self._exchange.name)
        return answer

    def final(self, line: str) -> tuple[str, Principal]:
        """Take the client's proof; return the node's own, and who is there."""
        with self._authenticator.telling(self._exchange.name, Proof.PASSWORD):
            return self._final(line)

    def _final(self, line: str) -> tuple[str, Principal]:
        name, slowing = self._exchange.name, self._authenticator.slowing
        # Again, and without a pause between asking and counting: a thousand logins that were begun
        # together are as many guesses.
        slowing.draw(self._source, name)
        try:
            answer = self._exchange.final(line)
        except ScramRefused:
            self._authenticator.failed(self._source, name)
            raise Unauthenticated(WRONG) from None
        slowing.succeeded(self._source, name)
        return answer, self._authenticator.let_in(name, self._edition)
