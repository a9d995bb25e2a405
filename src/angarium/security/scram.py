"""SCRAM (RFC 5802, RFC 7677): proving a password without sending it, both ways.

The node keeps a `Verifier`: with it a password can be checked, but nobody can log in. The exchange
has two round trips, each side draws a nonce, and the proofs cover both: what was heard once is
worth nothing the next time. In the last line the node proves that it knows the verifier, so that a
client notices who only pretends to be the cluster.

The exchanges here decide without doing: text in, text out. What they refuse is a `ScramRefused`,
which says nothing about which part was wrong. Channel binding (`-PLUS`) is not offered.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from angarium.security.prepared import prepared

if TYPE_CHECKING:
    from collections.abc import Callable


class Mechanism(StrEnum):
    """Which hash both sides compute with; the names are SASL's."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"

    @property
    def hash_name(self) -> str:
        """As `hashlib` calls it."""
        return "sha256" if self is Mechanism.SHA_256 else "sha512"


ITERATIONS: Final = 65_536
"""Of a new verifier. A client pays for them once per salt, about 30 ms; who has stolen a verifier
pays for them with every guess."""

ITERATIONS_MIN: Final = 4_096
"""RFC 7677 asks for no less. A client refuses to prove itself with less work: somebody may want
its proof in order to guess."""

ITERATIONS_MAX: Final = 1_000_000
"""A client refuses to work more: somebody may want to keep it busy."""

SALT_BYTES: Final = 16
NONCE_BYTES: Final = 24

LINE_CHARACTERS_MAX: Final = 2_048
"""A longer line is refused unread."""

_GS2: Final = re.compile(r"(n|y|p=[^,]*),(?:a=([^,]*))?,")
_CLIENT_FIRST: Final = re.compile(r"n=([^,]+),r=([\x21-\x2b\x2d-\x7e]+)(?:,.*)?", re.DOTALL)
_SERVER_FIRST: Final = re.compile(r"r=([\x21-\x2b\x2d-\x7e]+),s=([^,]+),i=([1-9]\d{0,8})(?:,.*)?")
_CLIENT_FINAL: Final = re.compile(
    r"(c=([^,]+),r=([\x21-\x2b\x2d-\x7e]+)(?:,[^p][^,]*)*),p=([^,]+)", re.DOTALL
)
_FORM: Final = re.compile(r"(SCRAM-SHA-(?:256|512))\$(\d{1,9}):([^:$]+)\$([^:$]+):([^:$]+)")


