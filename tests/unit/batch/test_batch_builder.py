"""Collecting records one by one, within limits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from angarium.batch import NEVER, TIME_MAX, Batch, BatchBuilder, Codec, encode
from angarium.errors import InvalidBatch, LimitExceeded
from angarium.ids import Epoch, ProducerId, Sequence

records = st.fixed_dictionaries(
    {"value": st.none() | st.binary(max_size=60)},
    optional={
        "key": st.none() | st.binary(max_size=20),
        "headers": st.lists(
            st.tuples(st.text("aü", max_size=4), st.none() | st.binary(max_size=9))
        ),
        "timestamp": st.integers(0, 5),
        "expires_at": st.integers(1, 5) | st.just(NEVER),
        "deliver_at": st.integers(0, 5),
    },
)


@settings(max_examples=120, deadline=None)
@given(
    st.lists(records, min_size=1, max_size=60),
    st.integers(400, 3000),
    st.integers(1, 40),
    st.sampled_from(Codec),
)
def test_no_batch_breaks_a_limit_and_no_record_is_lost(
    given_records: list[dict[str, Any]], bytes_max: int, records_max: int, codec: Codec
) -> None:
    builder = BatchBuilder(records_max=records_max, bytes_max=bytes_max, codec=codec)
    batches, accepted = [], []

    def build() -> None:
        estimate, count = builder.bytes_estimate, len(builder)
        buffer = builder.build()
        assert len(buffer) <= estimate <= bytes_max
        assert count <= records_max
        batches.append(Batch.parse(buffer))

    for record in given_records:
        try:
            if not builder.add(**record):
                build()
                if not builder.add(**record):
                    pytest.fail("an empty builder takes a record or says that none ever will")
            accepted.append(record)
        except LimitExceeded:
            assert len(builder) == 0
    if len(builder):
        build()
    found = [record for batch in batches for record in batch]
    assert len(found) == len(accepted)
    for one, original in zip(found, accepted, strict=True):
        assert one.value == original["value"]
        assert one.key == original.get("key")
        assert one.headers == tuple(original.get("headers", ()))
        assert one.timestamp == original.get("timestamp", 0)
        assert one.expires_at == original.get("expires_at", NEVER)
        assert one.deliver_at == original.get("deliver_at", 0)


def test_the_estimate_is_close_for_plain_records() -> None:
    builder = BatchBuilder(bytes_max=64 * 1024)
    while builder.add(b"x" * 100):
        pass
    assert 0.98 * builder.bytes_max < len(builder.build()) <= builder.bytes_max


def test_building_hands_the_batch_out_and_starts_anew() -> None:
    builder = BatchBuilder()
    builder.add(b"a", key=b"k", timestamp=3)
    first = Batch.parse(
        builder.build(producer_id=ProducerId(1), epoch=Epoch(2), sequence=Sequence(3))
    )
    assert (first.producer_id, first.epoch, first.first_sequence) == (1, 2, 3)
    assert len(builder) == 0
    builder.add(b"b")
    assert Batch.parse(builder.build()).record(0).key is None


def test_a_builder_without_records_builds_nothing() -> None:
    with pytest.raises(InvalidBatch):
        BatchBuilder().build()


def test_a_record_that_fits_no_batch_says_so_and_leaves_the_builder_as_it_was() -> None:
    builder = BatchBuilder(bytes_max=1000)
    with pytest.raises(LimitExceeded, match="bytes_max"):
        builder.add(b"x" * 1000)
    assert len(builder) == 0
    assert builder.add(b"x" * 500)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"value": "text"}, TypeError),
        ({"value": b"", "key": 5}, TypeError),
        ({"value": b"", "headers": {"h": "text"}}, TypeError),
        ({"value": b"", "headers": {"\ud800": b""}}, InvalidBatch),
        ({"value": b"", "timestamp": -1}, InvalidBatch),
        ({"value": b"", "deliver_at": TIME_MAX + 1}, InvalidBatch),
        ({"value": b"", "expires_at": 0}, InvalidBatch),
    ],
)
def test_a_wrong_record_is_refused_at_once_and_spoils_nothing(
    wrong: dict[str, Any], error: type[Exception]
) -> None:
    builder = BatchBuilder()
    builder.add(b"good")
    with pytest.raises(error):
        builder.add(**wrong)
    assert Batch.parse(builder.build()).values() == [b"good"]


@pytest.mark.parametrize("key", [None, b"k"])
def test_a_builder_with_one_record_makes_the_same_batch_as_the_columns(key: bytes | None) -> None:
    builder = BatchBuilder()
    builder.add(b"value", key=key, timestamp=7)
    built = builder.build(producer_id=ProducerId(3), epoch=Epoch(1), sequence=Sequence(9))
    assert built == encode(
        [b"value"],
        keys=None if key is None else [key],
        timestamps=7,
        producer_id=ProducerId(3),
        epoch=Epoch(1),
        sequence=Sequence(9),
    )
    assert len(builder) == 0
