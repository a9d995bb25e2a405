"""Batches that come back from a backup: where they were, when they were, once."""

from __future__ import annotations

from tests.unit.machine.leader import Leader, assert_refused, batch

from angarium.batch import stamp
from angarium.ids import Index, Micros, Offset, Term
from angarium.machine import Appended, Done, PartitionMachine, Restore


def kept(base: int, records: int = 1, *, time: int, producer: int = 0) -> bytes:
    """Return a batch as another cluster stored it."""
    made = batch(records, producer=producer)
    stamp(made, base_offset=Offset(base), term=Term(9), append_time=Micros(time))
    return bytes(made)


def restore(*batches: bytes, end: int, start: int = 0) -> Restore:
    return Restore(batches=b"".join(batches), next_offset=Offset(end), start_offset=Offset(start))


def test_batches_keep_their_offsets_times_and_bytes() -> None:
    leader = Leader()
    first, second = kept(0, 3, time=5), kept(3, 2, time=6)
    assert leader.do(restore(first, second, end=5)) == Appended(Offset(0), Offset(5), Micros(1_000))
    assert [bytes(one) for one in leader.applied[-1].visible] == [first, second]  # type: ignore[arg-type]
    assert leader.applied[-1].reserved == ()
    (after,) = leader.publish(batch(1))
    assert isinstance(after, Appended)
    assert (after.base_offset, after.append_time > 1_000) == (5, True)


def test_the_same_request_is_refused_the_second_time() -> None:
    leader = Leader()
    request = restore(kept(0, 3, time=5), end=3)
    leader.do(request)
    assert_refused(leader.do(request), "OFFSET_OUT_OF_RANGE", "ends at 3")
    assert leader.machine.next_offset == 3


def test_nothing_is_restored_behind_what_was_published_or_over_a_gap() -> None:
    leader = Leader()
    leader.publish(batch(1))
    assert_refused(leader.do(restore(kept(0, time=5), end=1)), "OFFSET_OUT_OF_RANGE")
    assert_refused(leader.do(restore(kept(2, time=5), end=3)), "OFFSET_OUT_OF_RANGE")
    gap_between = restore(kept(1, time=5), kept(3, time=6), end=4)
    assert_refused(leader.do(gap_between), "OFFSET_OUT_OF_RANGE")
    assert leader.machine.next_offset == 1


def test_a_batch_from_the_future_does_not_move_the_partitions_time() -> None:
    leader = Leader()
    late = restore(kept(0, time=10**15), end=1)
    assert_refused(leader.do(late), "INVALID_BATCH", "later than it is now")
    (after,) = leader.publish(batch(1))
    assert isinstance(after, Appended)
    assert (after.base_offset, after.append_time < 10**12) == (0, True)


def test_a_partition_that_was_trimmed_begins_where_it_did() -> None:
    leader = Leader()
    leader.do(restore(end=1_000, start=1_000))
    assert leader.applied[-1].reserved == ((0, 1_000),)
    assert leader.applied[-1].trimmed_to == 1_000
    leader.do(restore(kept(1_000, 4, time=7), end=1_010, start=1_002))
    assert (leader.machine.start_offset, leader.machine.next_offset) == (1_002, 1_010)
    assert leader.applied[-1].reserved == ((1_004, 1_010),)
    assert leader.do(restore(end=1_010, start=1_002)) == Done(changed=False)
    copy = PartitionMachine()
    copy.restore(leader.machine.snapshot())
    assert (copy.start_offset, copy.next_offset) == (1_002, 1_010)


def test_the_clock_does_not_stay_behind_what_is_restored() -> None:
    leader = Leader()
    leader.do(restore(kept(0, time=9_000), end=1))
    assert leader.machine.clock == 9_000
    (after,) = leader.publish(batch(1))
    assert isinstance(after, Appended)
    assert after.append_time > 9_000


def test_a_producer_of_the_other_cluster_is_nobody_here() -> None:
    leader = Leader()
    leader.do(restore(kept(0, 2, time=5, producer=7), end=2))
    (mine,) = leader.publish(batch(1, producer=7))
    assert isinstance(mine, Appended), "the same id was issued to somebody else here"


def test_malformed_requests_change_nothing() -> None:
    leader = Leader()
    broken = Restore(batches=b"no batch", next_offset=Offset(1))
    assert_refused(leader.do(broken), "INVALID_BATCH")
    assert_refused(leader.do(restore(kept(0, time=6), kept(1, time=6), end=2)), "INVALID_BATCH")
    assert_refused(leader.do(restore(kept(0, 3, time=5), end=2)), "OFFSET_OUT_OF_RANGE")
    assert_refused(leader.do(restore(end=5, start=6)), "OFFSET_OUT_OF_RANGE")
    assert_refused(leader.do(restore(end=1 << 50)), "TOO_LARGE")
    assert leader.machine.next_offset == 0
    assert leader.machine.applied_index == Index(0), "a leader logs no refusal"