class ScramRefused(Exception):
    """The exchange ends here: a line that makes no sense, or a proof that proves nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """What can check a password's proof, and cannot make one."""

    mechanism: Mechanism
    iterations: int
    salt: bytes
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    @classmethod
    def of(
        cls,
        password: str,
        mechanism: Mechanism = Mechanism.SHA_256,
        *,
        iterations: int = ITERATIONS,
        salt: bytes | None = None,
    ) -> Verifier:
        """Return a new verifier; takes a while. `ValueError` for a password that cannot be one."""
        salt = secrets.token_bytes(SALT_BYTES) if salt is None else salt
        salted = salted_password(password, mechanism, salt=salt, iterations=iterations)
        client_key = _hmac(mechanism, salted, b"Client Key")
        return cls(
            mechanism=mechanism,
            iterations=iterations,
            salt=salt,
            stored_key=hashlib.new(mechanism.hash_name, client_key).digest(),
            server_key=_hmac(mechanism, salted, b"Server Key"),
        )

    @classmethod
    def decoy(cls, name: str, mechanism: Mechanism, *, key: bytes) -> Verifier:
        """Return one that nothing proves, for somebody who has no account.

        The same name gets the same salt each time, as a name with an account does. `key` is the
        cluster's, so that every node gives that salt, before and after a restart.
        """
        seed = hmac.digest(key, f"{mechanism}:{name}".encode(errors="surrogatepass"), "sha512")
        size = hashlib.new(mechanism.hash_name).digest_size
        return cls(
            mechanism=mechanism,
            iterations=ITERATIONS,
            salt=seed[:SALT_BYTES],
            stored_key=secrets.token_bytes(size),
            server_key=secrets.token_bytes(size),
        )

    def unprovable(self) -> Verifier:
        """Return one that asks for the same, and that nothing proves."""
        size = len(self.stored_key)
        return replace(
            self,
            stored_key=secrets.token_bytes(size),
            server_key=secrets.token_bytes(size),
        )

    @classmethod
    def parse(cls, text: str) -> Verifier:
        """Return the verifier that `text` writes down; `ValueError` says what is wrong with it."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError("is no SCRAM verifier")
        mechanism, iterations = Mechanism(found[1]), int(found[2])
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise ValueError(f"has {iterations} iterations, which is too few or too many")
        try:
            salt, stored, server = (
                base64.b64decode(one, validate=True) for one in found.groups()[2:]
            )
        except binascii.Error:
            raise ValueError("has a salt or a key that is not base64") from None
        size = hashlib.new(mechanism.hash_name).digest_size
        if not salt or len(stored) != size or len(server) != size:
            raise ValueError("has no salt, or a key of another length than its hash")
        return cls(
            mechanism=mechanism,
            iterations=iterations,
            salt=salt,
            stored_key=stored,
            server_key=server,
        )

    def __str__(self) -> str:
        """Return it as `parse` reads it: a secret, if a smaller one than the password."""
        salt, stored, server = map(_base64, (self.salt, self.stored_key, self.server_key))
        return f"{self.mechanism}${self.iterations}:{salt}${stored}:{server}"


def salted_password(password: str, mechanism: Mechanism, *, salt: bytes, iterations: int) -> bytes:
    """Return what both keys are made of; the expensive part of SCRAM, and worth remembering."""
    text = prepared(password).encode(errors="surrogatepass")
    return hashlib.pbkdf2_hmac(mechanism.hash_name, text, salt, iterations)


class ServerExchange:
    """The node's side of one login. Serves one client, once."""

    def __init__(
        self,
        mechanism: Mechanism,
        find: Callable[[str], Verifier],
        *,
        nonce: Callable[[], str] = lambda: secrets.token_urlsafe(NONCE_BYTES),
    ) -> None:
        """`find` returns the verifier of a name, a decoy for who has none."""
        self.name = ""
        """Who the client says it is; proven once `final` has returned."""
        self._mechanism = mechanism
        self._find = find
        self._nonce = nonce()
        self._verifier: Verifier | None = None
        self._gs2 = ""
        self._said = ""

    def first(self, line: str) -> str:
        """Take the client's first line, and return the node's."""
        if self._said:
            raise ScramRefused("an exchange begins once")
        gs2 = _matched(_GS2.match(_short(line)))
        if gs2[1].startswith("p="):
            raise ScramRefused("channel binding is not offered")
        bare = line[gs2.end() :]
        found = _matched(_CLIENT_FIRST.fullmatch(bare))
        self.name = _name_from(found[1])
        if gs2[2] and _name_from(gs2[2]) != self.name:
            raise ScramRefused("nobody may log in as somebody else")
        verifier = self._verifier = self._find(self.name)
        self._gs2 = gs2[0]
        self._nonce = found[2] + self._nonce
        said = f"r={self._nonce},s={_base64(verifier.salt)},i={verifier.iterations}"
        self._said = f"{bare},{said}"
        return said

    def final(self, line: str) -> str:
        """Take the client's proof, and return the node's; `ScramRefused` if it proves nothing."""
        verifier, self._verifier = self._verifier, None
        if verifier is None:
            raise ScramRefused("an exchange ends once, and not before it began")
        found = _matched(_CLIENT_FINAL.fullmatch(_short(line)))
        covered = f"{self._said},{found[1]}".encode(errors="surrogatepass")
        is_ours = _decoded(found[2]) == self._gs2.encode(errors="surrogatepass")
        is_fresh = hmac.compare_digest(found[3].encode(), self._nonce.encode())
        proof = _decoded(found[4])
        signature = _hmac(self._mechanism, verifier.stored_key, covered)
        if len(proof) != len(signature):
            raise ScramRefused(_WRONG)
        client_key = _xor(proof, signature)
        stored = hashlib.new(self._mechanism.hash_name, client_key).digest()
        is_proven = hmac.compare_digest(stored, verifier.stored_key)
        if not (is_ours and is_fresh and is_proven):
            raise ScramRefused(_WRONG)
        return f"v={_base64(_hmac(self._mechanism, verifier.server_key, covered))}"


