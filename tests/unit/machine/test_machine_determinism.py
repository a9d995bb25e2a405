"""Two machines that apply the same entries are the same, whatever one of them went through."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.unit.machine.commands_at_random import (
    LIMITS,
    Batches,
    Request,
    build,
    commands,
    requests,
)
from tests.unit.machine.commands_at_random import batches as random_batches
from tests.unit.machine.leader import TERM, Leader

from angarium.ids import Index, Micros
from angarium.machine import Applied, PartitionMachine, PublishedStage


class TwoReplicas(RuleBasedStateMachine):
    """One replica applies straight through; the other is stopped and restored at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.leader = Leader(LIMITS)
        self.follower = PartitionMachine(LIMITS)
        self.followed = 0

    @rule(sends=random_batches)
    def publish(self, sends: Batches) -> None:
        self.leader.publish(*build(sends))
        self._follow()

    @rule(command=commands, waits=st.sampled_from([0, 0, 0, 100]))
    def command(self, command: object, waits: int) -> None:
        self.leader.now += waits
        prepared = self.leader.projection.submit(
            command,  # type: ignore[arg-type]
            term=TERM,
            now=Micros(self.leader.now),
        )
        self.leader._commit(prepared.data)
        self._follow()

    @rule(data=st.binary(min_size=1, max_size=12))
    def garbage(self, data: bytes) -> None:
        # Straight into both logs: no leader would have prepared it, so it is projected by replay.
        self.leader.projection.replay(TERM, data)
        self.leader._commit(data)
        self._follow()

    @rule()
    def restart(self) -> None:
        restored = PartitionMachine()
        restored.restore(self.follower.snapshot())
        self.follower = restored

    @rule(steps=st.integers(0, 6))
    def snapshot_beside_the_work(self, steps: int) -> None:
        slices = self.follower.snapshot_slices()
        for _ in range(steps):
            if next(slices, None) is None:
                return
        # Given up half way: the machine must not notice.

    def _follow(self) -> None:
        for number in range(self.followed, len(self.leader.log)):
            applied = self.follower.apply(Index(number + 1), TERM, self.leader.log[number])
            _assert_same(applied, self.leader.applied[number])
        self.followed = len(self.leader.log)

    @invariant()
    def replicas_agree(self) -> None:
        assert self.follower.running_hash == self.leader.machine.running_hash
        assert self.follower.applied_index == self.leader.machine.applied_index
        assert self.leader.projection.rows() == 0, "everything is confirmed"

    @invariant()
    def state_adds_up(self) -> None:
        numbering = self.follower.numbering
        tables = numbering.transactions
        assert numbering.start_offset <= numbering.next_offset
        assert isinstance(tables.stages, dict)
        assert isinstance(tables.series, dict)
        assert tables.staged_bytes == sum(one.size for one in tables.stages.values())
        assert tables.series_count == len(tables.series)
        listed = {
            (name, one.epoch, one.sequence, stage)
            for name, series in tables.series.items()
            for one in series.attempts
            for stage in one.stages
        }
        assert listed == set(tables.stages)
        for group in self.follower.groups.by_name.values():
            assert group.floor not in group.acked
            assert all(offset not in group.acked for offset in group.attempts)

    def teardown(self) -> None:
        assert self.follower.snapshot() == self.leader.machine.snapshot()


def _assert_same(one: Applied, other: Applied) -> None:
    assert one.outcomes == other.outcomes
    assert (one.next_offset, one.clock) == (other.next_offset, other.clock)
    assert (one.stage_appends, one.stage_drops) == (other.stage_appends, other.stage_drops)
    assert (one.reserved, one.trimmed_to) == (other.reserved, other.trimmed_to)
    assert [_seen(view) for view in one.visible] == [_seen(view) for view in other.visible]


def _seen(visible: memoryview | PublishedStage) -> object:
    return bytes(visible) if isinstance(visible, memoryview) else visible


TwoReplicas.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestTwoReplicas = TwoReplicas.TestCase


@settings(max_examples=40, deadline=None)
@given(st.lists(requests, max_size=40))
def test_published_offsets_are_dense_but_for_declared_gaps(work: list[Request]) -> None:
    leader = Leader(LIMITS)
    for request in work:
        if isinstance(request, list):
            leader.publish(*build(request))
        else:
            prepared = leader.projection.submit(request, term=TERM, now=Micros(leader.now))
            leader._commit(prepared.data)
    offset, time = 0, 0
    base: int
    at: int
    for applied in leader.applied:
        for gap in applied.reserved:
            assert gap[0] == offset
            offset = gap[1]
        for visible in applied.visible:
            if isinstance(visible, PublishedStage):
                base, span, at = visible.base_offset, visible.span, visible.append_time
                last = at + visible.batches - 1
            else:
                base, at, _, span = _place(visible)
                last = at
            assert base == offset
            assert at > time
            offset, time = base + span, int(last)
        assert applied.next_offset == offset
        assert applied.clock >= time


def _place(view: memoryview) -> tuple[int, int, int, int]:
    from angarium.batch import Batch

    one = Batch.trusted(view)
    return one.base_offset, one.append_time, one.length, one.span


_PROGRAM = """
from angarium.ids import Micros, NodeId, Offset, Index
from angarium.machine.catalog import *
from angarium.machine.catalog.commands import encode
from angarium.machine.changes import Ack, GroupKind, Open
from tests.unit.machine.leader import Leader, batch

leader = Leader()
for number in range(40):
    leader.publish(batch(3, producer=number % 7 + 1, sequence=3 * (number // 7)))
    leader.change(
        Open(f"group {number}", GroupKind.QUEUE, Offset(0)),
        Ack("group 0", Index(2), (number, number + 1)),
    )
catalog, time = CatalogMachine(), 0
work = [Form(cluster="c")]
work += [
    NodeRegister(incarnation=n, addresses=(), labels=Labels(region=f"r{n % 2}", zone=f"z{n % 3}"))
    for n in range(7)
]
work += [TopicCreate(name=f"topic{n}", partitions=9) for n in range(5)]
work += [NodeDrain(node=NodeId(3)), Reassign(group=4), Reassign(group=5, leaving=(1, 2))]
for command in work:
    time += 1
    catalog.apply(time, 1, encode(__import__("msgspec").structs.replace(command, time=time)))
print(leader.machine.running_hash, catalog.running_hash, leader.machine.snapshot().hex(),
      catalog.snapshot().hex())
"""


def test_nothing_depends_on_the_seed_of_pythons_hashes() -> None:
    root = Path(__file__).parents[3]
    results = set()
    for seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{root}/src:{root}"}
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        results.add(done.stdout)
    assert len(results) == 1
