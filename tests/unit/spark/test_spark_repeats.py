"""What comes again under a number that was committed: recognised, or refused with what to do."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from angarium.api.transactions import Committed
from angarium.errors import InvalidArgument, LimitExceeded, PreconditionFailed
from angarium.spark.contents import (
    Contents,
    Tally,
    contents,
    remembered,
    tally,
)
from angarium.spark.repeats import check_batch, check_write
from angarium.spark.write_options import write_options

ONE = '{"orders": {"0": 1}}'
TWO = '{"orders": {"0": 2}}'


def rows(*values: str | None, keys: list[str | None] | None = None) -> pa.RecordBatch:
    columns: dict[str, pa.Array] = {"value": pa.array(values, pa.string())}
    if keys is not None:
        columns["key"] = pa.array(keys, pa.string())
    return pa.RecordBatch.from_pydict(columns)


def of(*batches: pa.RecordBatch, into: str = "invoices") -> Contents:
    return contents((tally(one, hashes=True) for one in batches), into=into, read=None)


def read(ends: str, count: int = 1) -> Contents:
    return contents([Tally(count)], into="invoices", read=ends)


def repeated(before: Contents | None, sequence: int) -> Committed:
    said = "" if before is None else before.encode()
    return Committed(repeated=True, last_sequence=sequence, content=said)


def test_rows_are_the_same_in_any_order_and_in_any_tasks() -> None:
    whole = of(rows("a", "b", "c", None))
    assert whole.is_same_as(of(rows(None, "c"), rows("b"), rows("a")))
    assert whole.is_same_as(of(rows("c", "a", None, "b")))
    for other in (rows("a", "b", "c"), rows("a", "b", "c", ""), rows("a", "b", "c", "d")):
        assert not whole.is_same_as(of(other))
    assert not whole.is_same_as(of(rows("a", "b", "c", None), into="elsewhere"))
    keyed = of(rows("a", "b", keys=["1", "2"]))
    assert not keyed.is_same_as(of(rows("a", "b", keys=["2", "1"])))
    assert not keyed.is_same_as(of(rows("a", "b")))


def test_two_micro_batches_that_have_read_the_same_are_one_whatever_became_of_it() -> None:
    assert read(ONE, 5).is_same_as(read(ONE, 4))  # records have expired meanwhile
    assert not read(ONE).is_same_as(read(TWO))
    # Where only one of them knows what it has read, rows are counted.
    assert read(ONE, 1).is_same_as(of(rows("a")))
    assert not read(ONE, 1).is_same_as(of(rows("a", "b")))


def test_what_is_remembered_is_short() -> None:
    long = json.dumps({"orders": {str(number): 10**9 for number in range(1000)}})
    text = read(long).encode()
    assert len(text) < 200
    assert remembered(text) == read(long)
    assert remembered(read(ONE).encode()) == read(ONE)
    assert remembered("") is None
    assert remembered("somebody else's words") is None


def test_a_true_repetition_is_taken_for_one() -> None:
    check_batch("q", 3, read(TWO), repeated(read(TWO), 7))
    check_write("nightly", 0, of(rows("a", "b")), repeated(of(rows("b", "a")), 0))
    # One that said nothing of itself can only be believed.
    check_batch("q", 3, read(TWO), repeated(None, 7))
    check_write("nightly", 0, of(rows("a")), repeated(None, 0))


def test_another_batch_of_the_same_number_is_refused_with_where_to_go_on() -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        check_batch("q", 1, read(TWO, 2), repeated(read(ONE), 3))
    said = str(refusal.value)
    assert said.startswith(
        "batch 1 of the query q was written before, of something else: that was 1 row into "
        f"invoices, read up to {ONE}; this is 2 rows into invoices, read up to {TWO}."
    )
    assert f"start with a new checkpointLocation and startingOffsets={ONE}" in said
    # Below the last one nobody remembers what it was.
    with pytest.raises(PreconditionFailed, match="batch 1 of the query q comes after batch 4"):
        check_batch("q", 1, read(ONE), repeated(read(ONE), 9))


def test_another_write_under_an_id_is_refused_with_what_to_do() -> None:
    with pytest.raises(PreconditionFailed, match="a writeId of their own, or a higher"):
        check_write("nightly", 0, of(rows("a")), repeated(of(rows("b")), 0))
    with pytest.raises(PreconditionFailed, match="version 1 of writeId n comes after version 2"):
        check_write("n", 1, of(rows("a")), repeated(of(rows("a")), 2))


def test_options_of_a_write() -> None:
    plain = write_options({"topic": "t"}, is_stream=False)
    assert (plain.check_repeats, plain.creates_topic, plain.checkpoint) == (True, False, None)
    told = {"topic": "t", "checkRepeats": "false", "createTopic": "true"}
    stream = write_options({**told, "checkpointLocation": "/c"}, is_stream=True)
    assert (stream.check_repeats, stream.creates_topic, stream.checkpoint) == (False, True, "/c")
    with pytest.raises(InvalidArgument, match="writeOf means nothing without writeId"):
        write_options({"topic": "t", "writeOf": "x"}, is_stream=False)


def test_a_write_that_is_too_large_for_a_partition_says_what_helps() -> None:
    pytest.importorskip("pyspark", reason="the extra angarium[spark] is not installed")
    from angarium.spark.filling import _told_what_to_do

    told = _told_what_to_do(LimitExceeded("staged_bytes_max", "too much is staged"))
    assert "compression=zstd" in str(told)
    other = LimitExceeded("stages_max", "too many")
    assert _told_what_to_do(other) is other
