"""Numbering in place, and cutting runs of batches apart."""

from __future__ import annotations

import pytest

from angarium.batch import Batch, batch_length, crc32c, encode, split, stamp
from angarium.batch.checksum import PIECE_BYTES
from angarium.errors import InvalidBatch
from angarium.ids import Micros, Offset, Term


def test_stamping_writes_28_bytes_and_no_others() -> None:
    before = encode([b"x" * 100] * 10)
    after = bytearray(before)
    stamp(after, base_offset=Offset(2**40 - 1), term=Term(2**41 - 1), append_time=Micros(2**42 - 1))
    assert after[:8] == before[:8]
    assert after[36:] == before[36:]
    assert after[8:36] != before[8:36] == bytes(28)


def test_a_batch_is_stamped_through_a_view_of_a_larger_buffer() -> None:
    first, second = encode([b"a"]), encode([b"b", b"c"])
    joined = bytearray(first + second)
    offset = Offset(10)
    for view in split(joined):
        stamp(view, base_offset=offset, term=Term(1), append_time=Micros(5))
        offset = Batch.parse(view).next_offset
    assert [record.offset for view in split(joined) for record in Batch.parse(view)] == [10, 11, 12]


def test_a_later_stamp_replaces_an_earlier_one() -> None:
    buffer = encode([b"a"])
    for offset in (5, 8):
        stamp(buffer, base_offset=Offset(offset), term=Term(1), append_time=Micros(5))
    assert Batch.parse(buffer).base_offset == 8


@pytest.mark.parametrize(("base", "term", "time"), [(-1, 1, 1), (0, 0, 1), (0, 1, 0), (0, -1, 1)])
def test_an_impossible_stamp_is_our_own_mistake(base: int, term: int, time: int) -> None:
    with pytest.raises(AssertionError):
        stamp(encode([b"a"]), base_offset=Offset(base), term=Term(term), append_time=Micros(time))


def test_offsets_beyond_the_last_one_are_refused() -> None:
    buffer = encode([b"a", b"b"])
    stamp(buffer, base_offset=Offset(2**63 - 1), term=Term(1), append_time=Micros(1))
    with pytest.raises(InvalidBatch, match="beyond the last offset"):
        Batch.parse(buffer)


def test_split_cuts_a_run_apart_without_copying() -> None:
    batches = [encode([b"x" * size]) for size in (0, 1, 100, 1000)]
    run = b"".join(batches)
    parts = split(run)
    assert [bytes(part) for part in parts] == batches
    assert all(part.obj is run for part in parts)
    assert split(b"") == []
    assert batch_length(run, len(batches[0])) == len(batches[1])


@pytest.mark.parametrize("length", [0, 8, 128, 137, 2**32 - 8, 2**32 - 1])
def test_split_refuses_an_impossible_length(length: int) -> None:
    run = encode([b"a"]) + encode([b"b"])
    run[36:40] = length.to_bytes(4, "little")
    with pytest.raises(InvalidBatch):
        split(run)


def test_split_refuses_what_does_not_start_like_a_batch() -> None:
    with pytest.raises(InvalidBatch, match="start like a batch"):
        split(encode([b"a"]) + bytes(200))


def test_a_checksum_is_the_same_for_every_kind_of_buffer() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    long = bytes(range(256)) * (PIECE_BYTES // 256 * 2) + b"and a rest"
    assert crc32c(long) == crc32c(bytearray(long)) == crc32c(memoryview(long))


def test_the_fast_checksum_is_in_use() -> None:
    import google_crc32c

    assert google_crc32c.implementation == "c"
