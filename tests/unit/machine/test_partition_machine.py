"""Appends, trims, gaps, malformed entries, and snapshots of one partition."""

from __future__ import annotations

import struct

import pytest
from tests.unit.machine.leader import TERM, Leader, assert_refused, batch

from angarium.batch import Batch
from angarium.batch import stamp as stamp_batch
from angarium.errors import CorruptData
from angarium.ids import Index, Micros, Offset, Term
from angarium.kinds import GroupKind
from angarium.machine import (
    Appended,
    Clock,
    Compact,
    Configure,
    Done,
    PartitionLimits,
    PartitionMachine,
    Refused,
    Reserve,
    Reserved,
    Trim,
    Trimmed,
    encode,
    encode_append,
)
from angarium.machine.batch_fields import NUMBERING_FIELDS
from angarium.machine.changes import Ack, DeadLetter, Open, Retry


def test_the_numbering_fields_of_a_batch_are_what_the_batch_itself_says() -> None:
    one = batch(7, producer=11, epoch=3, sequence=40)
    stamp_batch(one, base_offset=Offset(90), term=Term(2), append_time=Micros(1234))
    read = Batch.trusted(one)
    assert NUMBERING_FIELDS.unpack_from(one) == (
        read.base_offset,
        read.append_time,
        read.length,
        read.span,
        read.producer_id,
        read.first_sequence,
        read.epoch,
    )


def test_visible_batches_are_views_into_the_entry_with_their_stamps() -> None:
    leader = Leader()
    leader.publish(batch(3), batch(2), batch(1))
    applied = leader.applied[0]
    read = [Batch.trusted(one) for one in applied.visible if isinstance(one, memoryview)]
    assert [one.base_offset for one in read] == [0, 3, 5]
    assert [one.append_time for one in read] == [1_000, 1_001, 1_002]
    assert {one.term for one in read} == {TERM}
    for one in read:
        one.verify()
    first = applied.visible[0]
    assert isinstance(first, memoryview)
    assert first.obj is leader.log[0]
    assert (applied.next_offset, applied.clock) == (6, 1_002)


def test_times_increase_strictly_even_when_the_clock_goes_back() -> None:
    leader = Leader()
    leader.publish(batch())
    leader.now = 5
    (outcome,) = leader.publish(batch())
    assert isinstance(outcome, Appended)
    assert outcome.append_time == 1_001
    leader.now = 5
    leader.do(Clock())
    assert leader.machine.clock == 1_002


def test_an_empty_entry_moves_only_the_index_and_the_hash() -> None:
    machine = PartitionMachine()
    before = machine.running_hash
    applied = machine.apply(Index(1), Term(1), b"")
    assert applied.outcomes == ()
    assert machine.applied_index == 1
    assert machine.running_hash != before


@pytest.mark.parametrize(
    "data",
    [
        b"\x00",
        b"\x01",
        b"\xff\x01",
        b"\x01\x01\x00\x00\x01\x00\x00\x00",
        b"\x01\x09\x00\x00\x00\x00\x00\x00",
        b"\x01\x01\x00\x00\x00\x00\x00\x00",
        b"\x09\x01\x93\x01\x02",
        b"\x09\x02\x92\x01\x02",
        b"\x09\x01" + b"\x91" * 3_000,
        encode(Trim(start_offset=Offset(0)))[:-1],
        encode(Trim(start_offset=Offset(0))) + b"\x00",
    ],
)
def test_bytes_that_are_no_command_are_refused_and_change_nothing(data: bytes) -> None:
    machine = PartitionMachine()
    before = machine.snapshot()
    applied = machine.apply(Index(1), Term(1), data)
    assert [one.code for one in applied.outcomes if isinstance(one, Refused)] == ["INVALID_COMMAND"]
    assert machine.running_hash
    machine.applied_index, machine.running_hash = Index(0), 0
    assert machine.snapshot() == before


def test_a_batch_stamped_for_another_place_is_refused() -> None:
    machine = PartitionMachine()
    one, two = batch(2), batch(2)
    stamp_batch(one, base_offset=Offset(0), term=Term(1), append_time=Micros(10))
    stamp_batch(two, base_offset=Offset(1), term=Term(1), append_time=Micros(11))
    applied = machine.apply(Index(1), Term(1), encode_append([one, two]))
    assert isinstance(applied.outcomes[0], Appended)
    assert_refused(applied.outcomes[1], "INVALID_COMMAND")
    assert len(applied.visible) == 1
    stamp_batch(two, base_offset=Offset(2), term=Term(1), append_time=Micros(10))
    late = machine.apply(Index(2), Term(1), encode_append([two]))
    assert_refused(late.outcomes[0], "INVALID_COMMAND")


def test_a_leader_whose_clock_went_back_is_refused() -> None:
    machine = PartitionMachine()
    machine.apply(Index(1), Term(1), encode(Clock(time=Micros(100))))
    late = machine.apply(Index(2), Term(1), encode(Trim(time=Micros(100), start_offset=Offset(0))))
    assert_refused(late.outcomes[0], "INVALID_COMMAND")
    assert machine.clock == 100


