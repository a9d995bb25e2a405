"""A pack: records of one partition that become one batch, from the first one to the answer."""

from __future__ import annotations

from struct import Struct, calcsize
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from angarium.batch import crc32c
from angarium.batch.layout import CHECKED_START
from angarium.client.publishing.receipts import Receipt
from angarium.ids import NO_PRODUCER, Epoch

if TYPE_CHECKING:
    import asyncio

    from angarium.api import Ack
    from angarium.errors import AngariumError
    from angarium.ids import ProducerId, Sequence
    from angarium.modes import DeliveryMode

_PRODUCER: Final = Struct("<qqI")
_PRODUCER_START: Final = calcsize("<4sIqqqIIBBBBIII")
"""Producer id, sequence and epoch lie here in a batch's header (docs/reference/batch.md)."""

_CRC: Final = Struct("<I")
_CRC_START: Final = 4


class ProducerIdentity(NamedTuple):
    """Who a lane's batches come from; its sequences begin at 0."""

    producer: ProducerId
    epoch: Epoch


NOBODY: Final = ProducerIdentity(NO_PRODUCER, Epoch(0))


class Content(Protocol):
    """Records that can be made into a batch once; a `BatchBuilder` is one."""

    def __len__(self) -> int: ...

    def build(self, *, producer_id: ProducerId, epoch: Epoch, sequence: Sequence) -> bytearray: ...


class Pack:
    """One batch on its way, and everybody who waits for its answer."""

    __slots__ = (
        "batch",
        "content",
        "count",
        "deadline",
        "error",
        "gaps",
        "is_outdated",
        "is_pinned",
        "layout",
        "may_be_stored",
        "mode",
        "sequence",
        "settled",
        "shares",
        "size",
        "unattended",
        "waiting",
        "whole",
    )

    def __init__(self, content: Content, *, mode: DeliveryMode, deadline: float) -> None:
        self.content: Content | None = content
        """The records, until they are made into `batch`."""
        self.mode = mode
        self.deadline = deadline
        """In the event loop's time."""
        self.count = 0
        """Records, known once they are a batch."""
        self.size = 0
        """Bytes counted against the client's bound, to be given back with the answer."""
        self.batch: bytearray | None = None
        self.sequence = 0
        self.layout: int | None = None
        """The layout of the topic by which keys have sent records here; None: none has."""
        self.is_outdated = False
        """Whether it was refused because the topic has another layout: it is not stored."""
        self.may_be_stored = False
        """Whether an attempt ended without anybody knowing what became of it."""
        self.error: AngariumError | None = None
        """Why the last attempt failed."""
        self.gaps = 0
        """How often it was refused as coming too early although it was the first in line."""
        self.is_pinned = False
        """Whether its records belong to their partition: it was named, or their keys have no other.
        Such a pack is sent nowhere else, unless there is another layout."""
        self.waiting: list[tuple[asyncio.Future[Receipt], int]] = []
        """Who waits for one record, and its position."""
        self.whole: asyncio.Future[tuple[Ack, ...]] | None = None
        """Who waits for the whole batch; if it was dealt anew, for each part of it."""
        self.shares: list[asyncio.Future[tuple[Ack, ...]]] = []
        """Batches that were dealt anew, and have a part here."""
        self.unattended = 0
        """Records nobody waits for; a failure of theirs is told by `flush`."""
        self.settled: asyncio.Future[None] | None = None
        """Who waits for its end, however it ends."""

    def number(self, identity: ProducerIdentity, sequence: int) -> None:
        """Make the batch, or give one already made another producer and sequence."""
        self.sequence = sequence
        if self.batch is not None:
            self.batch = renumbered(self.batch, identity, sequence)
            return
        assert self.content is not None
        self.count = len(self.content)
        self.batch = self.content.build(
            producer_id=identity.producer,
            epoch=identity.epoch,
            sequence=sequence,  # type: ignore[arg-type]
        )
        self.content = None

    def succeed(self, ack: Ack) -> None:
        """Tell everybody who waits."""
        for future, position in self.waiting:
            if not future.done():
                future.set_result(Receipt(ack, position))
        for one in self.unanswered():
            one.set_result((ack,))

    def fail(self, error: Exception) -> None:
        """Tell everybody who waits that it failed."""
        for future, _ in self.waiting:
            if not future.done():
                future.set_exception(error)
        for one in self.unanswered():
            one.set_exception(error)

    def unanswered(self) -> list[asyncio.Future[tuple[Ack, ...]]]:
        """Return who waits for all of it: a batch may be dealt anew whose records were before."""
        whole = self.shares if self.whole is None else [self.whole, *self.shares]
        return [one for one in whole if not one.done()]


def renumbered(batch: bytearray, identity: ProducerIdentity, sequence: int) -> bytearray:
    """Return a copy of an unstamped batch under another producer and sequence."""
    # A copy, because the bytes may still be on their way out under the old number.
    copy = bytearray(batch)
    _PRODUCER.pack_into(copy, _PRODUCER_START, identity.producer, sequence, identity.epoch)
    _CRC.pack_into(copy, _CRC_START, crc32c(memoryview(copy)[CHECKED_START:]))
    return copy
