"""Publishing: batches for a partition, and what became of each."""

from __future__ import annotations

from typing import Protocol

import msgspec

from angarium.ids import Buffer, Epoch, Micros, Offset, ProducerId, Term
from angarium.modes import DeliveryMode


class PublishRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Batches for one partition, in this order."""

    topic: str
    partition: int
    batches: tuple[Buffer, ...]
    mode: DeliveryMode | None = None
    """None: the topic's own."""
    layout: int | None = None
    """By which layout of the topic keys have sent the records to this partition; a partition that
    is fenced against it refuses them (`LayoutChanged`). None: no key has."""
    region: str | None = None
    """Where the publisher is, for topics whose leaders follow; empty: nobody knows. None: where
    whoever is asked is."""


class Ack(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one batch."""

    mode: DeliveryMode
    topic: str
    partition: int
    base_offset: Offset | None = None
    """The offset of its first record; None in PERFORMANCE mode, which stores nothing, and for a
    duplicate so old that its offset is no longer remembered."""
    next_offset: Offset | None = None
    append_time: Micros | None = None
    term: Term | None = None
    """The leader's term; an EVENTUAL offset holds only as long as this leader's log does."""
    id: str = ""
    """In PERFORMANCE mode: the leader's epoch and a counter."""
    subscribers: int = 0
    """In PERFORMANCE mode: how many subscribers it was handed to."""
    provisional: bool = False
    duplicate: bool = False
    code: str = ""
    """Not empty if this batch was refused while its neighbours were not: the error's code."""
    message: str = ""

    def span(self, row: int | None) -> tuple[int | None, int | None]:
        """Return the first offset and the one past the last, of the batch or of one `row` of it;
        None where nothing was stored."""
        if row is None or self.base_offset is None:
            return self.base_offset, self.next_offset
        return self.base_offset + row, self.base_offset + row + 1


class Producer(msgspec.Struct, frozen=True, kw_only=True):
    """An idempotent producer's identity: sequences start at 0 in each partition and epoch."""

    id: ProducerId
    epoch: Epoch


class OffsetBroker(Protocol):
    """Gives offsets away that no record will ever have."""

    async def reserve(self, topic: str, partition: int, count: int) -> Offset:
        """Leave the next `count` offsets of a partition empty, for ever; return the first.

        A topic that is not there is made, as for a publish. Readers pass over the gap.
        """
