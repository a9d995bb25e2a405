"""Bugs planted in what readers are answered with: too little, and nobody would lose a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.planting import Replaced, bug
from tests.simulation.variants import usual

from angarium.batch import Batch
from angarium.replica.fullness import Fullness, is_member
from angarium.replica.partition_replica import PartitionReplica

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import Index, Offset
    from angarium.raft import RaftNode


@bug(seeds_max=20, run=usual)
def restarted_replica_answers_at_once() -> Iterator[Replaced]:
    """A replica answers readers before it has heard since its start how far its group is."""
    original = Fullness.shortfall

    def shortfall(fullness: Fullness, raft: RaftNode, applied: Index) -> str:
        fullness._was_full = fullness._was_full or is_member(raft)
        return original(fullness, raft, applied)

    yield Replaced(Fullness, "shortfall", shortfall)


@bug(seeds_max=20, run=usual)
def reads_from_within_a_batch_find_nothing() -> Iterator[Replaced]:
    """A read that begins within a batch, not with its first record, is answered with nothing."""
    original = PartitionReplica.fetch

    def fetch(replica: PartitionReplica, offset: Offset, *, bytes_max: int) -> list[memoryview]:
        found = original(replica, offset, bytes_max=bytes_max)
        return [] if found and Batch.trusted(found[0]).base_offset < offset else found

    yield Replaced(PartitionReplica, "fetch", fetch)
