"""What a partition remembers of its producers."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.machine.leader import Leader, assert_refused, batch

from angarium.ids import Micros, Offset, ProducerId
from angarium.machine import (
    NAMED_FROM,
    Appended,
    Done,
    Duplicate,
    PartitionLimits,
    ProducerDelete,
    Projection,
    Refused,
)
from angarium.machine.producers import REMEMBERED_BATCHES


def test_a_batch_without_a_producer_is_never_a_duplicate() -> None:
    leader = Leader()
    assert leader.publish(batch(2), batch(2)) == (
        Appended(Offset(0), Offset(2), Micros(1_000)),
        Appended(Offset(2), Offset(4), Micros(1_001)),
    )


def test_a_repeated_batch_is_answered_with_its_first_offset() -> None:
    leader = Leader()
    (first,) = leader.publish(batch(3, producer=7))
    leader.publish(batch(2))
    (again,) = leader.publish(batch(3, producer=7))
    assert isinstance(first, Appended)
    assert again == Duplicate(first.base_offset, first.next_offset, first.append_time)
    assert leader.machine.next_offset == 5


def test_a_duplicate_of_an_uncommitted_batch_is_recognised() -> None:
    leader = Leader()
    first, again = leader.publish(batch(3, producer=7), batch(3, producer=7))
    assert isinstance(first, Appended)
    assert again == Duplicate(first.base_offset, first.next_offset, first.append_time)
    assert len(leader.applied[0].visible) == 1


def test_older_duplicates_are_recognised_without_their_offset() -> None:
    leader = Leader()
    sent = REMEMBERED_BATCHES + 2
    for number in range(sent):
        leader.publish(batch(10, producer=7, sequence=10 * number))
    answers = [
        leader.publish(batch(10, producer=7, sequence=10 * number))[0] for number in range(sent)
    ]
    known = [one for one in answers if isinstance(one, Duplicate) and one.base_offset is not None]
    assert all(isinstance(one, Duplicate) for one in answers)
    assert [one.base_offset for one in known] == [20, 30, 40, 50, 60]
    assert answers[0] == Duplicate()


def test_sequences_count_records_and_a_gap_is_refused() -> None:
    leader = Leader()
    leader.publish(batch(3, producer=7))
    assert_refused(leader.publish(batch(1, producer=7, sequence=4))[0], "SEQUENCE_GAP")
    assert isinstance(leader.publish(batch(1, producer=7, sequence=3))[0], Appended)


def test_a_batch_that_overlaps_what_is_stored_is_refused() -> None:
    leader = Leader()
    leader.publish(batch(3, producer=7))
    assert_refused(leader.publish(batch(3, producer=7, sequence=2))[0], "SEQUENCE_GAP")


def test_a_producer_begins_at_sequence_0() -> None:
    assert_refused(Leader().publish(batch(1, producer=7, sequence=1))[0], "SEQUENCE_GAP")


def test_a_new_epoch_begins_at_0_and_fences_the_old_one() -> None:
    leader = Leader()
    leader.publish(batch(3, producer=7, epoch=1))
    assert_refused(leader.publish(batch(1, producer=7, epoch=2, sequence=3))[0], "SEQUENCE_GAP")
    assert isinstance(leader.publish(batch(1, producer=7, epoch=2))[0], Appended)
    assert_refused(leader.publish(batch(1, producer=7, epoch=1, sequence=3))[0], "PRODUCER_FENCED")
    assert_refused(leader.publish(batch(3, producer=7, epoch=1))[0], "PRODUCER_FENCED")


def test_a_forgotten_producer_is_refused_and_never_taken_for_new() -> None:
    leader = Leader(PartitionLimits(producers_max=3))
    for producer in (10, 11, 12, 13):
        assert isinstance(leader.publish(batch(1, producer=producer))[0], Appended)
    assert_refused(leader.publish(batch(1, producer=10))[0], "UNKNOWN_PRODUCER")
    assert_refused(leader.publish(batch(1, producer=10, epoch=9))[0], "UNKNOWN_PRODUCER")
    # An id below the mark that never wrote here might be a forgotten one: refused as well.
    assert_refused(leader.publish(batch(1, producer=5))[0], "UNKNOWN_PRODUCER")
    assert isinstance(leader.publish(batch(1, producer=14))[0], Appended)


def test_the_producer_silent_for_longest_makes_room() -> None:
    leader = Leader(PartitionLimits(producers_max=2))
    leader.publish(batch(1, producer=1))
    leader.publish(batch(1, producer=2))
    leader.publish(batch(1, producer=1, sequence=1))
    leader.publish(batch(1, producer=3))
    assert isinstance(leader.publish(batch(1, producer=1, sequence=2))[0], Appended)
    assert_refused(leader.publish(batch(1, producer=2, sequence=1))[0], "UNKNOWN_PRODUCER")


def test_named_producers_stay_however_many_others_come() -> None:
    leader = Leader(PartitionLimits(producers_max=2, named_producers_max=1))
    leader.publish(batch(1, producer=NAMED_FROM))
    for producer in range(1, 9):
        leader.publish(batch(1, producer=producer))
    assert isinstance(leader.publish(batch(1, producer=NAMED_FROM))[0], Duplicate)
    refusal = leader.publish(batch(1, producer=NAMED_FROM + 1))[0]
    assert_refused(refusal, "RESOURCE_EXHAUSTED")
    assert isinstance(refusal, Refused)
    assert "named_producers_max" in refusal.message


def test_a_deleted_named_producer_is_fenced_for_good() -> None:
    leader = Leader(PartitionLimits(producers_max=2))
    leader.publish(batch(1, producer=NAMED_FROM))
    assert leader.do(ProducerDelete(producer=NAMED_FROM)) == Done()
    assert leader.do(ProducerDelete(producer=NAMED_FROM)) == Done(changed=False)
    assert_refused(leader.publish(batch(1, producer=NAMED_FROM, epoch=8))[0], "PRODUCER_FENCED")
    for producer in range(1, 5):
        leader.publish(batch(1, producer=producer))
    # Its grave made room for others, and still nothing of it is taken.
    assert_refused(leader.publish(batch(1, producer=NAMED_FROM, epoch=9))[0], "UNKNOWN_PRODUCER")
    named = ProducerId(NAMED_FROM + 1)
    assert isinstance(leader.publish(batch(1, producer=named))[0], Appended)


def test_what_was_forgotten_is_still_refused_after_a_restart() -> None:
    leader = Leader(PartitionLimits(producers_max=1))
    leader.publish(batch(1, producer=NAMED_FROM + 3))
    leader.do(ProducerDelete(producer=ProducerId(NAMED_FROM + 3)))
    for producer in (8, 9):
        leader.publish(batch(1, producer=producer))
    leader.machine.restore(leader.machine.snapshot())
    leader.projection = Projection(leader.machine)
    for producer in (8, 5, NAMED_FROM + 3, NAMED_FROM):
        assert_refused(leader.publish(batch(1, producer=producer))[0], "UNKNOWN_PRODUCER")
    assert isinstance(leader.publish(batch(1, producer=NAMED_FROM + 4))[0], Appended)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 5), st.integers(0, 2), st.integers(0, 6), st.integers(1, 3)),
        max_size=60,
    ),
    st.integers(1, 6),
)
def test_each_sequence_of_an_epoch_is_stored_at_most_once_and_without_gap(
    sends: list[tuple[int, int, int, int]], producers_max: int
) -> None:
    leader = Leader(PartitionLimits(producers_max=producers_max))
    stored: dict[tuple[int, int], int] = {}
    epochs: dict[int, int] = {}
    for producer, epoch, sequence, records in sends:
        (outcome,) = leader.publish(
            batch(records, producer=producer, epoch=epoch, sequence=sequence)
        )
        if isinstance(outcome, Appended):
            assert epoch >= epochs.get(producer, 0)
            epochs[producer] = epoch
            assert sequence == stored.get((producer, epoch), 0)
            stored[producer, epoch] = sequence + records
        elif isinstance(outcome, Duplicate):
            assert sequence + records <= stored[producer, epoch]
    assert leader.machine.next_offset == sum(stored.values())
