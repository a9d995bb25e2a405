"""Reading what every replica holds in the end, to be compared with what was promised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.batch import Batch
from angarium.errors import CorruptData
from angarium.log.segments.frames import frame_at
from angarium.testing.history import FinalLog, LogRecord
from angarium.testing.sim.burials import is_letter, letter_value
from angarium.testing.sim.clock import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import NodeId, RaftGroupId
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.testing.sim.world import World

MENDINGS_MAX = 5
"""How often reading a log to its end may meet damage; one flipped bit is one mending."""


def read_final_logs(world: World) -> None:
    """Add the log of every replica to the history, as it is after all compaction is done."""
    for compactor in world.compactors:
        compactor.expect_the_end()
    for group in world.groups:
        for node in sorted(world.operator.holders(group)):
            replica = world.replica_at(node, group)
            if replica is not None:
                world.history.eventual_lost += replica.partition.acks.eventual_lost
            world.history.final.append(_final_log(world, node, group))
    for compactor in world.compactors:
        compactor.judge()


def _final_log(world: World, node: NodeId, group: RaftGroupId) -> FinalLog:
    """Read everything a replica holds; what turns out damaged must be mended by its peers.

    A replica that nobody can mend comes back as somebody else, so it is looked up anew, and only
    when it has everything again. While one is waited for that may happen to another.
    """
    for _ in range(MENDINGS_MAX):
        world.wait(5 * SECOND, lambda: _is_mended(world, node, group))
        replica = world.replica_at(node, group)
        if replica is not None and _is_mended(world, node, group):
            try:
                return _read_all(node, group, replica)
            except CorruptData as damaged:
                world.note(f"node-{node}", "must mend:", damaged)
    world.history.incidents.append(f"node {node} group {group} could not mend its segments")
    return FinalLog(node, group, 0, 0, ())


def _is_mended(world: World, node: NodeId, group: RaftGroupId) -> bool:
    replica = world.replica_at(node, group)
    return replica is not None and not replica.is_mending and world.is_agreed(group)


def _read_all(node: NodeId, group: RaftGroupId, replica: PartitionReplica) -> FinalLog:
    log = replica.partition.log
    records: list[LogRecord] = []
    gaps: list[tuple[int, int]] = []
    offset = log.start_offset
    while offset < log.end_offset:
        for view in log.read(offset, 1 << 20, gaps=True):
            frame = frame_at(view, 0)
            assert frame is not None, "a log holds batches and gaps"
            if frame.is_gap:
                gaps.append((frame.base_offset, frame.next_offset))
            else:
                batch = Batch.parse(view, compacted=True)
                records += _records(batch, log.start_offset)
            offset = frame.next_offset
    return FinalLog(node, group, log.start_offset, log.end_offset, tuple(records), tuple(gaps))


def _records(batch: Batch, start: int) -> Iterator[LogRecord]:
    """Yield the records of a batch that a trim has left."""
    has_letter = is_letter(batch)
    for record in batch:
        if record.offset >= start:
            yield LogRecord(
                record.offset,
                letter_value(batch) if has_letter else record.value or b"",
                batch.producer_id,
                batch.epoch,
                batch.first_sequence + record.offset - batch.base_offset,
            )
