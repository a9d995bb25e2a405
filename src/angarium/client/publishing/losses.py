"""Finding out what is left of records that were acknowledged in EVENTUAL mode.

A partition stores a producer's batches in their order or not at all, so what remains of them is a
beginning: once one is missing, so are all later ones. Whether a batch is there is asked of a leader
that has made sure that it leads, and seen by the producer, epoch and sequence in the batch itself.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.api import FETCH_BYTES_MAX
from angarium.batch import Batch, split
from angarium.client.publishing.receipts import Loss
from angarium.errors import OffsetOutOfRange
from angarium.wire.operations import FetchAnswer, FetchHeader, Operation

if TYPE_CHECKING:
    from angarium.api import Ack
    from angarium.client.calls import Calls
    from angarium.client.publishing.packs import Pack, ProducerIdentity
    from angarium.ids import Offset

REMEMBERED_MAX: Final = 4_096
"""Acknowledged batches remembered per partition. Older ones count as safe: the bound of EVENTUAL
acknowledgements (100 ms by default) has long passed for them."""


class Stored(NamedTuple):
    """An acknowledged batch, and where it should be."""

    sequence: int
    records: int
    offset: Offset
    is_provisional: bool


class Acknowledged:
    """What one lane was told under its present identity, as far as it may still be lost."""

    def __init__(self) -> None:
        self._recent: deque[Stored] = deque(maxlen=REMEMBERED_MAX)

    def note(self, pack: Pack, ack: Ack) -> None:
        """Remember an acknowledgement."""
        if ack.base_offset is None:
            return
        if not ack.provisional and self._recent:
            # A committed batch: everything before it in the log is committed with it.
            later = [stored for stored in self._recent if stored.sequence > pack.sequence]
            self._recent.clear()
            self._recent.extend(later)
        self._recent.append(Stored(pack.sequence, pack.count, ack.base_offset, ack.provisional))

    def clear(self) -> None:
        """Forget everything, because a new identity begins."""
        self._recent.clear()

    async def missing(
        self, calls: Calls, topic: str, partition: int, identity: ProducerIdentity
    ) -> Loss | None:
        """Return what is no longer there, or None if everything is; raises what hinders asking."""
        recent = sorted(self._recent)
        low, high = 0, len(recent)
        while low < high:
            middle = (low + high) // 2
            if await _is_there(calls, topic, partition, identity, recent[middle]):
                low = middle + 1
            else:
                high = middle
        gone = recent[low:]
        if not gone:
            return None
        records = sum(stored.records for stored in gone if stored.is_provisional)
        return Loss(topic=topic, partition=partition, records=records, first_offset=gone[0].offset)


async def _is_there(
    calls: Calls, topic: str, partition: int, identity: ProducerIdentity, stored: Stored
) -> bool:
    header = FetchHeader(topic, partition, stored.offset, FETCH_BYTES_MAX, 0, True)
    try:
        frame = await calls.ask(Operation.FETCH, header, partition=(topic, partition))
    except OffsetOutOfRange as error:
        # Trimmed away: it had been committed. Beyond the end: it is gone.
        return stored.offset < getattr(error, "start", 0)
    if stored.offset < frame.read(FetchAnswer).start_offset:
        return True
    for buffer in split(frame.payload):
        batch = Batch.trusted(buffer)
        if batch.next_offset > stored.offset:
            found = (batch.producer_id, batch.epoch, batch.first_sequence)
            return found == (identity.producer, identity.epoch, stored.sequence)
    return False
