"""Broker batches as rows: the columns asked for, in batches of a size that suits Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from angarium.batch import encode, stamp
from angarium.client.records import ReceivedBatch, received
from angarium.errors import InvalidArgument
from angarium.ids import Micros, Offset, Term
from angarium.spark.rows import BYTES_PER_BATCH, COLUMNS, ROWS_PER_BATCH, RowShape

ALL = RowShape(list(COLUMNS.items()))


def batch(base: int, values: list[bytes | None], *, skip: int = 0) -> ReceivedBatch:
    data = encode(
        values,
        keys=[None if at % 2 else b"k%d" % at for at in range(len(values))],
        headers=[[("h", b"%d" % at)] for at in range(len(values))],
        timestamps=7,
    )
    stamp(data, base_offset=Offset(base), term=Term(1), append_time=Micros(1_000_000))
    return received("orders", 3, data, from_offset=base + skip)


def test_a_row_has_what_the_record_had() -> None:
    (rows,) = ALL.batches("orders", 3, [batch(10, [b"a", None, b""], skip=1)])
    assert rows.schema == pa.schema(list(COLUMNS.items()))
    first, second = rows.to_pylist()
    assert first["value"] is None
    assert first["key"] is None
    assert (second["value"], second["key"], second["offset"]) == (b"", b"k2", 12)
    assert (second["topic"], second["partition"]) == ("orders", 3)
    assert second["headers"] == [("h", b"2")]
    assert rows.column("timestamp").cast(pa.int64()).to_pylist() == [1_000_000] * 2
    assert rows.column("producer_timestamp").cast(pa.int64()).to_pylist() == [7, 7]


def test_only_what_is_asked_for_is_there_in_that_order() -> None:
    shape = RowShape([("offset", pa.int64()), ("value", pa.string())])
    (rows,) = shape.batches("orders", 3, [batch(0, [b"a", b"\xc3\xa4"])])
    assert rows.to_pydict() == {"offset": [0, 1], "value": ["a", "ä"]}


def test_a_query_may_want_no_stored_column_at_all() -> None:
    shape = RowShape([("topic", pa.string())])
    (rows,) = shape.batches("orders", 3, [batch(0, [b"a"] * 3), batch(3, [b"b"])])
    assert rows.to_pydict() == {"topic": ["orders"] * 4}


def test_bytes_that_are_not_text_are_refused_as_text() -> None:
    shape = RowShape([("value", pa.string())])
    with pytest.raises(InvalidArgument, match="value of orders partition 3 is not all text"):
        list(shape.batches("orders", 3, [batch(0, [b"\xff"])]))


@pytest.mark.parametrize(
    ("field", "refusal"),
    [
        (("colour", pa.string()), "a topic has no column colour; it has key, value"),
        (("offset", pa.int32()), "the column offset is bigint, not int"),
    ],
)
def test_columns_that_a_topic_does_not_have_are_refused(
    field: tuple[str, pa.DataType], refusal: str
) -> None:
    with pytest.raises(InvalidArgument, match=refusal):
        RowShape([field])


def test_small_batches_are_joined_and_large_ones_cut() -> None:
    small = [batch(at * 100, [b"x"] * 100) for at in range(250)]
    sizes = [rows.num_rows for rows in ALL.batches("orders", 3, small)]
    assert sizes == [ROWS_PER_BATCH, ROWS_PER_BATCH, 5_000]
    wide = [batch(0, [b"x" * (BYTES_PER_BATCH // 4)] * 12)]
    pieces = list(ALL.batches("orders", 3, wide))
    assert sum(rows.num_rows for rows in pieces) == 12
    assert max(rows.num_rows for rows in pieces) <= 6