class ClientExchange:
    """The client's side of one login: `first`, then `final`, then `check`."""

    def __init__(
        self,
        name: str,
        mechanism: Mechanism = Mechanism.SHA_256,
        *,
        nonce: Callable[[], str] = lambda: secrets.token_urlsafe(NONCE_BYTES),
    ) -> None:
        """`ValueError` for a name that cannot be one."""
        self._mechanism = mechanism
        self._nonce = nonce()
        escaped = prepared(name).replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={escaped},r={self._nonce}"
        self._expected = b""

    def first(self) -> str:
        """Return the first line."""
        return f"n,,{self._bare}"

    def challenge(self, line: str) -> tuple[bytes, int]:
        """Return the salt and the iterations that the node's first line asks for."""
        found = _matched(_SERVER_FIRST.fullmatch(_short(line)))
        if not found[1].startswith(self._nonce) or found[1] == self._nonce:
            raise ScramRefused("the answer belongs to another exchange")
        iterations = int(found[3])
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise ScramRefused(f"{iterations} iterations are too few or too many")
        return _decoded(found[2]), iterations

    def final(self, line: str, salted: bytes) -> str:
        """Return the proof: `salted` is the `salted_password` for what the node's line asks for."""
        self.challenge(line)
        nonce = _matched(_SERVER_FIRST.fullmatch(line))[1]
        bare = f"c={_base64(b'n,,')},r={nonce}"
        covered = f"{self._bare},{line},{bare}".encode(errors="surrogatepass")
        client_key = _hmac(self._mechanism, salted, b"Client Key")
        stored = hashlib.new(self._mechanism.hash_name, client_key).digest()
        proof = _xor(client_key, _hmac(self._mechanism, stored, covered))
        server_key = _hmac(self._mechanism, salted, b"Server Key")
        self._expected = _hmac(self._mechanism, server_key, covered)
        return f"{bare},p={_base64(proof)}"

    def check(self, line: str) -> None:
        """Take the node's last line; `ScramRefused` if it does not know the verifier itself."""
        is_proven = (
            line.startswith("v=")
            and bool(self._expected)
            and hmac.compare_digest(_decoded(_short(line)[2:]), self._expected)
        )
        if not is_proven:
            raise ScramRefused("the node does not prove that it knows this account")


_WRONG: Final = "the proof is wrong"


def _matched(found: re.Match[str] | None) -> re.Match[str]:
    if found is None:
        raise ScramRefused("the line is none of SCRAM")
    return found


def _short(line: str) -> str:
    if len(line) > LINE_CHARACTERS_MAX:
        raise ScramRefused(f"a line has at most {LINE_CHARACTERS_MAX} characters")
    return line


def _name_from(text: str) -> str:
    if re.search(r"=(?!2C|3D)", text):
        raise ScramRefused("the name is not escaped as SCRAM wants it")
    try:
        return prepared(text.replace("=2C", ",").replace("=3D", "="))
    except ValueError as error:
        raise ScramRefused(f"the name {error}") from None


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ScramRefused("the line has something that is not base64") from None


def _base64(octets: bytes) -> str:
    return base64.b64encode(octets).decode()


def _hmac(mechanism: Mechanism, key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, mechanism.hash_name)


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
