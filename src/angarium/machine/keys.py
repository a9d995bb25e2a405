"""Which idempotency keys a partition has seen: a repeated request is recognised for a while.

A key is a word of the client's own choosing, such as a UUID; nothing about it grows or counts. A
batch that came under one carries it in place of a producer's identity: ids from `KEYED_FROM` up
are the hash of a key, and the sequence is the hash of what was asked. The laws, in one partition:
- a key that is not remembered is new, and its batch is stored;
- the same key with the same content is a duplicate, answered with its offsets;
- the same key with other content is refused: one of the two is a mistake;
- a key is forgotten when it is older than `key_micros_max`, or one of more than `keys_max`, the
  oldest first. A refused batch leaves no trace, so it may be tried again under its key.
Where it is known who asks, ids are those of `key_of_owner`: everybody has keys of its own.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import KeyReused
from angarium.ids import Micros, Offset, ProducerId, Sequence
from angarium.machine.outcomes import Duplicate, Refused, refused
from angarium.machine.overlay import Recency, RecencyOverlay

if TYPE_CHECKING:
    from angarium.machine.overlay import RecencyTable
    from angarium.machine.partition_limits import PartitionLimits

KEYED_FROM: Final = ProducerId(3 << 61)
"""Ids from here up are keys. Named producers have the ids below; there are not that many."""

FORGOTTEN_AT_ONCE: Final = 4
"""Old keys that make way for a new one at the most. So a table that was full of them empties
while it is used, and no single batch pays for all."""

_DIGEST_BYTES: Final = 8
_KEY_MASK: Final = (1 << 61) - 1
_CONTENT_MASK: Final = (1 << 62) - 1


class Key(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What is remembered of one key."""

    content: int
    base_offset: int
    next_offset: int
    time: int


def identity_of(key: bytes, content: bytes) -> tuple[ProducerId, Sequence]:
    """Return the id and the sequence of a batch that comes under `key`.

    With 61 bits two keys among a full table meet once in 10^13 publishes, and what is told then is
    that the key was used before: nothing is lost silently unless the contents' hashes agree, too.
    """
    return (
        ProducerId(KEYED_FROM | (_digest(key, b"key") & _KEY_MASK)),
        Sequence(_digest(content, b"content") & _CONTENT_MASK),
    )


def key_of_owner(key: int, owner: str) -> ProducerId:
    """Return the id of a key that counts for one owner alone: whoever guesses another's key, and
    is first, makes nothing of the other's a repetition.

    `key` is the id of the key itself.
    """
    data = key.to_bytes(8, "big") + owner.encode(errors="surrogatepass")
    return ProducerId(KEYED_FROM | (_digest(data, b"owner") & _KEY_MASK))


def _digest(data: bytes, purpose: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=_DIGEST_BYTES, person=purpose).digest(), "big")


class Keys:
    """The keys of one partition, or a leader's view ahead of them."""

    __slots__ = ("count", "rows")

    def __init__(self) -> None:
        self.rows: RecencyTable[int, Key] = Recency()
        self.count = 0

    def fork(self) -> Keys:
        """Return a view that can be written ahead of this one."""
        other = Keys.__new__(Keys)
        assert isinstance(self.rows, Recency)
        other.rows = RecencyOverlay(self.rows)
        other.count = self.count
        return other

    def admit(
        self,
        key: int,
        *,
        content: int,
        base_offset: int,
        next_offset: int,
        time: int,
        limits: PartitionLimits,
    ) -> Duplicate | Refused | None:
        """Judge a batch that came under `key`; `None` means it is new and noted."""
        row = self.rows.get(key)
        if row is not None:
            if time - row.time <= limits.key_micros_max:
                return _judge_again(row, content)
            del self.rows[key]
            self.count -= 1
        if limits.keys_max:
            self._make_room(time, limits)
            self.rows[key] = Key(content, base_offset, next_offset, time)
            self.count += 1
        return None

    def repeated(
        self, key: int, *, content: int, time: int, limits: PartitionLimits
    ) -> Duplicate | Refused | None:
        """Judge a batch that came under `key` and may not be stored now; `None`: it is not stored.

        As `admit` does, for a key that is forgotten here is new wherever it goes instead. Planted
        as key-unknown-behind-the-fence.
        """
        row = self.rows.get(key)
        if row is None or time - row.time > limits.key_micros_max:
            return None
        return _judge_again(row, content)

    def _make_room(self, time: int, limits: PartitionLimits) -> None:
        """Forget keys until there is room for one more, and some of those that are too old."""
        forgotten = 0
        while self.count:
            oldest = self.rows.oldest()
            row = self.rows.get(oldest)
            assert row is not None
            is_old = time - row.time > limits.key_micros_max and forgotten < FORGOTTEN_AT_ONCE
            if self.count < limits.keys_max and not is_old:
                return
            del self.rows[oldest]
            self.count -= 1
            forgotten += 1


def _judge_again(row: Key, content: int) -> Duplicate | Refused:
    # The same key and the same content: a repetition. The same key for something else is a mistake
    # that has to be told, since answering it as a repetition would lose a record.
    if row.content == content:
        return Duplicate(Offset(row.base_offset), Offset(row.next_offset), Micros(row.time))
    return refused(KeyReused, "the key was used before, for something else; take a new one")
