"""Compacted batches: fewer records, the same offsets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.forgery import forged

from angarium.batch import NEVER, Batch, Codec, encode, stamp
from angarium.errors import InvalidBatch
from angarium.ids import Epoch, Micros, Offset, ProducerId, Sequence, Term

BASE = Offset(1_000)


def original(codec: Codec = Codec.NONE, *, count: int = 10) -> Batch:
    buffer = encode(
        [None if i == 3 else b"value %d" % i for i in range(count)],
        keys=[None if i == 4 else b"key %d" % (i % 3) for i in range(count)],
        headers=[{"i": b"%d" % i} if i % 2 else None for i in range(count)],
        timestamps=list(range(count)),
        expires_at=[i + 1 if i % 4 else NEVER for i in range(count)],
        producer_id=ProducerId(7),
        epoch=Epoch(2),
        sequence=Sequence(50),
        codec=codec,
    )
    stamp(buffer, base_offset=BASE, term=Term(3), append_time=Micros(99))
    return Batch.parse(buffer)


@settings(max_examples=100, deadline=None)
@given(st.sets(st.integers(0, 9)), st.sampled_from(Codec), st.data())
def test_kept_records_keep_everything_also_when_compacted_again(
    positions: set[int], codec: Codec, data: st.DataObject
) -> None:
    batch = original(codec)
    records = list(batch)
    for _ in range(2):
        batch = Batch.parse(batch.retain(sorted(positions)), compacted=True)
        batch.verify()
        records = [records[position] for position in sorted(positions)]
        assert list(batch) == records
        assert [batch.record(position) for position in range(batch.count)] == records
        assert (batch.base_offset, batch.next_offset, batch.span) == (BASE, BASE + 10, 10)
        assert (batch.term, batch.append_time) == (3, 99)
        assert (batch.producer_id, batch.epoch) == (7, 2)
        assert (batch.first_sequence, batch.last_sequence) == (50, 59)
        assert batch.is_compacted
        positions = data.draw(st.sets(st.sampled_from(range(len(records))))) if records else set()


def test_a_position_is_the_first_record_at_or_after_an_offset() -> None:
    batch = Batch.trusted(original().retain([2, 5, 9]))
    found = [batch.position_of(Offset(BASE + delta)) for delta in range(-1, 12)]
    assert found == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3]
    part = batch.slice(Offset(BASE + 3), Offset(BASE + 9))
    assert [record.offset for record in part] == [BASE + 5]


def test_a_batch_without_records_still_holds_its_place() -> None:
    batch = Batch.parse(original().retain([]), compacted=True)
    assert (batch.count, list(batch), batch.next_offset) == (0, [], BASE + 10)


def test_an_unstamped_batch_stays_unstamped() -> None:
    batch = Batch.trusted(encode([b"a", b"b"]))
    assert not Batch.parse(batch.retain([1]), compacted=True).is_stamped


@pytest.mark.parametrize("positions", [[-1], [10], [3, 3], [4, 2]])
def test_positions_outside_or_out_of_order_are_refused(positions: list[int]) -> None:
    with pytest.raises(InvalidBatch):
        original().retain(positions)


def test_a_compacted_batch_is_not_welcome_from_a_producer() -> None:
    with pytest.raises(InvalidBatch, match="not welcome"):
        Batch.parse(original().retain([0]))


@pytest.mark.parametrize(
    "lie", [{"span": 0}, {"span": 2}, {"span": 9}, {"span": 2**31}, {"count": 11}]
)
def test_a_span_that_cannot_be_is_refused(lie: dict[str, Any]) -> None:
    with pytest.raises(InvalidBatch):
        Batch.parse(forged(original().retain([2, 5, 9]), **lie), compacted=True)


@pytest.mark.parametrize("deltas", [(5, 2, 9), (2, 2, 9), (2, 5, 10), (2, 5, 2**31)])
def test_deltas_that_do_not_climb_within_the_span_are_refused(deltas: tuple[int, ...]) -> None:
    buffer = original().retain([2, 5, 9])
    start = Batch.trusted(buffer).columns.offset_deltas
    buffer[start : start + 12] = b"".join(delta.to_bytes(4, "little") for delta in deltas)
    with pytest.raises(InvalidBatch, match="deltas"):
        Batch.parse(forged(buffer), compacted=True)
