"""Staged transactions as a participating partition sees them."""

from __future__ import annotations

from tests.unit.machine.leader import Leader, assert_refused, batch

from angarium.ids import Epoch, Index, Offset, RaftGroupId, Sequence
from angarium.kinds import GroupKind
from angarium.machine import (
    Abort,
    Appended,
    Commit,
    Decided,
    Done,
    Outcome,
    PartitionLimits,
    PublishedStage,
    SeriesDelete,
    Stage,
    Staged,
)
from angarium.machine.changes import Open, Seek, StagedAck

HOME = RaftGroupId(9)


def stage(
    leader: Leader,
    records: int = 2,
    *,
    name: str = "query",
    epoch: int = 1,
    sequence: int = 0,
    stage: str = "a",
    part: int = 0,
    home: RaftGroupId | None = None,
    acks: tuple[StagedAck, ...] = (),
) -> Outcome:
    return leader.do(
        Stage(
            name=name,
            epoch=Epoch(epoch),
            sequence=Sequence(sequence),
            stage=stage,
            part=part,
            home=home,
            batches=bytes(batch(records)) if records else b"",
            acks=acks,
        )
    )


def commit(
    leader: Leader, *stages: str, name: str = "query", epoch: int = 1, sequence: int = 0
) -> Outcome:
    return leader.do(
        Commit(name=name, epoch=Epoch(epoch), sequence=Sequence(sequence), stages=stages)
    )


def abort(leader: Leader, *, epoch: int = 1, sequence: int = 0) -> Outcome:
    return leader.do(Abort(name="query", epoch=Epoch(epoch), sequence=Sequence(sequence)))


def test_nothing_staged_is_in_the_partition_before_its_commit() -> None:
    leader = Leader()
    assert stage(leader) == Staged(1)
    assert leader.machine.next_offset == 0
    assert not leader.applied[-1].visible
    leader.publish(batch(3))
    assert commit(leader, "a") == Decided(True, Offset(3), Offset(5))
    (published,) = leader.applied[-1].visible
    assert isinstance(published, PublishedStage)
    assert (published.slot, published.base_offset, published.span) == (1, 3, 2)
    assert published.append_time == leader.machine.clock
    assert leader.applied[-1].stage_drops == (1,)
    assert leader.machine.next_offset == 5


def test_each_published_batch_has_a_time_of_its_own() -> None:
    leader = Leader()
    for part in range(3):
        stage(leader, part=part)
    stage(leader, stage="b")
    commit(leader, "b", "a")
    first, second = leader.applied[-1].visible
    assert isinstance(first, PublishedStage)
    assert isinstance(second, PublishedStage)
    assert (first.batches, second.batches) == (1, 3)
    assert second.append_time == first.append_time + 1
    assert leader.machine.clock == second.append_time + 2
    (after,) = leader.publish(batch())
    assert isinstance(after, Appended)
    assert after.append_time > leader.applied[-2].clock


def test_a_commit_publishes_the_named_stages_in_order_and_drops_the_others() -> None:
    leader = Leader()
    stage(leader, 1, stage="a")
    stage(leader, 5, stage="failed")
    stage(leader, 2, stage="b")
    assert commit(leader, "b", "a") == Decided(True, Offset(0), Offset(3))
    slots = [one.slot for one in leader.applied[-1].visible if isinstance(one, PublishedStage)]
    assert slots == [3, 1]
    assert sorted(leader.applied[-1].stage_drops) == [1, 2, 3]


def test_a_repeated_part_is_recognised_and_a_missing_one_noticed() -> None:
    leader = Leader()
    stage(leader)
    assert stage(leader) == Staged(1, repeated=True)
    assert_refused(stage(leader, part=2), "SEQUENCE_GAP")
    assert stage(leader, part=1) == Staged(2)
    assert commit(leader, "a") == Decided(True, Offset(0), Offset(4))


def test_open_stages_are_known_with_their_parts() -> None:
    leader = Leader()
    stage(leader)
    stage(leader, part=1)
    stage(leader, stage="b")
    assert leader.machine.open_stages() == {1: 2, 2: 1}
    commit(leader, "a")
    assert leader.machine.open_stages() == {}