def test_trimming_goes_only_forward_and_not_beyond_the_end() -> None:
    leader = Leader()
    leader.publish(batch(10))
    assert leader.do(Trim(start_offset=Offset(4))) == Trimmed(Offset(4))
    assert leader.applied[1].trimmed_to == 4
    assert leader.do(Trim(start_offset=Offset(2))) == Trimmed(Offset(4))
    assert leader.applied[2].trimmed_to is None
    assert_refused(leader.do(Trim(start_offset=Offset(11))), "OFFSET_OUT_OF_RANGE")
    assert leader.do(Trim(start_offset=Offset(10))) == Trimmed(Offset(10))
    assert leader.machine.start_offset == 10


def test_compaction_goes_only_forward_and_not_beyond_the_end() -> None:
    leader = Leader()
    leader.publish(batch(10))
    assert leader.do(Compact(until=Offset(4))) == Done()
    assert leader.applied[1].is_compacted
    assert leader.do(Compact(until=Offset(2), tombstones_before=Micros(1))) == Done()
    assert leader.machine.compaction == (4, 1)
    again = leader.do(Compact(until=Offset(3), tombstones_before=Micros(0)))
    assert again == Done(changed=False)
    assert_refused(leader.do(Compact(until=Offset(11))), "OFFSET_OUT_OF_RANGE")
    future = Compact(until=Offset(4), tombstones_before=Micros(2**50))
    assert_refused(leader.do(future), "INVALID_ARGUMENT")
    copy = PartitionMachine()
    copy.restore(leader.machine.snapshot())
    assert copy.compaction == (4, 1)


def test_reserved_offsets_are_a_declared_gap() -> None:
    leader = Leader()
    leader.publish(batch(2))
    assert leader.do(Reserve(count=5)) == Reserved(Offset(2), Offset(7))
    assert leader.applied[-1].reserved == ((2, 7),)
    (after,) = leader.publish(batch(1))
    assert isinstance(after, Appended)
    assert after.base_offset == 7
    for count in (0, -1, 1 << 40):
        assert_refused(leader.do(Reserve(count=count)), "TOO_LARGE")


def test_offsets_end_where_a_signed_integer_does() -> None:
    leader = Leader(PartitionLimits(reserve_max=1 << 63))
    leader.do(Reserve(count=(1 << 63) - 2))
    assert isinstance(leader.publish(batch(1))[0], Appended)
    assert_refused(leader.publish(batch(1))[0], "TOO_LARGE")
    assert_refused(leader.do(Reserve(count=1)), "TOO_LARGE")


def test_limits_change_through_the_log() -> None:
    leader = Leader()
    assert leader.do(Configure(limits=PartitionLimits(producers_max=1))) == Done()
    assert leader.do(Configure(limits=PartitionLimits(producers_max=1))) == Done(changed=False)
    assert_refused(leader.do(Configure(limits=PartitionLimits(groups_max=-1))), "INVALID_ARGUMENT")
    for producer in (1, 2):
        leader.publish(batch(1, producer=producer))
    assert_refused(leader.publish(batch(1, producer=1, sequence=1))[0], "UNKNOWN_PRODUCER")


def _busy_leader() -> Leader:
    leader = Leader()
    leader.publish(batch(5_000, producer=4))
    leader.change(*(Open(f"g{n}", GroupKind.QUEUE, Offset(0)) for n in range(700)))
    generation = Index(leader.index)
    leader.change(
        *(Ack("g0", generation, (n, n + 1)) for n in range(1, 5_000, 2)),
        *(Retry("g0", generation, Offset(n), 1, Micros(9), "r") for n in range(2, 5_000, 2)),
        *(DeadLetter("g0", generation, Offset(n)) for n in range(4, 2_500, 2)),
        Ack("g7", generation, (1, 4_000)),
    )
    return leader


def test_a_snapshot_is_of_the_moment_it_was_begun() -> None:
    leader = _busy_leader()
    expected = leader.machine.snapshot()
    hash_then = leader.machine.running_hash
    slices = leader.machine.snapshot_slices()
    taken = [next(slices), next(slices)]
    for number, one in enumerate(slices):
        taken.append(one)
        generation = leader.machine.groups.by_name["g1"].generation
        leader.change(
            Ack("g0", Index(generation), (2 * number, 2 * number + 1)),
            Ack(f"g{699 - number}", Index(generation), (0, 9)),
            Open(f"new{number}", GroupKind.KEY, Offset(0)),
        )
        leader.publish(batch(1, producer=50 + number))
    assert len(taken) > 6
    restored = PartitionMachine()
    restored.restore(b"".join(taken))
    assert restored.running_hash == hash_then
    assert restored.snapshot() == expected


def test_a_snapshot_given_up_costs_nothing_afterwards() -> None:
    leader = _busy_leader()
    slices = leader.machine.snapshot_slices()
    next(slices)
    second = b"".join(leader.machine.snapshot_slices())
    restored = PartitionMachine()
    restored.restore(second)
    assert restored.running_hash == leader.machine.running_hash


def test_every_cut_of_a_snapshot_is_noticed_and_changes_nothing() -> None:
    leader = Leader()
    leader.publish(batch(9, producer=4))
    leader.change(Open("g", GroupKind.STREAM, Offset(3)))
    data = leader.machine.snapshot()
    other = PartitionMachine()
    before = other.snapshot()
    for length in range(len(data)):
        with pytest.raises(CorruptData):
            other.restore(data[:length])
    with pytest.raises(CorruptData):
        other.restore(data + b"\x00")
    with pytest.raises(CorruptData):
        other.restore(struct.pack("<BI", 99, 0))
    assert other.snapshot() == before
    other.restore(data)
    assert other.snapshot() == data
