"""Bugs planted in compaction: in what stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.simulation.planting import Replaced, bug
from tests.simulation.variants import Variant

from angarium.log.segments.compactor import Compactor
from angarium.log.segments.survivors import Survivors
from angarium.testing.sim.faults import FaultProfile
from angarium.testing.sim.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.batch import Batch
    from angarium.log.segments.compacted_mark import Pass
    from angarium.log.segments.segment import Segment

compacting: Final = Variant(
    "compacting",
    Settings(
        compactors=1,
        stewards=1,
        faults=FaultProfile(
            weights={"crash": 10, "power_loss": 10, "wipe": 3, "move_replica": 4, "pause": 2},
        ),
    ),
)
"""Logs are compacted while nodes crash, lose power and are replaced."""


@bug(seeds_max=5, run=compacting)
def the_earliest_record_of_a_key_stays() -> Iterator[Replaced]:
    """Compaction keeps the first record of a key instead of the last."""

    def note(self: Survivors, batch: Batch) -> None:
        for key, offset in zip(batch.keys(), batch.offsets(0, batch.count), strict=True):
            if key is not None:
                self._latest.setdefault(key, offset)

    def kept(self: Survivors, batch: Batch) -> list[int] | None:
        offsets = batch.offsets(0, batch.count)
        found = [
            at
            for at, (key, offset) in enumerate(zip(batch.keys(), offsets, strict=True))
            if self._latest.get(key, offset) >= offset
        ]
        return None if len(found) == batch.count else found

    yield Replaced(Survivors, "note", note)
    yield Replaced(Survivors, "kept", kept)


@bug(seeds_max=10, run=compacting)
def compaction_looks_beyond_its_goal() -> Iterator[Replaced]:
    """What a replica keeps depends on how its own segments are cut."""
    original = Compactor._learned

    def learned(
        self: Compactor, next_goal: Pass, goal: Pass, segments: list[Segment]
    ) -> Survivors | Segment:
        end = max((one.next_offset for one in segments), default=goal.until)
        beyond = next_goal._replace(until=max(end, next_goal.until))
        return original(self, beyond, beyond, segments)

    yield Replaced(Compactor, "_learned", learned)
