"""Two machines that apply the same entries are the same, whatever one of them went through."""

from __future__ import annotations

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

from angarium.machine import Applied, Command, PartitionMachine, Projection, PublishedStage


class TwoReplicas(RuleBasedStateMachine):
    """Both lead, with the same requests; one of them is stopped and restored at any time.

    So what a restored machine answers is compared too, not only what it applies.
    """

    def __init__(self) -> None:
        super().__init__()
        self.straight = Leader(LIMITS)
        self.restored = Leader(LIMITS)
        self.compared = 0

    @rule(sends=random_batches)
    def publish(self, sends: Batches) -> None:
        assert self.straight.publish(*build(sends)) == self.restored.publish(*build(sends))
        self._compare()

    @rule(command=commands, waits=st.sampled_from([0, 0, 0, 100]))
    def command(self, command: Command, waits: int) -> None:
        prepared = []
        for leader in (self.straight, self.restored):
            leader.now += waits
            prepared.append(leader.submit(command))
        assert prepared[0] == prepared[1]
        self._compare()

    @rule(data=st.binary(min_size=1, max_size=12))
    def garbage(self, data: bytes) -> None:
        # Straight into the log: no leader would have prepared it, so it is projected by replay.
        for leader in (self.straight, self.restored):
            leader.projection.replay(TERM, data)
            leader.commit(data)
        self._compare()

    @rule()
    def restart(self) -> None:
        machine = PartitionMachine()
        machine.restore(self.restored.machine.snapshot())
        self.restored.machine = machine
        self.restored.projection = Projection(machine)

    @rule(steps=st.integers(0, 6))
    def snapshot_beside_the_work(self, steps: int) -> None:
        slices = self.restored.machine.snapshot_slices()
        for _ in range(steps):
            if next(slices, None) is None:
                return
        # Given up half way: the machine must not notice.

    def _compare(self) -> None:
        ours, theirs = self.straight.applied, self.restored.applied
        assert len(ours) == len(theirs)
        for number in range(self.compared, len(ours)):
            _assert_same(ours[number], theirs[number])
        self.compared = len(ours)

    @invariant()
    def replicas_agree(self) -> None:
        ours, theirs = self.straight.machine, self.restored.machine
        assert ours.running_hash == theirs.running_hash
        assert ours.applied_index == theirs.applied_index
        assert ours.numbering.producers.low_water == theirs.numbering.producers.low_water
        assert self.straight.projection.rows() == 0, "everything is confirmed"

    @invariant()
    def state_adds_up(self) -> None:
        machine = self.restored.machine
        tables = machine.numbering.transactions
        assert machine.start_offset <= machine.next_offset
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
        for group in machine.groups.by_name.values():
            assert group.floor not in group.acked
            assert all(offset not in group.acked for offset in group.attempts)

    def teardown(self) -> None:
        assert self.straight.machine.snapshot() == self.restored.machine.snapshot()


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
            leader.submit(request)
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
