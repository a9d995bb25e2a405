"""Transactions over several partitions, as their home group decides them."""

from __future__ import annotations

from tests.unit.machine.leader import Leader, assert_refused

from angarium.ids import Epoch, RaftGroupId, Sequence
from angarium.machine import (
    Begin,
    Decide,
    Decided,
    Done,
    Finish,
    Outcome,
    PartitionLimits,
    SeriesDelete,
)
from angarium.machine.decisions import Phase

P, Q = RaftGroupId(4), RaftGroupId(5)


def begin(leader: Leader, *participants: RaftGroupId, epoch: int = 1, sequence: int = 0) -> Outcome:
    return leader.do(
        Begin(name="t", epoch=Epoch(epoch), sequence=Sequence(sequence), participants=participants)
    )


def decide(leader: Leader, commit: bool, *, epoch: int = 1, sequence: int = 0) -> Outcome:
    stages = ((P, ("a", "b")), (Q, ("a",))) if commit else ()
    return leader.do(
        Decide(
            name="t",
            epoch=Epoch(epoch),
            sequence=Sequence(sequence),
            commit=commit,
            stages=stages,
        )
    )


def finish(leader: Leader, *, epoch: int = 1, sequence: int = 0) -> Outcome:
    return leader.do(Finish(name="t", epoch=Epoch(epoch), sequence=Sequence(sequence)))


def test_a_commit_is_kept_with_what_to_publish_where() -> None:
    leader = Leader()
    assert begin(leader, P) == Done()
    assert begin(leader, P) == Done(changed=False)
    assert begin(leader, Q) == Done()
    assert decide(leader, True) == Decided(True)
    record = leader.machine.numbering.decisions.records.get("t")
    assert record is not None
    assert record.participants == (P, Q)
    assert record.stages == ((P, ("a", "b")), (Q, ("a",)))


def test_whatever_is_decided_first_holds() -> None:
    leader = Leader()
    begin(leader, P, Q)
    decide(leader, True)
    # A participant asks: it proposes an abort, and learns that it was a commit.
    assert decide(leader, False) == Decided(True, repeated=True)
    assert decide(leader, True) == Decided(True, repeated=True)

    other = Leader()
    begin(other, P, Q)
    assert decide(other, False) == Decided(False)
    assert decide(other, False) == Decided(False, repeated=True)
    assert_refused(decide(other, True), "TRANSACTION_ABORTED")


def test_what_a_commit_was_of_is_told_until_the_next_commit() -> None:
    leader = Leader()

    def said() -> str:
        record = leader.machine.numbering.decisions.records.get("t")
        assert record is not None
        return record.content

    def commit(content: str, *, epoch: int = 1, sequence: int = 0) -> Outcome:
        number = Sequence(sequence)
        command = Decide(
            name="t", epoch=Epoch(epoch), sequence=number, commit=True, content=content
        )
        return leader.do(command)

    assert commit("offsets up to 7") == Decided(True)
    # The same number with something else in it changes nothing, in whichever epoch.
    assert commit("offsets up to 9") == Decided(True, repeated=True)
    assert commit("offsets up to 9", epoch=2) == Decided(True, repeated=True)
    assert said() == "offsets up to 7"
    finish(leader)
    begin(leader, P, epoch=2, sequence=1)
    decide(leader, False, epoch=2, sequence=1)
    assert said() == "offsets up to 7"
    assert_refused(commit("x" * 1_025, epoch=2, sequence=2), "TOO_LARGE")
    assert commit("", epoch=2, sequence=2) == Decided(True)
    assert said() == ""


def test_asking_about_an_unknown_transaction_aborts_it() -> None:
    leader = Leader()
    assert decide(leader, False) == Decided(False)
    assert_refused(begin(leader, P), "TRANSACTION_ABORTED")
    assert_refused(decide(leader, True), "TRANSACTION_ABORTED")


def test_a_decision_needs_no_begin() -> None:
    leader = Leader()
    assert decide(leader, True) == Decided(True)
    record = leader.machine.numbering.decisions.records.get("t")
    assert record is not None
    assert record.participants == (P, Q)


