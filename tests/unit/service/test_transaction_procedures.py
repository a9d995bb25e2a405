"""The coordinator's steps against real machines: broken off anywhere, they come to the same end."""

from __future__ import annotations

from contextlib import suppress

import pytest
from tests.unit.service.homes_of_three import HOME, LEFT, RIGHT, CutOff, Groups, named

from angarium.batch import encode as batch
from angarium.errors import (
    LayoutChanged,
    ProducerFenced,
    TransactionAborted,
)
from angarium.ids import Epoch, Offset, RaftGroupId
from angarium.kinds import GroupKind
from angarium.machine import Cursors, Fence, Refused, Stage
from angarium.machine.changes import Ack, Open
from angarium.machine.decisions import Phase
from angarium.machine.partition_limits import PartitionLimits
from angarium.service.transactions import procedure

STAGES = ((LEFT, ("a",)), (RIGHT, ("a",)))


def staged(groups: Groups, sequence: int, *, epoch: int = 0, stage: str = "a") -> None:
    for group in (LEFT, RIGHT):
        command = Stage(
            **named(sequence, epoch=epoch),
            home=HOME,
            stage=stage,
            part=0,
            batches=bytes(batch([b"one", b"two"])),
        )
        assert not isinstance(groups.follow(procedure.stage(group, command)).outcome, Refused)


def test_a_commit_publishes_everywhere_and_lets_the_name_go_on() -> None:
    groups = Groups()
    for sequence in range(3):
        staged(groups, sequence)
        ended = groups.follow(procedure.commit(HOME, named(sequence), STAGES))
        assert (ended.committed, ended.repeated) == (True, False)
        assert ended.unfinished is not None
        groups.follow(procedure.finish(HOME, ended.unfinished))
        assert ended.offsets[LEFT].base_offset == 2 * sequence
        assert groups.end(LEFT) == groups.end(RIGHT) == 2 * sequence + 2
        decision = groups.machines[HOME].numbering.decisions.records.get("n")
        assert decision is not None
        assert decision.phase is Phase.FINISHED


@pytest.mark.parametrize("asks", range(8))
def test_a_commit_that_broke_off_anywhere_is_seen_through_by_the_next_run(asks: int) -> None:
    groups = Groups()
    staged(groups, 0)
    with suppress(CutOff):
        groups.follow(procedure.commit(HOME, named(0), STAGES), asks_max=asks)
    last = groups.follow(procedure.fence(HOME, "n", Epoch(1)))
    is_committed = procedure.outer(last) == 0
    assert is_committed == (asks > 0)
    assert groups.end(LEFT) == groups.end(RIGHT) == (2 if is_committed else 0)
    # The old run hears the truth, or that it cannot be told any more; it changes nothing.
    if is_committed:
        assert groups.follow(procedure.commit(HOME, named(0), STAGES)).repeated
    else:
        with pytest.raises(ProducerFenced):
            groups.follow(procedure.commit(HOME, named(0), STAGES))
    # The new run goes on, over what the old one left behind in the partitions.
    after = 0 if not is_committed else 1
    staged(groups, after, epoch=1)
    ended = groups.follow(procedure.commit(HOME, named(after, epoch=1), STAGES))
    assert not ended.repeated
    assert groups.end(LEFT) == groups.end(RIGHT) == (4 if is_committed else 2)


@pytest.mark.parametrize("asks", range(8))
def test_a_commit_that_broke_off_is_finished_by_asking_again(asks: int) -> None:
    groups = Groups()
    staged(groups, 0)
    with suppress(CutOff):
        groups.follow(procedure.commit(HOME, named(0), STAGES), asks_max=asks)
    ended = groups.follow(procedure.commit(HOME, named(0), STAGES))
    assert ended.committed
    assert {group: decided.base_offset for group, decided in ended.offsets.items()} == {
        LEFT: 0,
        RIGHT: 0,
    }
    assert groups.end(LEFT) == groups.end(RIGHT) == 2


@pytest.mark.parametrize("is_finished", [False, True])
def test_a_commit_repeated_with_other_stages_brings_nothing_more_to_light(
    *, is_finished: bool
) -> None:
    """As a job does that is run again under its id and deals its rows out otherwise."""
    groups = Groups()

    def stage(group: RaftGroupId, name: str) -> None:
        command = Stage(
            **named(0), home=HOME, stage=name, part=0, batches=bytes(batch([b"one", b"two"]))
        )
        groups.follow(procedure.stage(group, command))

    stage(LEFT, "first run")
    first = groups.follow(procedure.commit(HOME, named(0), ((LEFT, ("first run",)),)))
    assert first.unfinished is not None
    if is_finished:
        groups.follow(procedure.finish(HOME, first.unfinished))
    stage(LEFT, "second run")
    stage(RIGHT, "second run")
    again = ((LEFT, ("second run",)), (RIGHT, ("second run",)))
    ended = groups.follow(procedure.commit(HOME, named(0), again))
    assert (ended.committed, ended.repeated) == (True, True)
    assert {group: decided.base_offset for group, decided in ended.offsets.items()} == {LEFT: 0}
    assert (groups.end(LEFT), groups.end(RIGHT)) == (2, 0)
    for group in (LEFT, RIGHT):
        series = groups.machines[group].numbering.transactions.series.get("n")
        assert series is not None
        assert series.attempts == (), "what the second run staged is dropped"


