"""The small print of the log's bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from angarium.log.disk import SECTOR_BYTES
from angarium.log.wal.format import (
    FILE_HEADER_BYTES,
    ROUND_HEADER_BYTES,
    FileHeader,
    RoundHeader,
    Row,
    count_zero_sectors,
    file_header,
    file_seed,
    next_round,
    padded,
    parse_file_header,
    parse_round_header,
    parse_table,
    round_header,
    row_bytes,
    written_end,
    zero_sectors,
)

NUMBERS = st.integers(0, (1 << 64) - 2)
PIECES = st.lists(
    st.one_of(st.integers(0, 1500).map(bytes), st.binary(max_size=40)), max_size=6
).map(b"".join)


@given(data=PIECES, position=st.integers(0, 200).map(lambda eighth: eighth * 8))
def test_zero_sectors_are_those_that_would_read_as_zeros(data: bytes, position: int) -> None:
    """A written sector that is all zeros must lie within the payload and its padding."""
    end = position + padded(len(data))
    # A byte that is not zero on either side stands for the headers around a payload.
    content = b"\x01" * position + data.ljust(end - position, b"\0") + b"\x01" * SECTOR_BYTES
    expected = count_zero_sectors(content, 0, len(content))
    assert zero_sectors(data, position) == expected
    assert zero_sectors(memoryview(data), position) == expected
    assert zero_sectors(bytearray(data), position) == expected


@given(fields=st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS))
def test_a_file_header_is_read_back(fields: tuple[int, int, int, int]) -> None:
    header = FileHeader(*fields)
    content = file_header(header)
    assert len(content) == FILE_HEADER_BYTES
    assert parse_file_header(content) == header
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1
        assert parse_file_header(bytes(damaged)) is None


def test_a_group_header_is_good_only_where_it_was_written() -> None:
    seed = file_seed(7, 3)
    content = round_header(
        flags=1, length=400, mark=64, frames=3, zero_sectors=2, seed=seed, position=160
    )
    assert len(content) == ROUND_HEADER_BYTES
    file = bytes(160) + content + content
    assert parse_round_header(file, 160, seed=seed) == RoundHeader(1, 400, 64, 3, 2)
    assert parse_round_header(file, 200, seed=seed) is None, "a copy at another place"
    assert parse_round_header(file, 160, seed=file_seed(7, 4)) is None, "of another file"
    assert parse_round_header(file, 160, seed=file_seed(8, 3)) is None, "of another node"
    assert next_round(file, 8, end=len(file), seed=seed) == 160
    assert next_round(file, 168, end=len(file), seed=seed) is None


@given(st.binary(max_size=3), st.sampled_from([0, 1, 7, 65_535, 65_536, 65_537, 200_000]))
def test_the_end_of_what_was_written_is_found(data: bytes, zeros: int) -> None:
    assert written_end(data + bytes(zeros)) == len(data.rstrip(b"\0"))
    assert written_end(bytes(zeros) + b"x" + bytes(zeros)) == zeros + 1


@given(st.lists(st.tuples(NUMBERS, NUMBERS, st.none() | NUMBERS, st.integers(1, 7)), max_size=5))
def test_a_table_is_read_back(rows: list[tuple[int, int, int | None, int]]) -> None:
    table = [Row(a, b, a, b, a, term, b, term, flags) for a, b, term, flags in rows]
    assert parse_table(b"".join(map(row_bytes, table))) == table
