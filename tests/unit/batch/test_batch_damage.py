"""Every single-byte flip and every truncation of a small batch is noticed."""

from __future__ import annotations

import pytest

from angarium.batch import NEVER, Batch, Codec, clear_stamp, encode, split, stamp
from angarium.errors import InvalidBatch
from angarium.ids import Epoch, Micros, Offset, ProducerId, Sequence, Term


def small_batch(codec: Codec, *, stamped: bool) -> bytearray:
    buffer = encode(
        [b"value" * 8, None, b""],
        keys=[b"key", None, b""],
        headers=[{"a": b"1", "b": None}, None, {}],
        timestamps=[1, 2, 3],
        expires_at=[10, NEVER, 12],
        deliver_at=[0, 5, 6],
        producer_id=ProducerId(7),
        epoch=Epoch(1),
        sequence=Sequence(9),
        codec=codec,
    )
    if stamped:
        stamp(buffer, base_offset=Offset(100), term=Term(2), append_time=Micros(1_000))
    return buffer


@pytest.mark.parametrize("stamped", [True, False])
@pytest.mark.parametrize("codec", Codec)
def test_every_flipped_byte_is_detected(codec: Codec, stamped: bool) -> None:
    whole = small_batch(codec, stamped=stamped)
    batch = Batch.trusted(whole)
    batch.verify()
    for position in range(len(whole)):
        for flip in (0x01, 0x80, 0xFF):
            whole[position] ^= flip
            with pytest.raises(InvalidBatch):
                Batch.parse(whole)
            with pytest.raises(InvalidBatch):
                batch.verify()
            whole[position] ^= flip
    batch.verify()


def test_every_value_of_every_byte_is_detected() -> None:
    whole = small_batch(Codec.NONE, stamped=True)
    for position, original in enumerate(bytes(whole)):
        for value in range(256):
            if value != original:
                whole[position] = value
                with pytest.raises(InvalidBatch):
                    Batch.parse(whole)
        whole[position] = original
    Batch.parse(whole)


@pytest.mark.parametrize("codec", Codec)
def test_every_truncation_is_detected(codec: Codec) -> None:
    whole = small_batch(codec, stamped=True)
    for length in range(len(whole)):
        with pytest.raises(InvalidBatch):
            Batch.parse(whole[:length])
        with pytest.raises(InvalidBatch):
            Batch.trusted(whole[:length])
        if length:
            with pytest.raises(InvalidBatch):
                split(whole[:length])


def test_bytes_after_the_end_are_refused_at_the_door_and_left_out_by_trust() -> None:
    whole = small_batch(Codec.NONE, stamped=True)
    with pytest.raises(InvalidBatch):
        Batch.parse(whole + bytes(8))
    assert bytes(Batch.trusted(whole + bytes(8)).buffer) == whole


def test_an_unstamped_batch_is_a_state_of_its_own() -> None:
    plain = small_batch(Codec.NONE, stamped=False)
    stamped = small_batch(Codec.NONE, stamped=True)
    assert not Batch.parse(plain).is_stamped
    clear_stamp(stamped)
    assert stamped == plain
