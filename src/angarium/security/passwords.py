"""One password's hash, in a line of text: `$scrypt$ln=14,r=8,p=5$SALT$HASH`.

The form is the common one of password hashes: the parameters stand beside the hash, so that later
releases may ask for more work and still read what older ones wrote.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Final

COST_LOG2: Final = 14
BLOCK: Final = 8
PARALLEL: Final = 5
"""What a new hash costs: 16 MiB of memory, five times over, about a fifth of a second."""

SALT_BYTES: Final = 16
HASH_BYTES: Final = 32

MEMORY_BYTES_MAX: Final = 64 << 20
"""A hash whose check would take more memory than this is refused when it is read."""

WORK_MAX: Final = 16
"""Of the parallel runs that a check may ask for; more would be minutes, and are refused."""

_FORM: Final = re.compile(r"\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([^$]+)\$([^$]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordHash:
    """What can tell whether a password is the right one, and nothing else about it."""

    cost_log2: int
    block: int
    parallel: int
    salt: bytes
    digest: bytes

    @classmethod
    def of(cls, password: str) -> PasswordHash:
        """Return a new hash; two of the same password have nothing in common."""
        salt = secrets.token_bytes(SALT_BYTES)
        empty = cls(cost_log2=COST_LOG2, block=BLOCK, parallel=PARALLEL, salt=salt, digest=b"")
        digest = empty._hashed(password, HASH_BYTES)
        return cls(cost_log2=COST_LOG2, block=BLOCK, parallel=PARALLEL, salt=salt, digest=digest)

    @classmethod
    def parse(cls, text: str) -> PasswordHash:
        """Return the hash that `text` writes down; `ValueError` says what is wrong with it."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError("is no scrypt hash; `angarium user hash` makes one")
        cost_log2, block, parallel = map(int, found.groups()[:3])
        if not 1 <= parallel <= WORK_MAX or block < 1 or not 4 <= cost_log2 <= 20:
            raise ValueError("asks for more work than a check may take, or for none")
        if 128 * block << cost_log2 > MEMORY_BYTES_MAX:
            raise ValueError(f"asks for more than {MEMORY_BYTES_MAX >> 20} MiB of memory")
        try:
            salt, digest = (
                base64.b64decode(_padded(one), validate=True) for one in found.groups()[3:]
            )
        except binascii.Error:
            raise ValueError("has a salt or a hash that is not base64") from None
        if not salt or len(digest) < 16:
            raise ValueError("has no salt, or a hash of less than 16 bytes")
        return cls(cost_log2=cost_log2, block=block, parallel=parallel, salt=salt, digest=digest)

    def __str__(self) -> str:
        """Return it as `parse` reads it."""
        salt, digest = (
            base64.b64encode(one).decode().rstrip("=") for one in (self.salt, self.digest)
        )
        return f"$scrypt$ln={self.cost_log2},r={self.block},p={self.parallel}${salt}${digest}"

    def matches(self, password: str) -> bool:
        """Tell whether this is the password, as slowly for every wrong one. Takes a while."""
        return hmac.compare_digest(self._hashed(password, len(self.digest)), self.digest)

    def _hashed(self, password: str, length: int) -> bytes:
        return hashlib.scrypt(
            password.encode(errors="surrogatepass"),
            salt=self.salt,
            n=1 << self.cost_log2,
            r=self.block,
            p=self.parallel,
            # OpenSSL counts some blocks beside the table.
            maxmem=2 * MEMORY_BYTES_MAX,
            dklen=length,
        )


def _padded(text: str) -> str:
    return text + "=" * (-len(text) % 4)
