"""The leader's view ahead of its commits is what the machine arrives at."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.machine.commands_at_random import LIMITS, Request, build, requests
from tests.unit.machine.leader import TERM, batch

from angarium.ids import Epoch, Index, Micros, Offset, RaftGroupId, Sequence
from angarium.machine import (
    Appended,
    Applied,
    Commit,
    Decided,
    Diverged,
    Duplicate,
    PartitionLimits,
    PartitionMachine,
    Prepared,
    Projection,
    Refused,
    Stage,
)


class Pipeline:
    """A leader whose commits lag behind what it prepares."""

    def __init__(self, limits: PartitionLimits = LIMITS) -> None:
        self.machine = PartitionMachine(limits)
        self.projection = Projection(self.machine)
        self.log: list[bytes] = []
        self.confirmed = 0
        self.now = 100

    def request(self, request: Request) -> Prepared:
        self.now += 7
        if isinstance(request, list):
            prepared = self.projection.append(build(request), term=TERM, now=Micros(self.now))
        else:
            prepared = self.projection.submit(request, term=TERM, now=Micros(self.now))
        if prepared.data is not None:
            self.log.append(prepared.data)
        return prepared

    def commit(self, entries: int) -> None:
        for _ in range(min(entries, len(self.log) - self.confirmed)):
            self.confirmed += 1
            index = Index(self.confirmed)
            applied = self.machine.apply(index, TERM, self.log[self.confirmed - 1])
            self.projection.confirm(index, applied)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(requests, st.integers(0, 4)), max_size=50))
def test_whatever_the_lag_applied_equals_projected(work: list[tuple[Request, int]]) -> None:
    pipeline = Pipeline()
    for request, commits in work:
        pipeline.request(request)
        pipeline.commit(commits)
        assert pipeline.projection.unconfirmed == len(pipeline.log) - pipeline.confirmed
    pipeline.commit(len(pipeline.log))
    assert pipeline.projection.rows() == 0
    assert pipeline.projection.next_offset == pipeline.machine.next_offset


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(requests, st.integers(0, 3)), max_size=50))
def test_answers_do_not_depend_on_how_far_the_commits_lag(work: list[tuple[Request, int]]) -> None:
    lagging, prompt = Pipeline(), Pipeline()
    for request, commits in work:
        assert lagging.request(request) == prompt.request(request)
        lagging.commit(commits)
        prompt.commit(1)


@settings(max_examples=60, deadline=None)
@given(st.lists(requests, max_size=40), st.data())
def test_a_new_projection_that_replays_the_tail_continues_alike(
    work: list[Request], data: st.DataObject
) -> None:
    first = Pipeline()
    for request in work:
        first.request(request)
    first.commit(data.draw(st.integers(0, len(first.log))))
    second = Projection(first.machine)
    for entry in first.log[first.confirmed :]:
        second.replay(TERM, entry)
    probe = data.draw(requests)
    before = first.now
    one = first.request(probe)
    if isinstance(probe, list):
        other = second.append(build(probe), term=TERM, now=Micros(before + 7))
    else:
        other = second.submit(probe, term=TERM, now=Micros(before + 7))
    assert one == other
    first.projection = second
    first.commit(len(first.log))
    assert second.rows() == 0


@settings(max_examples=40, deadline=None)
@given(st.lists(requests, max_size=40), st.integers(0, 40))
def test_the_machine_may_run_ahead_of_the_confirmations(work: list[Request], lead: int) -> None:
    pipeline = Pipeline()
    applied: list[Applied] = []
    for number, request in enumerate(work):
        pipeline.request(request)
        if number >= lead:
            while len(applied) < len(pipeline.log):
                index = Index(len(applied) + 1)
                applied.append(pipeline.machine.apply(index, TERM, pipeline.log[index - 1]))
    while len(applied) < len(pipeline.log):
        index = Index(len(applied) + 1)
        applied.append(pipeline.machine.apply(index, TERM, pipeline.log[index - 1]))
    for number, one in enumerate(applied):
        pipeline.projection.confirm(Index(number + 1), one)
    assert pipeline.projection.rows() == 0


def test_a_confirmation_does_not_uncover_an_older_state() -> None:
    pipeline = Pipeline(PartitionLimits())
    for number in range(4):
        prepared = pipeline.request([(2, 5, 0, 2 * number)])
        assert isinstance(prepared.outcomes[0], Appended)
        pipeline.commit(number % 2)
    assert isinstance(pipeline.request([(2, 5, 0, 6)]).outcomes[0], Duplicate)


def test_nothing_new_makes_no_entry() -> None:
    pipeline = Pipeline(PartitionLimits())
    pipeline.request([(2, 5, 0, 0)])
    again = pipeline.request([(2, 5, 0, 0)])
    assert again.data is None
    assert again.outcomes == (Duplicate(Offset(0), Offset(2), Micros(107)),)
    stage = Stage(name="t", epoch=Epoch(0), sequence=Sequence(0), stage="s", part=0)
    commit = Commit(name="t", epoch=Epoch(0), sequence=Sequence(0), stages=("s",))
    assert pipeline.request(stage).data is not None
    assert pipeline.request(stage).data is None
    assert pipeline.request(commit).data is not None
    repeated = pipeline.request(commit)
    assert repeated.data is None
    assert repeated.outcomes == (Decided(True, Offset(2), Offset(2), repeated=True),)
    pipeline.commit(9)


def test_an_entry_holds_only_the_batches_that_are_new() -> None:
    pipeline = Pipeline(PartitionLimits())
    prepared = pipeline.request([(2, 5, 0, 0), (2, 5, 0, 0), (1, 6, 0, 9), (1, 0, 0, 0)])
    kinds = [type(one).__name__ for one in prepared.outcomes]
    assert kinds == ["Appended", "Duplicate", "Refused", "Appended"]
    pipeline.commit(1)
    assert pipeline.machine.next_offset == 3


def test_batches_are_stamped_in_place() -> None:
    machine = PartitionMachine()
    one = batch(4)
    prepared = Projection(machine).append([one], term=TERM, now=Micros(50))
    assert prepared.data is not None
    assert prepared.data[8:] == bytes(one)
    assert prepared.outcomes == (Appended(Offset(0), Offset(4), Micros(50)),)


def test_a_machine_that_decides_otherwise_is_noticed() -> None:
    pipeline = Pipeline(PartitionLimits())
    prepared = pipeline.request([(2, 5, 0, 0)])
    pipeline.machine.numbering.producers.low_water = 10
    assert prepared.data is not None
    applied = pipeline.machine.apply(Index(1), TERM, prepared.data)
    with pytest.raises(Diverged):
        pipeline.projection.confirm(Index(1), applied)


def test_an_entry_nobody_projected_is_noticed() -> None:
    machine = PartitionMachine()
    projection = Projection(machine)
    applied = machine.apply(Index(1), TERM, b"\x0e\x01\x91\x05")
    with pytest.raises(Diverged):
        projection.confirm(Index(1), applied)


def test_a_projection_holds_no_more_than_the_uncommitted_tail() -> None:
    pipeline = Pipeline(PartitionLimits())
    for producer in range(1, 2_001):
        pipeline.request([(1, producer, 0, 0)])
        pipeline.commit(1 if producer % 2 else 2)
        assert pipeline.projection.rows() <= 2


def test_behind_a_time_from_the_future_time_goes_on_half_as_fast() -> None:
    projection = Projection(PartitionMachine(LIMITS))
    future, now = 10_000, 1_000

    def appended(at: int) -> int:
        (outcome,) = projection.append([batch()], term=TERM, now=Micros(at)).outcomes
        assert isinstance(outcome, Appended)
        return outcome.append_time

    assert appended(future) == future
    first = appended(now)
    assert first == future + 1, "a new leader, or a clock that was set back, begins where it is"
    assert appended(now + 100) == first + 50
    assert projection.time(Micros(now + 300)) == first + 50 + 100
    assert appended(now + 100) == first + 51, "strictly increasing, even while time stands still"
    assert appended(future + 2_000) == future + 2_000


def test_what_a_leaders_time_leaps_over_has_not_passed() -> None:
    """Seed 102657: an hour behind, put right, and the partition was half an hour ahead."""
    projection = Projection(PartitionMachine(LIMITS))
    real, behind = 10_000_000, 1_000_000

    def appended(at: int) -> int:
        (outcome,) = projection.append([batch()], term=TERM, now=Micros(at)).outcomes
        assert isinstance(outcome, Appended)
        return outcome.append_time

    assert appended(real) == real
    assert appended(behind) == real + 1
    projection.forget_pace()
    assert appended(real - 10) == real + 2, "nearly caught up: nothing has passed"
    assert appended(real - 4) == real + 2 + 3, "and from there on half as fast as before"


def test_refusals_that_make_others_drop_stages_go_through_the_log() -> None:
    """A leader that was replaced without knowing it may lack what it misses."""
    pipeline = Pipeline()
    stage = Stage(
        name="n", epoch=Epoch(0), sequence=Sequence(1), home=RaftGroupId(1), stage="a", part=0
    )
    assert pipeline.request(stage).data is not None
    lacking = Commit(name="n", epoch=Epoch(0), sequence=Sequence(1), stages=("a", "b"))
    refused = pipeline.request(lacking)
    assert refused.data is not None
    assert isinstance(refused.outcomes[0], Refused)
    pipeline.commit(2)
    there = pipeline.machine.numbering.transactions.series.get("n")
    assert there is not None
    assert there.attempts[0].stages == ("a",), "it changes nothing all the same"
