"""The quick look at plain batches: it lets nothing in that the door would not."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from angarium.batch import Batch, BatchLimits, Codec, crc32c, encode, stamp
from angarium.batch.layout import CHECKED_START, HEADER_BYTES
from angarium.batch.plain import is_plain_and_sound
from angarium.errors import InvalidBatch
from angarium.ids import Epoch, Micros, Offset, ProducerId, Sequence, Term

values = st.lists(st.binary(max_size=40), min_size=1, max_size=20)


def passes_the_door(data: bytes | bytearray) -> bool:
    try:
        batch = Batch.parse(data)
    except InvalidBatch:
        return False
    return not batch.is_stamped


@settings(max_examples=60)
@given(values=values, timestamp=st.integers(0, 10**16), sequence=st.integers(0, 10**12))
def test_batches_of_values_alone_are_plain(
    values: list[bytes], timestamp: int, sequence: int
) -> None:
    batch = encode(
        values,
        timestamps=timestamp,
        producer_id=ProducerId(7),
        epoch=Epoch(2),
        sequence=Sequence(sequence),
    )
    assert is_plain_and_sound(batch)
    assert is_plain_and_sound(memoryview(bytes(batch)))


@pytest.mark.parametrize(
    "batch",
    [
        encode([b"a", None]),
        encode([b"a"], keys=[b"k"]),
        encode([b"a"], headers=[[("n", b"v")]]),
        encode([b"a", b"b"], timestamps=[1, 2]),
        encode([b"a"], expires_at=5),
        encode([b"a"], deliver_at=5),
        encode([b"a" * 1000], codec=Codec.LZ4),
    ],
)
def test_whatever_is_not_plain_is_left_to_the_door(batch: bytearray) -> None:
    assert passes_the_door(batch)
    assert not is_plain_and_sound(batch)


def test_a_stamped_batch_is_not_plain() -> None:
    batch = encode([b"a"])
    stamp(batch, base_offset=Offset(0), term=Term(1), append_time=Micros(1))
    assert not is_plain_and_sound(batch)


def test_limits_hold_for_plain_batches_too() -> None:
    batch = encode([b"a"] * 10)
    assert not is_plain_and_sound(batch, limits=BatchLimits(records_max=9))
    assert not is_plain_and_sound(batch, limits=BatchLimits(bytes_max=len(batch) - 1))
    assert not is_plain_and_sound(batch, limits=BatchLimits(section_bytes_max=8))


@settings(max_examples=300)
@given(values=values, data=st.data())
def test_nothing_passes_that_the_door_refuses(values: list[bytes], data: st.DataObject) -> None:
    """Change header or offsets, put the checksum right again, and compare with the door."""
    batch = encode(values, producer_id=ProducerId(1))
    reach = HEADER_BYTES + 4 * len(values) + 4
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.integers(0, reach - 1))
        batch[place] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        struct.pack_into("<I", batch, 4, crc32c(memoryview(batch)[CHECKED_START:]))
    if is_plain_and_sound(batch):
        assert passes_the_door(batch)


@settings(max_examples=50)
@given(values=values, data=st.data())
def test_cut_and_extended_batches_do_not_pass(values: list[bytes], data: st.DataObject) -> None:
    batch = bytes(encode(values))
    assert not is_plain_and_sound(batch[: data.draw(st.integers(0, len(batch) - 1))])
    assert not is_plain_and_sound(batch + bytes(data.draw(st.integers(1, 16))))