def test_a_repeated_commit_is_answered_already_done() -> None:
    leader = Leader()
    stage(leader)
    first = commit(leader, "a")
    assert commit(leader, "a") == Decided(True, Offset(0), Offset(2), repeated=True)
    assert first == Decided(True, Offset(0), Offset(2))
    # A later run that repeats the same work is told so when it stages, and when it commits.
    assert stage(leader, epoch=2) == Decided(True, Offset(0), Offset(2), repeated=True)
    assert commit(leader, "a", epoch=2) == Decided(True, Offset(0), Offset(2), repeated=True)
    assert leader.machine.next_offset == 2


def test_a_late_retry_never_hits_a_later_transaction() -> None:
    leader = Leader()
    stage(leader, sequence=0)
    commit(leader, "a", sequence=0)
    stage(leader, sequence=1)
    assert commit(leader, "a", sequence=0) == Decided(True, Offset(0), Offset(2), repeated=True)
    assert abort(leader, sequence=0) == Decided(True, Offset(0), Offset(2), repeated=True)
    assert leader.machine.next_offset == 2
    assert commit(leader, "a", sequence=1) == Decided(True, Offset(2), Offset(4))
    assert commit(leader, "a", sequence=0) == Decided(True, repeated=True)


def test_an_aborted_transaction_cannot_be_opened_or_committed_again() -> None:
    leader = Leader()
    stage(leader)
    assert abort(leader) == Decided(False)
    assert leader.applied[-1].stage_drops == (1,)
    assert abort(leader) == Decided(False, repeated=True)
    assert_refused(stage(leader), "TRANSACTION_ABORTED")
    assert_refused(commit(leader, "a"), "TRANSACTION_ABORTED")
    assert isinstance(stage(leader, epoch=2), Staged)


def test_an_abort_that_arrives_first_keeps_the_late_stage_out() -> None:
    leader = Leader()
    assert abort(leader) == Decided(False)
    assert_refused(stage(leader), "TRANSACTION_ABORTED")


def test_a_commit_without_stages_still_counts() -> None:
    leader = Leader()
    assert commit(leader) == Decided(True, Offset(0), Offset(0))
    assert commit(leader) == Decided(True, Offset(0), Offset(0), repeated=True)


def test_a_commit_of_a_missing_stage_changes_nothing() -> None:
    leader = Leader()
    stage(leader)
    assert_refused(commit(leader, "a", "b"), "NOT_FOUND")
    assert_refused(commit(leader, "a", "a"), "NOT_FOUND")
    assert commit(leader, "a") == Decided(True, Offset(0), Offset(2))


def test_a_newer_run_fences_the_older_one() -> None:
    leader = Leader()
    stage(leader, epoch=1)
    assert isinstance(stage(leader, epoch=2), Staged)
    assert leader.applied[-1].stage_drops == (1,)
    assert_refused(stage(leader, epoch=1, part=1), "PRODUCER_FENCED")
    assert_refused(commit(leader, "a", epoch=1), "TRANSACTION_ABORTED")
    assert commit(leader, "a", epoch=2) == Decided(True, Offset(0), Offset(2))


def test_one_run_has_one_open_transaction_at_a_time() -> None:
    leader = Leader()
    stage(leader, sequence=0)
    assert_refused(stage(leader, sequence=1), "TRANSACTION_PENDING")


def test_a_transaction_open_for_too_long_can_only_be_aborted() -> None:
    leader = Leader(PartitionLimits(transaction_micros_max=1_000_000))
    stage(leader)
    assert not list(leader.machine.numbering.transactions.overdue(leader.now, PartitionLimits()))
    leader.now += 1_000_100
    assert_refused(stage(leader, part=1), "TRANSACTION_ABORTED")
    assert_refused(commit(leader, "a"), "TRANSACTION_ABORTED")
    overdue = leader.machine.numbering.transactions.overdue(leader.now, leader.machine.limits)
    assert [(name, one.sequence) for name, one in overdue] == [("query", 0)]
    assert abort(leader) == Decided(False)
    assert leader.machine.numbering.transactions.staged_bytes == 0


def test_a_participant_never_gives_up_what_its_home_may_have_committed() -> None:
    leader = Leader(PartitionLimits(transaction_micros_max=1_000_000))
    stage(leader, epoch=1, home=HOME)
    stage(leader, epoch=2, home=HOME)
    leader.now += 2_000_000
    # Overdue and of a fenced epoch: but its home has decided, and that is what counts.
    assert commit(leader, "a", epoch=1) == Decided(True, Offset(0), Offset(2))
    assert sorted(leader.applied[-1].stage_drops) == [1, 2]


