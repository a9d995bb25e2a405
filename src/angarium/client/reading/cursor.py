"""How far a reader is in one partition: what makes a resumed stream whole again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.api import Start, StartAt
from angarium.batch import Batch, split
from angarium.client.records import NOBODY_SAID, ReceivedBatch, Served, received, without

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.batch.deadlines import Ranges
    from angarium.client.reading.link import Link
    from angarium.errors import AngariumError
    from angarium.ids import Offset


class Cursor:
    """One partition of a subscription.

    The start is turned into an offset once, before anything is read, so that every later attempt
    begins where the last one ended: without a gap, and without a record twice.
    """

    __slots__ = (
        "at_least",
        "failures",
        "hindrance",
        "is_waited_for",
        "layout",
        "link",
        "max_staleness_ms",
        "next_offset",
        "number",
        "partition",
        "retry_at",
        "start",
        "strikes",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        start: Start,
        *,
        max_staleness_ms: int | None = None,
        at_least: Offset | None = None,
    ) -> None:
        self.at_least = at_least
        self.max_staleness_ms = max_staleness_ms
        self.topic = topic
        self.partition = partition
        self.start = start
        self.next_offset: int | None = start.value if start.at is StartAt.OFFSET else None
        """The next record to be delivered; None before the start has been looked up."""
        self.layout = 0
        """Up to which layout of the topic everything has been read that comes before it."""
        self.number = 0
        """What it is called on its present stream."""
        self.link: Link | None = None
        """The stream it comes over at the moment."""
        self.strikes = 0
        """How often it was refused in a row with an error that should not pass by itself."""
        self.hindrance: AngariumError | None = None
        """Why it could not be read when that was tried last; `Absent` keeps this and the rest."""
        self.failures = 0
        """How many attempts have failed in a row."""
        self.retry_at = 0.0
        """The event loop's time before which it is not tried again."""
        self.is_waited_for = False
        """Whether the others are read without it until it has a leader."""

    @property
    def resumption(self) -> Start:
        """Where a new stream has to begin."""
        assert self.next_offset is not None
        return Start(StartAt.OFFSET, self.next_offset)

    def stored(
        self,
        payload: memoryview,
        from_offset: Offset,
        expired: Ranges = (),
        served: Served = NOBODY_SAID,
    ) -> Iterator[ReceivedBatch]:
        """Yield what is new in a delivery of stored batches, and go on behind it."""
        assert self.next_offset is not None
        for buffer in split(payload):
            upto = Batch.trusted(buffer).next_offset
            begin = max(self.next_offset, from_offset)
            if upto <= begin:
                continue
            batch = received(self.topic, self.partition, buffer, from_offset=begin, served=served)
            self.next_offset = upto
            self.strikes = 0
            if expired:
                yield from without(batch, expired)
            elif len(batch):
                yield batch

    def live(self, payload: memoryview) -> Iterator[ReceivedBatch]:
        """Yield a delivery of PERFORMANCE batches; they have no offset, so nothing moves."""
        for buffer in split(payload):
            yield received(self.topic, self.partition, buffer, from_offset=0, is_live=True)
