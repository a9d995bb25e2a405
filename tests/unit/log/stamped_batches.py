"""Stamped batches for the tests of the log, and what a reader sees of them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from angarium.batch import Batch, BatchBuilder, stamp
from angarium.ids import Micros, Offset, Term

if TYPE_CHECKING:
    from angarium.log.segments import PartitionLog

Span = tuple[int, int]
"""Base offset and next offset of a batch."""


@lru_cache(maxsize=4096)
def stamped(base: int, count: int = 1, *, size: int = 8, time: int = 0, term: int = 1) -> bytes:
    """Return a batch of `count` records of `size` bytes, whose contents follow from `base`.

    Without a `time` it is appended at 1,000 times its base offset, plus one.
    """
    builder = BatchBuilder()
    for place in range(count):
        builder.add((b"%d;" % (base + place)).ljust(size, b"."))
    batch = bytearray(builder.build())
    stamp(
        batch,
        base_offset=Offset(base),
        term=Term(term),
        append_time=Micros(time or 1000 * base + 1),
    )
    return bytes(batch)


def unstamped(word: bytes, count: int = 1) -> bytes:
    """Return a batch as a producer sends it."""
    builder = BatchBuilder()
    for _ in range(count):
        builder.add(word)
    return bytes(builder.build())


def spans(log: PartitionLog, *, start: int | None = None, bytes_max: int = 700) -> list[Span]:
    """Read a log to its end, check every batch, and return what the batches span."""
    offset = log.start_offset if start is None else Offset(start)
    found: list[Span] = []
    while True:
        batches = log.read(offset, bytes_max)
        if not batches:
            return found
        for buffer in batches:
            batch = Batch.trusted(buffer)
            batch.verify()
            assert batch.next_offset > offset
            offset = batch.next_offset
            found.append((batch.base_offset, batch.next_offset))


def contents(log: PartitionLog, *, start: int | None = None) -> list[bytes]:
    """Return the batches of a log as bytes."""
    offset = log.start_offset if start is None else Offset(start)
    found: list[bytes] = []
    while batches := log.read(offset, 1 << 20):
        found += map(bytes, batches)
        offset = Batch.trusted(batches[-1]).next_offset
    return found