def test_a_name_moves_on_only_when_its_commit_is_carried_out() -> None:
    leader = Leader()
    begin(leader, P, sequence=0)
    assert_refused(begin(leader, P, sequence=1), "TRANSACTION_PENDING")
    assert_refused(finish(leader), "TRANSACTION_PENDING")
    decide(leader, True, sequence=0)
    assert_refused(begin(leader, P, sequence=1), "TRANSACTION_PENDING")
    assert finish(leader) == Done()
    assert finish(leader) == Done(changed=False)
    assert begin(leader, P, sequence=1) == Done()
    assert decide(leader, True, sequence=0) == Decided(True, repeated=True)


def test_a_newer_run_aborts_what_the_older_left_open() -> None:
    leader = Leader()
    begin(leader, P, epoch=1, sequence=7)
    assert begin(leader, P, epoch=2, sequence=7) == Done()
    assert_refused(decide(leader, True, epoch=1, sequence=7), "PRODUCER_FENCED")
    # A participant that still holds the older attempt asks and is told to drop it.
    assert decide(leader, False, epoch=1, sequence=7) == Decided(False, repeated=True)
    assert decide(leader, True, epoch=2, sequence=7) == Decided(True)


def test_a_newer_run_that_repeats_a_commit_is_told_so() -> None:
    leader = Leader()
    begin(leader, P, epoch=1, sequence=7)
    decide(leader, True, epoch=1, sequence=7)
    assert begin(leader, P, epoch=2, sequence=7) == Decided(True, repeated=True)
    assert decide(leader, True, epoch=2, sequence=7) == Decided(True, repeated=True)
    # But what the newer run staged was not what was committed.
    assert decide(leader, False, epoch=2, sequence=7) == Decided(False, repeated=True)
    assert decide(leader, False, epoch=1, sequence=7) == Decided(True, repeated=True)


def test_an_aborted_one_does_not_hold_the_name_up() -> None:
    leader = Leader()
    begin(leader, P, sequence=0)
    decide(leader, False, sequence=0)
    assert begin(leader, P, sequence=1) == Done()
    assert decide(leader, False, sequence=0) == Decided(False, repeated=True)


def test_a_commit_after_the_time_limit_is_refused() -> None:
    leader = Leader(PartitionLimits(transaction_micros_max=1_000_000))
    begin(leader, P)
    leader.now += 1_000_100
    assert_refused(decide(leader, True), "TRANSACTION_ABORTED")
    assert decide(leader, False) == Decided(False)


def test_a_home_forgets_a_name_only_when_nothing_is_under_way() -> None:
    leader = Leader()
    begin(leader, P)
    assert_refused(leader.do(SeriesDelete(name="t")), "TRANSACTION_PENDING")
    decide(leader, True)
    assert_refused(leader.do(SeriesDelete(name="t")), "TRANSACTION_PENDING")
    finish(leader)
    record = leader.machine.numbering.decisions.records.get("t")
    assert record is not None
    assert record.phase is Phase.FINISHED
    assert leader.do(SeriesDelete(name="t")) == Done()


def test_the_number_of_names_is_bounded() -> None:
    leader = Leader(PartitionLimits(series_max=0))
    assert_refused(begin(leader, P), "RESOURCE_EXHAUSTED")
    assert_refused(decide(leader, False), "RESOURCE_EXHAUSTED")


def test_a_name_unused_for_long_makes_room_and_no_other_does() -> None:
    leader = Leader(PartitionLimits(series_max=2, decisions_micros_min=1_000_000))

    def commit(name: str) -> Outcome:
        named = {"name": name, "epoch": Epoch(0), "sequence": Sequence(1)}
        outcome = leader.do(Decide(**named, commit=True))  # type: ignore[arg-type]
        if isinstance(outcome, Decided) and name != "unfinished":
            leader.do(Finish(**named))  # type: ignore[arg-type]
        return outcome

    commit("unfinished")
    commit("old")
    assert_refused(commit("new"), "RESOURCE_EXHAUSTED")
    leader.now += 1_000_100
    assert commit("new") == Decided(True)
    # Forgotten: what would be repeated is new. What is under way is never forgotten.
    assert leader.machine.numbering.decisions.records.get("old") is None
    assert leader.machine.numbering.decisions.records.get("unfinished") is not None
    assert_refused(commit("old"), "RESOURCE_EXHAUSTED")
    assert commit("new") == Decided(True, repeated=True)
    assert leader.machine.numbering.decisions.count == 2
