"""A commit larger than memory: brought in by steps, met whole, and by newcomers as well."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from tests.unit.replica.several_hosts import SeveralHosts
from tests.unit.replica.test_partition_after_a_crash import entry, opened, values

from angarium.batch import encode
from angarium.ids import Epoch, Micros, NodeId, Offset, RaftGroupId, Sequence
from angarium.machine import Command, Commit, Configure, PartitionLimits, Stage
from angarium.machine.outcomes import Decided
from angarium.raft import Change, ChangeKind, ConfChange
from angarium.replica.acks import Published
from angarium.replica.config import ReplicaConfig
from angarium.replica.partition import UNFLUSHED_BYTES_MAX
from angarium.replica.work import do_now
from angarium.testing.disk import SimulatedDisk

if TYPE_CHECKING:
    from angarium.errors import AngariumError
    from angarium.replica.partition_replica import PartitionReplica

GROUP = RaftGroupId(1)
FIRST, SECOND = NodeId(1), NodeId(2)
TICKS_MAX = 300
STEP = ReplicaConfig(
    commit_step_bytes=1_000,
    snapshot_entries=20,
    snapshot_bytes=8_000,
    snapshot_keep_entries=0,
    transfer_chunk_bytes=700,
)
PARTS = tuple(tuple(b"%d.%d" % (part, one) * 200 for one in range(3)) for part in range(5))
VALUES = [value for part in PARTS for value in part]


def stage(part: int, content: tuple[bytes, ...] = (b"one",), *, time: int = 1) -> Stage:
    return Stage(
        name="t",
        epoch=Epoch(0),
        sequence=Sequence(1),
        stage="a",
        part=part,
        batches=b"".join(bytes(encode([value])) for value in content),
        time=Micros(time),
    )


def commit(*, time: int = 1) -> Commit:
    return Commit(name="t", epoch=Epoch(0), sequence=Sequence(1), stages=("a",), time=Micros(time))


def test_a_commit_is_brought_in_by_steps_and_met_whole() -> None:
    disk = SimulatedDisk(random.Random(1))
    partition = opened(disk, STEP)
    for part, content in enumerate(PARTS):
        partition.apply(entry(2 + part, stage(part, content, time=1 + part)))
    partition.apply(entry(10, commit(time=50)))
    steps = partition.publish_stages()
    work = next(steps)
    ends = set()
    while True:
        assert partition.is_occupied
        assert not partition.is_concluded
        ends.add(partition.log.next_offset)
        assert (partition.log.end_offset, values(partition)) == (0, [])
        assert partition.log.offset_at(Micros(1)) == 0
        work()
        try:
            work = next(steps)
        except StopIteration:
            break
    assert len(ends) >= len(PARTS)
    partition.conclude()
    assert values(partition) == VALUES


def test_one_that_broke_off_is_completed_after_a_crash_and_not_seen_before() -> None:
    entries = [entry(2 + at, stage(at, one, time=1 + at)) for at, one in enumerate(PARTS)]
    entries.append(entry(10, commit(time=50)))
    for breaks_off in range(1, 12):
        disk = SimulatedDisk(random.Random(breaks_off))
        partition = opened(disk, STEP)
        for one in entries:
            partition.apply(one)
        for _, work in zip(range(breaks_off), partition.publish_stages(), strict=False):
            work()
        disk.crash()
        partition = opened(disk, STEP)
        for one in entries:
            assert values(partition) == []
            partition.apply(one)
        assert partition.log.end_offset == 0
        do_now(partition.publish_stages())
        partition.conclude()
        assert values(partition) == VALUES


def test_what_does_not_fit_memory_is_committed() -> None:
    part = stage(0, (random.Random(3).randbytes(1 << 20),))
    partition = opened(SimulatedDisk(random.Random(1)), ReplicaConfig())
    count = 2 * UNFLUSHED_BYTES_MAX >> 20
    for at in range(count):
        partition.apply(entry(2 + at, _numbered(part, at)))
        do_now(partition.files.maintain())
        assert partition.files.stages.waiting_bytes < 8 << 20
    partition.apply(entry(10 + count, commit(time=10 + count)))
    for work in partition.publish_stages():
        work()
        assert partition.log.unflushed_bytes < 8 << 20
    partition.conclude()
    assert partition.log.end_offset == count


def _numbered(part: Stage, at: int) -> Stage:
    return Stage(
        name=part.name,
        epoch=part.epoch,
        sequence=part.sequence,
        stage=part.stage,
        part=at,
        batches=part.batches,
        time=Micros(1 + at),
    )


# --- several hosts --------------------------------------------------------------------------


def leading(hosts: SeveralHosts, *members: NodeId) -> PartitionReplica:
    hosts.form(GROUP, members)
    for _ in range(TICKS_MAX):
        hosts.tick()
        for node in members:
            if hosts.hosts[node].replicas[GROUP].may_serve:
                return hosts.hosts[node].replicas[GROUP]
    pytest.fail("nobody leads")


def submit(replica: PartitionReplica, command: Command) -> list[Published | AngariumError]:
    answers: list[Published | AngariumError] = []
    replica.partition.submit(command, now=Micros(1_000), reply=answers.append)
    replica.process()
    return answers


def answered(hosts: SeveralHosts, answers: list[Published | AngariumError]) -> Decided:
    for _ in range(TICKS_MAX):
        if answers:
            break
        hosts.tick()
    (answer,) = answers
    assert isinstance(answer, Published), answer
    (outcome,) = answer.outcomes
    assert isinstance(outcome, Decided), outcome
    return outcome


def damage_stage(hosts: SeveralHosts) -> None:
    disk, folder = hosts.disks[FIRST], f"groups/{GROUP}/stages"
    (name,) = disk.list(folder)
    file = disk.open(f"{folder}/{name}")
    file.pwrite([b"rotten"], 900)
    file.close()


def test_a_commit_is_answered_once_it_can_be_read_and_what_follows_it_waits() -> None:
    hosts = SeveralHosts([FIRST], STEP)
    leader = leading(hosts, FIRST)
    for part, content in enumerate(PARTS):
        submit(leader, stage(part, content))
    hosts.settle()
    assert leader.snapshot_index == leader.applied
    answers = submit(leader, commit())
    again = submit(leader, commit())
    later = submit(leader, Configure(limits=PartitionLimits(groups_max=7)))
    reads: list[AngariumError | None] = []
    host = hosts.hosts[FIRST]
    sync = host.begin_sync()
    assert sync is not None
    sync.write()
    host.finish_sync(sync)
    leader.read_index(reads.append)
    leader.process()
    assert leader.is_applying
    assert (answers, again, later, reads, leader.end_offset) == ([], [], [], [], 0)
    assert not leader.may_rest()
    assert list(leader.take_snapshot()) == [], "the state is ahead of the segments"
    decided = answered(hosts, answers)
    assert (decided.base_offset, decided.next_offset) == (0, len(VALUES))
    hosts.tick()
    assert answered(hosts, again).repeated
    assert (len(later), reads) == (1, [None])
    assert values(leader.partition) == VALUES
    hosts.tick()
    left = hosts.disks[FIRST].list(f"groups/{GROUP}/stages")
    assert left == [], "no other entry has to come before a large stage goes"


def test_a_damaged_stage_costs_the_replica_and_not_the_node() -> None:
    hosts = SeveralHosts([FIRST], STEP)
    leader = leading(hosts, FIRST)
    for part, content in enumerate(PARTS):
        submit(leader, stage(part, content))
        hosts.settle()
    damage_stage(hosts)
    submit(leader, commit())
    for _ in range(5):
        hosts.tick()
    assert "damaged" in str(hosts.hosts[FIRST].lost[GROUP])


def test_a_newcomer_does_not_wait_for_a_damaged_stage_that_is_decided() -> None:
    hosts = SeveralHosts([FIRST, SECOND], STEP)
    hosts.hosts[SECOND].join_group(GROUP)
    leader = leading(hosts, FIRST)
    submit(leader, Configure(limits=PartitionLimits(stages_beside=True)))
    submit(leader, stage(0, PARTS[0]))
    hosts.deaf.add(SECOND)
    change = Change(ChangeKind.ADD_LEARNER, hosts.hosts[SECOND].id)
    leader.propose_conf_change(ConfChange((change,)))
    hosts.settle()
    do_now(leader.take_snapshot())
    answered(hosts, submit(leader, commit()))
    # The newest snapshot is from before the commit, and lists what rots now.
    damage_stage(hosts)
    hosts.deaf.clear()
    newcomer = hosts.hosts[SECOND].replicas[GROUP]
    for _ in range(TICKS_MAX):
        hosts.tick()
        if newcomer.seen_index == leader.seen_index:
            break
    assert values(newcomer.partition) == list(PARTS[0])


@pytest.mark.parametrize("beside", [False, True])
def test_a_newcomer_gets_the_stages_that_are_open(beside: bool) -> None:
    hosts = SeveralHosts([FIRST, SECOND], STEP)
    hosts.hosts[SECOND].join_group(GROUP)
    leader = leading(hosts, FIRST)
    if beside:
        submit(leader, Configure(limits=PartitionLimits(stages_beside=True)))
    for part, content in enumerate(PARTS):
        submit(leader, stage(part, content))
    submit(leader, stage(len(PARTS), ()))  # as one that holds acknowledgements alone
    hosts.settle()
    do_now(leader.take_snapshot())
    assert leader.snapshot_index == leader.applied
    change = Change(ChangeKind.ADD_LEARNER, hosts.hosts[SECOND].id)
    leader.propose_conf_change(ConfChange((change,)))
    leader.process()
    newcomer = hosts.hosts[SECOND].replicas[GROUP]
    for _ in range(TICKS_MAX):
        hosts.tick()
        if newcomer.applied == leader.applied:
            break
    stages = newcomer.partition.files.stages
    assert [stages.part(1, part) for part in range(6)] == [
        leader.partition.files.stages.part(1, part) for part in range(6)
    ]
    assert newcomer.snapshot_index > 1, "the log alone did not bring it"
    hosts.restart(SECOND)
    answered(hosts, submit(leader, commit()))
    for _ in range(TICKS_MAX):
        hosts.tick()
        newcomer = hosts.hosts[SECOND].replicas[GROUP]
        if newcomer.seen_index == leader.seen_index:
            break
    assert values(newcomer.partition) == VALUES
    assert newcomer.partition.log.read(Offset(0), 1 << 20)