def test_what_a_participant_asks_about_is_aborted_unless_it_was_decided() -> None:
    groups = Groups()
    staged(groups, 0)
    series = groups.machines[LEFT].numbering.transactions.series.get("n")
    assert series is not None
    groups.follow(procedure.resolve(LEFT, "n", series.attempts[0]))
    with pytest.raises(TransactionAborted):
        groups.follow(procedure.commit(HOME, named(0), STAGES))
    # The refused commit has tidied up behind itself.
    right = groups.machines[RIGHT].numbering.transactions.series.get("n")
    assert right is not None
    assert right.attempts == ()
    assert groups.end(LEFT) == groups.end(RIGHT) == 0


def test_whoever_looked_before_the_last_stage_publishes_all_that_was_decided() -> None:
    """Seed 620716: what was seen of a transaction is older than its decision."""
    groups = Groups()
    staged(groups, 0)
    series = groups.machines[LEFT].numbering.transactions.series.get("n")
    assert series is not None
    seen = series.attempts[0]
    staged(groups, 0, stage="late")
    both = tuple((group, ("a", "late")) for group in (LEFT, RIGHT))
    with pytest.raises(CutOff):
        groups.follow(procedure.commit(HOME, named(0), both), asks_max=1)
    groups.follow(procedure.resolve(LEFT, "n", seen))
    assert groups.end(LEFT) == 4
    assert groups.follow(procedure.commit(HOME, named(0), both)).committed
    assert groups.end(RIGHT) == 4


def test_what_a_participant_asks_about_is_published_if_it_was_decided() -> None:
    groups = Groups()
    staged(groups, 0)
    staged(groups, 0, stage="left behind by a task that failed")
    with pytest.raises(CutOff):
        groups.follow(procedure.commit(HOME, named(0), STAGES), asks_max=1)
    for group in (LEFT, RIGHT):
        series = groups.machines[group].numbering.transactions.series.get("n")
        assert series is not None
        groups.follow(procedure.resolve(group, "n", series.attempts[0]))
        assert groups.end(group) == 2


def test_an_abort_comes_too_late_for_what_is_committed() -> None:
    groups = Groups()
    staged(groups, 0)
    with pytest.raises(CutOff):
        groups.follow(procedure.commit(HOME, named(0), STAGES), asks_max=1)
    ended = groups.follow(procedure.abort(HOME, named(0), (LEFT, RIGHT)))
    assert ended.committed
    assert groups.end(LEFT) == groups.end(RIGHT) == 2


def test_a_commit_that_names_a_stage_nobody_filled_does_not_hang() -> None:
    groups = Groups()
    staged(groups, 0)
    stages = ((LEFT, ("a", "nobody's")), (RIGHT, ("a",)))
    assert groups.follow(procedure.commit(HOME, named(0), stages)).committed
    assert groups.end(LEFT) == groups.end(RIGHT) == 2


def test_too_many_undecided_ones_are_ended_before_another_is_staged() -> None:
    groups = Groups()
    count = PartitionLimits().attempts_max + 3
    for epoch in range(count):
        staged(groups, 0, epoch=epoch)
    done = groups.follow(procedure.commit(HOME, named(0, epoch=count - 1), STAGES))
    assert done.committed
    assert groups.end(LEFT) == 2


# --- acknowledgements ----------------------------------------------------------------------------


def with_group() -> tuple[Groups, int]:
    groups = Groups()
    staged(groups, 0)
    groups.follow(procedure.commit(HOME, named(0), STAGES))
    groups.apply(LEFT, Cursors(changes=(Open("g", GroupKind.QUEUE, Offset(0)),)))
    return groups, groups.machines[LEFT].groups.by_name["g"].generation


def acking(groups: Groups, name: str, generation: int, start: int, end: int) -> str:
    """Stage an acknowledgement and return why it was refused, if it was."""
    command = Stage(
        **named(1, name=name), home=HOME, stage="a", part=0, acks=(("g", generation, start, end),)
    )
    outcome = groups.follow(procedure.stage(LEFT, command)).outcome
    return outcome.code if isinstance(outcome, Refused) else ""


def test_what_a_transaction_acknowledges_is_settled_when_it_commits() -> None:
    groups, generation = with_group()
    assert acking(groups, "one", generation, 0, 2) == ""
    group = groups.machines[LEFT].groups.by_name["g"]
    assert group.floor == 0
    groups.follow(procedure.commit(HOME, named(1, name="one"), ((LEFT, ("a",)),)))
    assert group.floor == 2