def test_a_transaction_has_one_home() -> None:
    leader = Leader()
    stage(leader, home=HOME)
    assert_refused(stage(leader, part=1), "INVALID_ARGUMENT")
    assert_refused(stage(leader, part=1, home=RaftGroupId(10)), "INVALID_ARGUMENT")


def test_commits_of_a_name_are_carried_out_in_order() -> None:
    leader = Leader()
    stage(leader, sequence=0, home=HOME)
    stage(leader, sequence=1, home=HOME)
    assert_refused(commit(leader, "a", sequence=1), "TRANSACTION_PENDING")
    commit(leader, "a", sequence=0)
    assert commit(leader, "a", sequence=1) == Decided(True, Offset(2), Offset(4))


def test_limits_are_named_and_change_nothing() -> None:
    size = len(batch(2))
    limits = PartitionLimits(staged_bytes_max=2 * size, series_max=1, stages_max=2, attempts_max=1)
    leader = Leader(limits)
    stage(leader, stage="a", home=HOME)
    stage(leader, stage="b", home=HOME)
    for refusal, limit in (
        (stage(leader, stage="c", home=HOME), "stages_max"),
        (stage(leader, stage="a", part=1, home=HOME), "staged_bytes_max"),
        (stage(leader, name="other"), "series_max"),
        (stage(leader, sequence=1, home=HOME), "attempts_max"),
    ):
        assert_refused(refusal, "RESOURCE_EXHAUSTED")
        assert limit in getattr(refusal, "message", "")
    assert commit(leader, "a", "b") == Decided(True, Offset(0), Offset(4))


def test_a_partition_forgets_names_that_their_home_remembers_and_no_other() -> None:
    leader = Leader(PartitionLimits(series_max=3, series_micros_min=1_000_000))
    series = leader.machine.numbering.transactions.series
    for name, home in (("own", None), ("at home", HOME), ("open", HOME)):
        stage(leader, name=name, home=home)
    for name in ("own", "at home"):
        assert isinstance(commit(leader, "a", name=name), Decided)
    assert_refused(stage(leader, name="new", home=HOME), "RESOURCE_EXHAUSTED")
    leader.now += 1_000_100
    assert stage(leader, name="new", home=HOME) == Staged(1)
    assert [name for name in ("own", "at home", "open", "new") if series.get(name)] == [
        "own",
        "open",
        "new",
    ]
    assert commit(leader, "a", name="own") == Decided(True, Offset(0), Offset(2), repeated=True)
    assert_refused(stage(leader, name="newer", home=HOME), "RESOURCE_EXHAUSTED")


def test_staged_acknowledgements_count_when_the_commit_applies() -> None:
    leader = Leader()
    leader.publish(batch(10))
    leader.change(Open("g", GroupKind.QUEUE, Offset(0)))
    generation = leader.index
    group = leader.machine.groups.by_name["g"]
    stage(leader, 0, acks=(("g", generation, 0, 4), ("gone", 1, 0, 4)))
    assert group.floor == 0
    assert commit(leader, "a") == Decided(True, Offset(10), Offset(10))
    assert group.floor == 4


def test_staged_acknowledgements_do_not_disturb_a_group_that_was_moved() -> None:
    leader = Leader()
    leader.publish(batch(10))
    leader.change(Open("g", GroupKind.QUEUE, Offset(0)))
    generation = Index(leader.index)
    stage(leader, 0, acks=(("g", generation, 0, 4),))
    leader.change(Seek("g", Offset(1)))
    commit(leader, "a")
    assert leader.machine.groups.by_name["g"].floor == 1


def test_batches_that_are_none_are_refused() -> None:
    leader = Leader()
    outcome = leader.do(
        Stage(name="q", epoch=Epoch(0), sequence=Sequence(0), stage="a", part=0, batches=b"x" * 200)
    )
    assert_refused(outcome, "INVALID_BATCH")


def test_a_name_is_forgotten_only_when_nothing_is_open() -> None:
    leader = Leader()
    stage(leader)
    assert_refused(leader.do(SeriesDelete(name="query")), "TRANSACTION_PENDING")
    commit(leader, "a")
    assert leader.do(SeriesDelete(name="query")) == Done()
    assert leader.do(SeriesDelete(name="query")) == Done(changed=False)
