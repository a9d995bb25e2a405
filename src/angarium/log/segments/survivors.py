"""Which records a compaction keeps.

Of the records below `until`, a record stays if no later one below `until` has its key, unless it
has a null value (a *tombstone*) and was appended before `tombstones_before`. A record without a key
stays. So what is left follows from these two numbers and the records alone: a log that was
compacted in many steps, or was interrupted, or skipped some, comes to the same frames as one that
did it at once.

That needs segments to be rewritten in order: a record goes before, or together with, whatever makes
it superfluous. Only then can the tombstone of a record that is still there not be missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.batch import Codec
from angarium.batch.layout import VALUE_NULLS
from angarium.log.segments.frames import frame_at

if TYPE_CHECKING:
    from angarium.batch import Batch
    from angarium.ids import Micros
    from angarium.log.segments.compacted_mark import Pass
    from angarium.log.segments.frames import Frame

PASS_RECORDS_MAX: Final = 400_000
"""Offsets whose keys are in memory at a time: about 100 MB with keys of 50 bytes. What is more is
done in several passes, one after the other."""


class Survivors:
    """The judge of one pass. Keys come from what the passes before have not seen."""

    __slots__ = ("_latest", "goal", "oldest_tombstone")

    def __init__(self, goal: Pass) -> None:
        self.goal = goal
        self._latest: dict[bytes | None, int] = {}
        self.oldest_tombstone: Micros | None = None
        """When the oldest tombstone that stays was appended; None if none does."""

    def note(self, batch: Batch) -> None:
        """Look at the keys of a batch. Batches come in the order of their offsets."""
        # In the order of offsets, so that the last one of a key stays. Planted as
        # the-earliest-record-of-a-key-stays.
        self._latest.update(zip(batch.keys(), batch.offsets(0, batch.count), strict=True))
        self._latest.pop(None, None)

    def kept(self, batch: Batch) -> list[int] | None:
        """Return the positions of the records that stay; None if all do."""
        latest = self._latest
        has_nulls = bool(batch.header.flags & VALUE_NULLS)
        # By the time in the log. Replicas compact at different times and must come to the same
        # records.
        is_old = has_nulls and batch.append_time < self.goal.tombstones_before
        keys = batch.keys()
        if not is_old and latest.keys().isdisjoint(keys):
            if has_nulls:
                self._note_tombstone(batch)
            return None
        offsets = batch.offsets(0, batch.count)
        if is_old:
            kept = [
                at
                for at, (key, offset, value) in enumerate(
                    zip(keys, offsets, batch.values(), strict=True)
                )
                if key is None or (value is not None and latest.get(key, offset) <= offset)
            ]
        else:
            kept = [
                at
                for at, (key, offset) in enumerate(zip(keys, offsets, strict=True))
                if key is None or latest.get(key, offset) <= offset
            ]
            if has_nulls and kept:
                self._note_tombstone(batch)
        return None if len(kept) == batch.count else kept

    def _note_tombstone(self, batch: Batch) -> None:
        if self.oldest_tombstone is None or batch.append_time < self.oldest_tombstone:
            self.oldest_tombstone = batch.append_time


def rewritten(batch: Batch, kept: list[int]) -> tuple[Frame, bytes]:
    """Return the frame of a batch that keeps only some of its records.

    It is not compressed: what a library makes of the same bytes may differ between its versions,
    and replicas have to come to the same.
    """
    data = bytes(batch.retain(kept, codec=Codec.NONE))
    frame = frame_at(data, 0)
    assert frame is not None
    return frame, data
