"""Rows on their way to a topic: where they go, in which order, and what is refused."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest

from angarium.api.layout import Layout
from angarium.batch import Batch, Codec, key_hash
from angarium.errors import InvalidArgument
from angarium.spark.dealing import BATCH_BYTES, Dealer, check_columns
from angarium.spark.write_options import write_options

MAP = pa.map_(pa.string(), pa.binary())


def dealt(rows: pa.RecordBatch, *, topic: str | None = "t", turn: int = 0, count: int = 3) -> Any:
    """Return, by topic and partition, the records as (key, value)."""
    dealer = Dealer(topic, lambda _: Layout.over(count), codec=Codec.NONE, turn=turn)
    found: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for one in dealer.packed(rows):
        batch = Batch.parse(bytes(one.batch))
        found[one.topic, one.partition] += [(record.key, record.value) for record in batch]
        hashes = batch.key_hashes()
        if hashes is not None:
            assert [key_hash(record.key) for record in batch] == list(hashes)
    return dict(found)


def table(**columns: Any) -> pa.RecordBatch:
    arrays = {
        name: values if isinstance(values, pa.Array) else pa.array(values)
        for name, values in columns.items()
    }
    return pa.RecordBatch.from_pydict(arrays)


def test_a_key_goes_where_every_producer_would_put_it_and_keeps_its_order() -> None:
    keys = [b"k%d" % (number % 7) for number in range(100)]
    values = [b"%d" % number for number in range(100)]
    found = dealt(table(key=keys, value=values))
    for (_, partition), records in found.items():
        assert {key_hash(key) % 3 for key, _ in records} == {partition}
        assert [int(value) for _, value in records] == sorted(int(value) for _, value in records)
    assert sum(map(len, found.values())) == 100


def test_text_is_written_as_its_bytes() -> None:
    assert dealt(table(key=["ä"], value=["ö"]), count=1) == {
        ("t", 0): [("ä".encode(), "ö".encode())]
    }


def test_rows_without_keys_stay_together_and_the_next_lot_goes_elsewhere() -> None:
    dealer = Dealer("t", lambda _: Layout.over(3), codec=Codec.NONE, turn=0)
    rows = table(value=[b"a", b"b"])
    places = [one.partition for _ in range(4) for one in dealer.packed(rows)]
    assert places == [1, 2, 0, 1]


def test_a_row_may_say_its_partition_and_others_may_not() -> None:
    rows = table(
        value=[b"a", b"b", b"c"],
        key=pa.array([b"k", None, b"k"], pa.binary()),
        partition=pa.array([2, None, None], pa.int32()),
    )
    found = dealt(rows, turn=0)
    assert (b"k", b"a") in found["t", 2]
    assert (None, b"b") in found["t", 1]
    assert (b"k", b"c") in found["t", key_hash(b"k") % 3]
    with pytest.raises(InvalidArgument, match="t has partitions 0 to 2, and a row wants 3"):
        dealt(table(value=[b"a"], partition=pa.array([3], pa.int32())))


def test_rows_may_go_to_several_topics() -> None:
    rows = table(topic=["a", "b", "a"], value=[b"1", b"2", b"3"])
    found = dealt(rows, topic=None, count=1)
    assert found == {("a", 0): [(None, b"1"), (None, b"3")], ("b", 0): [(None, b"2")]}
    assert dealt(rows, topic="c", count=1).keys() == {("c", 0)}
    with pytest.raises(InvalidArgument, match="a row has no topic"):
        dealt(table(topic=pa.array(["a", None]), value=[b"1", b"2"]), topic=None)


def test_headers_times_nulls_and_empty_values_arrive() -> None:
    rows = table(
        value=pa.array([None, b""], pa.binary()),
        headers=pa.array([[("h", b"1")], []], MAP),
        timestamp=pa.array([5, None], pa.timestamp("us", tz="UTC")),
    )
    dealer = Dealer("t", lambda _: Layout.over(1), codec=Codec.LZ4, turn=0)
    (one,) = dealer.packed(rows)
    first, second = Batch.parse(bytes(one.batch))
    assert (first.value, second.value) == (None, b"")
    assert first.headers == (("h", b"1"),)
    assert (first.timestamp, second.timestamp) == (5, 0)


def test_much_is_packed_into_several_batches() -> None:
    dealer = Dealer("t", lambda _: Layout.over(1), codec=Codec.NONE, turn=0)
    packed = list(dealer.packed(table(value=[b"x" * (BATCH_BYTES // 4)] * 20)))
    assert len(packed) > 4
    assert max(len(one.batch) for one in packed) < 2 * BATCH_BYTES


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ([("value", pa.binary()), ("colour", pa.string())], "takes no column colour"),
        ([("value", pa.int64())], "the column value is bigint, not binary or string"),
        (
            [("value", pa.binary()), ("partition", pa.int64())],
            r"the column partition is bigint, not int: int\(partition\)",
        ),
        (
            [
                ("value", pa.binary()),
                (
                    "headers",
                    pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
                ),
            ],
            "headers is array<struct<key:string,value:binary>>, not map<string,binary>: map_from",
        ),
        (
            [("value", pa.binary()), ("timestamp", pa.timestamp("us"))],
            "the column timestamp is timestamp_ntz, not timestamp",
        ),
        ([("key", pa.binary())], "there is no column value"),
    ],
)
def test_columns_that_a_topic_does_not_take_are_named(
    fields: list[tuple[str, Any]], refusal: str
) -> None:
    with pytest.raises(InvalidArgument, match=refusal):
        check_columns(fields, topic="t")


def test_a_topic_must_be_named_somehow() -> None:
    check_columns([("value", pa.string()), ("topic", pa.string())], topic=None)
    with pytest.raises(InvalidArgument, match="give the option topic, or a column topic"):
        check_columns([("value", pa.string())], topic=None)


def test_options_of_a_write() -> None:
    options = write_options(
        {"path": "orders", "writeId": "x", "compression": "ZSTD"}, is_stream=False
    )
    assert (options.topic, options.write_id, options.codec) == ("orders", "x", Codec.ZSTD)
    assert write_options({"checkpointLocation": "x", "topic": "t"}, is_stream=True).topic == "t"


@pytest.mark.parametrize(
    ("given", "is_stream", "refusal"),
    [
        ({"subscribe": "a"}, False, "no option subscribe for a batch write"),
        ({"topic": "a", "path": "b"}, False, "topic and path contradict"),
        ({"topic": "a,b"}, False, "topic: 'a,b' is not one topic"),
        ({"topic": "a", "writeId": "x"}, True, "writeId is not for a stream's sink"),
        ({"topic": "a", "writeVersion": "1"}, False, "writeVersion means nothing without writeId"),
        ({"topic": "a", "writeId": " "}, False, "writeId is empty"),
        ({"topic": "a", "writeId": "x", "writeVersion": "-1"}, False, "writeVersion: '-1'"),
        ({"topic": "a", "compression": "gzip"}, True, "compression: 'gzip' is none of none, lz4"),
    ],
)
def test_what_is_wrong_about_a_write_is_named(
    given: dict[str, str], is_stream: bool, refusal: str
) -> None:
    with pytest.raises(InvalidArgument, match=refusal):
        write_options(given, is_stream=is_stream)
