"""How audit records hang together.

Two things are in each record. `previous` is the hash of the record before it of the same writer, so
a writer's own records cannot be taken out, changed or moved without a trace. `seen` is a digest
over the whole topic as far as its writer had read it, so each record vouches for the order and the
content of everything before, whoever wrote it: the writers watch each other.

There is no secret in it. Whoever can replace every record can compute them all anew; only what was
kept elsewhere (`audit verify --write-anchor`) shows that.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

import msgspec

from angarium.api.audit import NO_HASH, AuditRecord, Seen, encoded


def hash_of(value: bytes) -> bytes:
    """Return the hash of an audit record: the SHA-256 of its value."""
    return sha256(value).digest()


class Progress(msgspec.Struct, frozen=True):
    """How far a topic was read, and what was in it up to there."""

    offset: int
    """The newest record; -1: nothing yet."""
    hash: bytes
    digest: bytes

    def after(self, offset: int, record_hash: bytes) -> Progress:
        """Return how it is with one more record."""
        return Progress(offset, record_hash, sha256(self.digest + record_hash).digest())

    @property
    def seen(self) -> Seen | None:
        """The same as a record says it; None before the first one."""
        if self.offset < 0:
            return None
        return Seen(offset=self.offset, hash=self.hash.hex(), digest=self.digest.hex())


NOTHING_SEEN: Final = Progress(-1, bytes(32), bytes(32))


def progress_of(seen: Seen | None) -> Progress | None:
    """Return what a record says it had seen; None if that is nothing, or makes no sense."""
    if seen is None or seen.offset < 0:
        return None
    try:
        found = Progress(seen.offset, bytes.fromhex(seen.hash), bytes.fromhex(seen.digest))
    except ValueError:
        return None
    return found if len(found.hash) == len(found.digest) == len(NOTHING_SEEN.hash) else None


class Chain:
    """The records of one writer, one after the other."""

    def __init__(self, writer: str) -> None:
        self.writer = writer
        self.number = 0
        """Of the next record."""
        self._previous = NO_HASH

    def linked(self, record: AuditRecord, seen: Seen | None) -> tuple[bytes, bytes]:
        """Return a record's value as it hangs on the one before, and its hash."""
        value = encoded(
            msgspec.structs.replace(
                record,
                writer=self.writer,
                number=self.number,
                previous=self._previous,
                seen=seen,
            )
        )
        found = hash_of(value)
        self.number += 1
        self._previous = found.hex()
        return value, found
