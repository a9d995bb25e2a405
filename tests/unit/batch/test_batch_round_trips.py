"""What goes into a batch comes out of it, whatever it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.batch.batch_strategies import columns, expected

from angarium.batch import (
    NEVER,
    TIME_MAX,
    Batch,
    Codec,
    encode,
    key_hash,
    stamp,
)
from angarium.errors import InvalidBatch
from angarium.ids import Epoch, Micros, Offset, ProducerId, Sequence, Term


@settings(max_examples=200, deadline=None)
@given(columns())
def test_every_record_comes_back_as_it_was_given(given_columns: dict[str, Any]) -> None:
    batch = Batch.parse(encode(**given_columns))
    records = expected(given_columns, base=0, append_time=0)
    assert list(batch) == records
    assert [batch.record(position) for position in range(batch.count)] == records
    assert batch.values() == given_columns["values"]
    assert batch.keys() == [record.key for record in records]
    assert batch.producer_id == given_columns["producer_id"]
    assert batch.epoch == given_columns["epoch"]
    assert batch.first_sequence == given_columns["sequence"]
    assert batch.last_sequence == given_columns["sequence"] + batch.count - 1
    assert not batch.is_stamped
    assert batch.length % 8 == 0


@settings(max_examples=80, deadline=None)
@given(columns(), st.integers(0, 2**60), st.integers(1, 2**60), st.integers(1, TIME_MAX))
def test_a_stamp_numbers_every_record_and_changes_nothing_else(
    given_columns: dict[str, Any], base: int, term: int, append_time: int
) -> None:
    buffer = encode(**given_columns)
    client_part = bytes(buffer[36:])
    stamp(buffer, base_offset=Offset(base), term=Term(term), append_time=Micros(append_time))
    batch = Batch.parse(buffer)
    batch.verify()
    assert bytes(buffer[36:]) == client_part
    assert list(batch) == expected(given_columns, base=base, append_time=append_time)
    assert (batch.base_offset, batch.next_offset) == (base, base + batch.count)
    assert (batch.term, batch.append_time, batch.is_stamped) == (term, append_time, True)


@settings(max_examples=80, deadline=None)
@given(columns())
def test_the_header_tells_the_bounds_of_every_time(given_columns: dict[str, Any]) -> None:
    batch = Batch.trusted(encode(**given_columns))
    records = list(batch)
    for times_of, low, high in (
        ([r.timestamp for r in records], batch.min_timestamp, batch.max_timestamp),
        ([r.expires_at for r in records], batch.min_expires_at, batch.max_expires_at),
        ([r.deliver_at for r in records], batch.min_deliver_at, batch.max_deliver_at),
    ):
        assert (min(times_of), max(times_of)) == (low, high)


@settings(max_examples=80, deadline=None)
@given(columns())
def test_key_hashes_follow_the_keys(given_columns: dict[str, Any]) -> None:
    batch = Batch.parse(encode(**given_columns))
    hashes = batch.key_hashes()
    if any(key is not None for key in given_columns["keys"] or ()):
        assert hashes is not None
        assert list(hashes) == list(map(key_hash, batch.keys()))
    else:
        assert hashes is None
    assert Batch.parse(encode(**given_columns, key_hashes=False)).key_hashes() is None


@settings(max_examples=80, deadline=None)
@given(columns(), st.data())
def test_a_slice_has_the_records_of_its_offsets(
    given_columns: dict[str, Any], data: st.DataObject
) -> None:
    buffer = encode(**given_columns)
    stamp(buffer, base_offset=Offset(1000), term=Term(1), append_time=Micros(1))
    batch = Batch.trusted(buffer)
    start = Offset(data.draw(st.integers(990, 1050)))
    stop = Offset(data.draw(st.integers(990, 1050)))
    part = batch.slice(start, stop)
    assert list(part) == [record for record in batch if start <= record.offset < stop]
    assert list(part.offsets()) == [record.offset for record in part]
    assert part.values() == [record.value for record in part]
    assert len(part) == len(list(part))
    assert part.batch is batch


def test_null_is_not_empty() -> None:
    batch = Batch.parse(encode([None, b""], keys=[b"", None], headers=[[("h", None)], {"h": b""}]))
    first, second = batch
    assert (first.value, second.value) == (None, b"")
    assert (first.key, second.key) == (b"", None)
    assert (first.headers, second.headers) == ((("h", None),), (("h", b""),))


def test_a_header_may_come_twice_and_keeps_its_place() -> None:
    headers = (("a", b"1"), ("b", b"2"), ("a", b"3"))
    assert Batch.parse(encode([b"x"], headers=[headers])).record(0).headers == headers


def test_one_time_for_all_costs_no_column() -> None:
    values = [b"v"] * 100
    plain = len(encode(values))
    assert len(encode(values, timestamps=5, expires_at=6, deliver_at=7)) == plain
    assert len(encode(values, timestamps=[5] * 100)) == plain
    assert len(encode(values, timestamps=range(100))) == plain + 800


@pytest.mark.parametrize("codec", Codec)
def test_what_does_not_shrink_is_stored_as_it_is(codec: Codec) -> None:
    assert Batch.parse(encode([b"\x8f"], codec=codec)).codec is Codec.NONE


@pytest.mark.parametrize("codec", [Codec.LZ4, Codec.ZSTD])
def test_what_shrinks_is_compressed(codec: Codec) -> None:
    batch = Batch.parse(encode([b"again and again"] * 100, codec=codec))
    assert batch.codec is codec
    assert batch.length < 700
    assert batch.values() == [b"again and again"] * 100


def test_values_may_be_any_buffer() -> None:
    batch = Batch.parse(
        encode([b"a", bytearray(b"b"), memoryview(b"c")], keys=[bytearray(b"k")] * 3)
    )
    assert batch.values() == [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"values": []},
        {"values": [b""], "keys": []},
        {"values": [b""], "headers": [{}, {}]},
        {"values": [b""], "timestamps": [1, 2]},
        {"values": [b""], "timestamps": -1},
        {"values": [b""], "timestamps": TIME_MAX + 1},
        {"values": [b""], "timestamps": NEVER},
        {"values": [b""], "deliver_at": NEVER},
        {"values": [b""], "expires_at": 0},
        {"values": [b""], "expires_at": NEVER - 1},
        {"values": [b"", b""], "expires_at": [TIME_MAX + 1, NEVER]},
        {"values": [b""], "producer_id": ProducerId(-1)},
        {"values": [b""], "epoch": Epoch(2**32)},
        {"values": [b""], "sequence": Sequence(2**63 - 1)},
        {"values": [b""], "headers": [{"\ud800": b""}]},
        {"values": [memoryview(b"abcdefgh").cast("I")]},
    ],
)
def test_what_no_batch_can_hold_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidBatch):
        encode(**wrong)


@pytest.mark.parametrize("wrong", ["text", 5])
def test_a_value_that_is_not_bytes_is_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError):
        encode([wrong, None])


def test_a_position_outside_the_batch_is_an_index_error() -> None:
    batch = Batch.trusted(encode([b"a"]))
    for position in (-1, 1):
        with pytest.raises(IndexError):
            batch.record(position)
