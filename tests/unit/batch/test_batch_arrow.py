"""Batches as Arrow sees them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.batch.batch_strategies import columns

from angarium.batch import NEVER, Batch, Codec, Record, clear_stamp, encode, stamp
from angarium.batch.arrow import SCHEMA, from_arrow, to_arrow
from angarium.errors import InvalidBatch
from angarium.ids import Epoch, Micros, Offset, ProducerId, Sequence, Term

TIMES = ("timestamp", "producer_timestamp", "expires_at", "deliver_at")


def rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return what Arrow sees, times as microseconds (calendars end before some of ours)."""
    numbers = [
        pa.int64() if name in TIMES else batch.schema.field(name).type for name in SCHEMA.names
    ]
    table = pa.Table.from_batches([batch]).cast(
        pa.schema(list(zip(SCHEMA.names, numbers, strict=True)))
    )
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def row(record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.append_time,
        "producer_timestamp": record.timestamp or None,
        "key": record.key,
        "value": record.value,
        "headers": list(record.headers),
        "expires_at": None if record.expires_at == NEVER else record.expires_at,
        "deliver_at": record.deliver_at or None,
    }


def stamped(buffer: bytearray) -> Batch:
    stamp(buffer, base_offset=Offset(500), term=Term(1), append_time=Micros(1_700_000_000_000_000))
    return Batch.parse(buffer)


@settings(max_examples=60, deadline=None)
@given(columns())
def test_arrow_sees_every_record(given_columns: dict[str, Any]) -> None:
    batch = stamped(encode(**given_columns))
    arrow = to_arrow(batch)
    arrow.validate(full=True)
    assert arrow.schema == SCHEMA
    assert rows(arrow) == [row(record) for record in batch]


@settings(max_examples=60, deadline=None)
@given(columns(), st.data())
def test_a_batch_from_arrow_is_the_batch_it_came_from(
    given_columns: dict[str, Any], data: st.DataObject
) -> None:
    batch = stamped(encode(**given_columns))
    start = data.draw(st.integers(0, batch.count - 1))
    stop = data.draw(st.integers(start + 1, batch.count))
    arrow = to_arrow(batch).slice(start, stop - start)
    again = Batch.parse(
        from_arrow(
            arrow["value"],
            keys=arrow["key"],
            headers=arrow["headers"],
            timestamps=arrow["producer_timestamp"],
            expires_at=arrow["expires_at"],
            deliver_at=arrow["deliver_at"],
            producer_id=batch.producer_id,
            epoch=batch.epoch,
            sequence=batch.first_sequence,
            codec=given_columns["codec"],
        )
    )
    expected = [row(record) for record in batch.slice(Offset(500 + start), Offset(500 + stop))]
    found = [row(record) for record in again]
    for place, one in enumerate(expected):
        one |= {"offset": place, "timestamp": 0}
    assert found == expected
    if (start, stop) == (0, batch.count):
        unstamped = bytearray(batch.buffer)
        clear_stamp(unstamped)
        if batch.header.flags == again.header.flags:
            assert bytes(again.buffer[36:136]) == unstamped[36:136]


def test_arrow_reads_the_batch_where_it_lies() -> None:
    buffer = encode([b"x" * 100] * 1000, keys=[b"k"] * 1000, headers=[{"h": b"v"}] * 1000)
    before = pa.total_allocated_bytes()
    arrow = to_arrow(stamped(buffer))
    start = pa.py_buffer(buffer).address
    for column in (arrow["key"], arrow["value"], arrow["headers"].keys, arrow["headers"].items):
        for part in column.buffers():
            assert part is None or start <= part.address < start + len(buffer)
    # Only the offsets are Arrow's own.
    assert pa.total_allocated_bytes() - before <= 8 * 1024 + 64


def test_a_slice_and_a_compacted_batch_become_arrow_too() -> None:
    batch = stamped(encode([b"%d" % i for i in range(10)]))
    assert to_arrow(batch.slice(Offset(503), Offset(505)))["offset"].to_pylist() == [503, 504]
    kept = to_arrow(Batch.trusted(batch.retain([1, 8])))
    assert kept["offset"].to_pylist() == [501, 508]
    assert kept["value"].to_pylist() == [b"1", b"8"]
    assert to_arrow(Batch.trusted(batch.retain([]))).num_rows == 0


@pytest.mark.parametrize("count", [16_384, 16_385])
def test_columns_of_nothing_have_any_length(count: int) -> None:
    arrow = to_arrow(stamped(encode([b""] * count)))
    arrow.validate(full=True)
    assert arrow["key"].null_count == arrow["expires_at"].null_count == count
    assert arrow["headers"].null_count == 0


@pytest.mark.parametrize("codec", Codec)
def test_spark_s_kinds_of_columns_are_taken(codec: Codec) -> None:
    moment = datetime(2024, 5, 6, 7, 8, 9, 123456, UTC)
    buffer = from_arrow(
        pa.chunked_array([["a", None], ["c"]]),
        keys=pa.array([b"k", None, b""], pa.large_binary()),
        headers=pa.array([[("h", b"1")], None, []], pa.map_(pa.string(), pa.binary())),
        timestamps=pa.array([moment, None, moment], pa.timestamp("ms", "UTC")),
        expires_at=NEVER,
        codec=codec,
        producer_id=ProducerId(1),
        epoch=Epoch(2),
        sequence=Sequence(3),
    )
    records = list(Batch.parse(buffer))
    assert [record.value for record in records] == [b"a", None, b"c"]
    assert [record.key for record in records] == [b"k", None, b""]
    assert [record.headers for record in records] == [(("h", b"1"),), (), ()]
    assert [record.timestamp for record in records] == [1714979289123000, 0, 1714979289123000]


def test_columns_of_different_lengths_are_refused() -> None:
    one, two = pa.array([b"a"]), pa.array([b"a", b"b"])
    for wrong in ({"keys": two}, {"timestamps": pa.array([1, 2])}):
        with pytest.raises(InvalidBatch):
            from_arrow(one, **wrong)
    with pytest.raises(InvalidBatch):
        from_arrow(pa.array([], pa.binary()))