def test_the_same_records_are_settled_by_one_transaction_only() -> None:
    groups, generation = with_group()
    assert acking(groups, "one", generation, 0, 2) == ""
    # They were delivered again, to another one: the first has lost them.
    assert acking(groups, "other", generation, 1, 2) == ""
    with pytest.raises(TransactionAborted):
        groups.follow(procedure.commit(HOME, named(1, name="one"), ((LEFT, ("a",)),)))
    groups.follow(procedure.commit(HOME, named(1, name="other"), ((LEFT, ("a",)),)))
    assert acking(groups, "third", generation, 1, 2) == "GROUP_FENCED"
    assert acking(groups, "third", generation, 0, 1) == ""


def test_one_that_was_decided_settles_before_another_can_take_its_records() -> None:
    groups, generation = with_group()
    assert acking(groups, "one", generation, 0, 2) == ""
    with pytest.raises(CutOff):
        groups.follow(procedure.commit(HOME, named(1, name="one"), ((LEFT, ("a",)),)), asks_max=1)
    assert acking(groups, "other", generation, 0, 1) == "GROUP_FENCED"
    assert groups.machines[LEFT].groups.by_name["g"].floor == 2


def test_acknowledgements_that_make_no_sense_are_refused() -> None:
    groups, generation = with_group()
    assert acking(groups, "one", generation + 1, 0, 1) == "GROUP_FENCED"
    assert acking(groups, "one", generation, 0, 99) == "OFFSET_OUT_OF_RANGE"
    groups.apply(LEFT, Cursors(changes=(Ack("g", generation, (0, 1)),)))  # type: ignore[arg-type]
    assert acking(groups, "one", generation, 0, 2) == "GROUP_FENCED"
    assert acking(groups, "one", generation, 1, 2) == ""


# --- numbers of one's own ------------------------------------------------------------------------


def publish(groups: Groups, sequence: int, *, epoch: int = 0) -> bool:
    data = bytes(batch([b"one"]))
    steps = procedure.publish_sequenced(LEFT, named(sequence, epoch=epoch), data)
    return groups.follow(steps)[1].repeated


def test_a_number_is_stored_once_and_gaps_are_fine() -> None:
    groups = Groups()
    assert [publish(groups, one) for one in (0, 0, 5, 3, 5, 6)] == [
        False,
        True,
        False,
        True,
        True,
        False,
    ]
    assert groups.end(LEFT) == 3


@pytest.mark.parametrize("asks", range(3))
def test_a_publish_that_broke_off_does_not_hold_up_the_next_one(asks: int) -> None:
    groups = Groups()
    steps = procedure.publish_sequenced(LEFT, named(0), bytes(batch([b"one"])))
    with suppress(CutOff):
        groups.follow(steps, asks_max=asks)
    stored = groups.end(LEFT)
    assert publish(groups, 1) is False
    assert groups.end(LEFT) == stored + 1


def test_asking_for_the_last_number_fences_the_run_before() -> None:
    groups = Groups()
    assert groups.follow(procedure.fence_partition(LEFT, "n", Epoch(0))) == -1
    publish(groups, 4)
    steps = procedure.publish_sequenced(LEFT, named(7), bytes(batch([b"one"])))
    with pytest.raises(CutOff):
        groups.follow(steps, asks_max=1)  # staged, and not committed
    for _ in range(2):
        last = groups.follow(procedure.fence_partition(LEFT, "n", Epoch(1)))
        assert procedure.outer(last) == 4
    with pytest.raises(ProducerFenced):
        publish(groups, 7)
    assert publish(groups, 7, epoch=1) is False
    assert groups.end(LEFT) == 2


def test_a_number_that_an_earlier_layout_has_sent_elsewhere_is_not_stored_again() -> None:
    groups = Groups()
    data = bytes(batch([b"one"]))
    publish(groups, 7)
    groups.apply(LEFT, Fence(layout=1))
    former = ((LEFT, 0),)
    again = procedure.publish_sequenced(RIGHT, named(7), data, layout=1, former=former)
    stored_in, decided = groups.follow(again)
    assert (stored_in, decided.repeated) == (LEFT, True)
    new = procedure.publish_sequenced(RIGHT, named(8), data, layout=1, former=former)
    stored_in, decided = groups.follow(new)
    assert (stored_in, decided.repeated) == (RIGHT, False)
    assert (groups.end(LEFT), groups.end(RIGHT)) == (1, 1)


def test_a_number_that_is_sent_by_an_older_layout_is_recognised_or_refused() -> None:
    groups = Groups()
    data = bytes(batch([b"one"]))
    publish(groups, 7)
    groups.apply(LEFT, Fence(layout=1))
    again = procedure.publish_sequenced(LEFT, named(7), data, layout=0)
    assert groups.follow(again)[1].repeated
    with pytest.raises(LayoutChanged):
        groups.follow(procedure.publish_sequenced(LEFT, named(8), data, layout=0))
    assert groups.end(LEFT) == 1
