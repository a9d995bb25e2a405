"""The quick way to a batch of one record: the same bytes, and the same refusals, as any other."""

from __future__ import annotations

import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from angarium.batch import NEVER, TIME_MAX, encode, encode_one
from angarium.errors import InvalidBatch
from angarium.ids import Epoch, ProducerId, Sequence

MAYBE_BYTES = st.none() | st.binary(max_size=40)
TIMES = st.just(0) | st.integers(0, TIME_MAX)


@settings(max_examples=300)
@given(
    value=MAYBE_BYTES,
    key=MAYBE_BYTES,
    timestamp=TIMES,
    expires_at=st.just(NEVER) | st.integers(1, TIME_MAX),
    deliver_at=TIMES,
    producer_id=st.integers(0, 2**63 - 1).map(ProducerId),
    epoch=st.integers(0, 2**32 - 1).map(Epoch),
    sequence=st.integers(0, 2**63 - 2).map(Sequence),
)
def test_the_bytes_are_those_of_encode(
    value: bytes | None,
    key: bytes | None,
    timestamp: int,
    expires_at: int,
    deliver_at: int,
    producer_id: ProducerId,
    epoch: Epoch,
    sequence: Sequence,
) -> None:
    quick = encode_one(
        value,
        key=key,
        timestamp=timestamp,
        expires_at=expires_at,
        deliver_at=deliver_at,
        producer_id=producer_id,
        epoch=epoch,
        sequence=sequence,
    )
    assert quick == encode(
        (value,),
        keys=(key,),
        timestamps=timestamp,
        expires_at=expires_at,
        deliver_at=deliver_at,
        producer_id=producer_id,
        epoch=epoch,
        sequence=sequence,
    )
    assert type(quick) is bytearray


def test_views_and_bytearrays_are_taken_too() -> None:
    expected = encode((b"value",), keys=(b"key",))
    assert encode_one(bytearray(b"value"), key=memoryview(b"key")) == expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"timestamp": -1},
        {"timestamp": TIME_MAX + 1},
        {"expires_at": 0},
        {"expires_at": TIME_MAX + 1},
        {"deliver_at": -1},
        {"deliver_at": NEVER},
        {"producer_id": -1},
        {"producer_id": 2**63},
        {"epoch": -1},
        {"epoch": 2**32},
        {"sequence": -1},
        {"sequence": 2**63 - 1},
        {"key": memoryview(array.array("i", [1, 2]))},
    ],
    ids=lambda arguments: next(iter(arguments)),
)
def test_what_encode_refuses_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidBatch):
        encode_one(b"v", **wrong)  # type: ignore[arg-type]


def test_a_value_that_is_no_bytes_is_refused() -> None:
    with pytest.raises(InvalidBatch):
        encode_one(memoryview(array.array("i", [1, 2])))
