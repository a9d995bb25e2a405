"""The small parts of a segment: frames, index, footer, start mark."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.disk_images import cut, disk_with, flipped, image_of
from tests.unit.log.stamped_batches import stamped, unstamped

from angarium.batch import Batch
from angarium.batch.checksum import extend
from angarium.ids import Micros, Offset
from angarium.log.memory_disk import MemoryDisk
from angarium.log.segments import SegmentConfig
from angarium.log.segments.footer import read_footer, read_index, write_footer
from angarium.log.segments.frames import GAP_SPAN_MAX, frame_at, gap_frames, is_intact, walk
from angarium.log.segments.index import Point, SparseIndex
from angarium.log.segments.segment import Segment
from angarium.log.segments.start_mark import read_start_mark, write_start_mark


def test_a_frame_says_what_the_batch_says() -> None:
    data = stamped(40, 3, term=2)
    frame, batch = frame_at(data, 0), Batch.trusted(data)
    assert frame is not None
    assert (frame.base_offset, frame.next_offset) == (batch.base_offset, batch.next_offset)
    assert (frame.append_time, frame.length) == (batch.append_time, batch.length)
    assert (frame.records, frame.is_gap) == (3, False)
    assert walk(data, 0) == (40, len(data), 3)


@pytest.mark.parametrize("data", [b"", b"ANGB", bytes(200), unstamped(b"x"), b"ANGG" + bytes(60)])
def test_what_is_no_stamped_frame_is_none(data: bytes) -> None:
    assert frame_at(data, 0) is None


def test_every_flip_in_a_batch_or_gap_breaks_it() -> None:
    for data in (stamped(3, 2), *gap_frames(Offset(3), Offset(9))):
        for position in range(len(data)):
            damaged = bytearray(data)
            damaged[position] ^= 1 << position % 8
            frame = frame_at(bytes(damaged), 0)
            assert frame is None or not is_intact(bytes(damaged), 0, frame), position


@given(st.integers(0, 2**40), st.integers(0, 2**35))
@settings(max_examples=50)
def test_gap_frames_cover_exactly_the_gap(start: int, width: int) -> None:
    expected = start
    for data in gap_frames(Offset(start), Offset(start + width)):
        frame = frame_at(data, 0)
        assert frame is not None
        assert frame.is_gap
        assert is_intact(data, 0, frame)
        assert frame.base_offset == expected
        assert frame.next_offset - frame.base_offset <= GAP_SPAN_MAX
        expected = frame.next_offset
    assert expected == start + width


def test_a_checksum_over_valid_stamps_cannot_tell_them_apart() -> None:
    # Why there is a second checksum: see the docstring of `index`.
    one, other = stamped(0, term=1), stamped(0, term=2)
    assert one != other
    assert extend(0, one) == extend(0, other)


def filled_index(entries: list[tuple[int, int, int]]) -> SparseIndex:
    index = SparseIndex()
    for offset, time, position in entries:
        index.add(
            offset=Offset(offset), time=Micros(time), position=position, crc=position, stamps=offset
        )
    return index


@given(st.lists(st.tuples(*[st.integers(0, 2**62)] * 2, st.integers(0, 2**32 - 1)), max_size=30))
@settings(max_examples=50)
def test_an_index_comes_back_as_it_was_stored(entries: list[tuple[int, int, int]]) -> None:
    entries = [(offset % 2**32, time, position) for offset, time, position in entries]
    data = filled_index(entries).encode()
    again = SparseIndex.decode(data)
    assert again is not None
    assert again.encode() == data
    assert len(again) == len(entries)
    assert SparseIndex.decode(data[:-1]) is None
    assert SparseIndex.decode(data + b"x") is None


def test_places_are_found_by_offset_time_and_position() -> None:
    index = filled_index([(10, 100, 0), (20, 200, 50), (30, 300, 90)])
    assert [index.row_of_offset(Offset(one)) for one in (10, 19, 20, 29, 99)] == [0, 0, 1, 1, 2]
    assert [index.row_before_time(Micros(one)) for one in (1, 100, 101, 200, 201)] == [
        0,
        0,
        0,
        0,
        1,
    ]
    assert [index.row_at_or_before(one) for one in (0, 49, 50, 1000)] == [0, 0, 1, 2]


def test_a_window_ends_at_the_last_point_within_reach_or_the_next() -> None:
    index = filled_index([(10, 1, 0), (20, 2, 50), (30, 3, 90)])
    end = Point(120, 7)
    assert index.window(0, 1, end)[2:] == (50, 50, 1)
    assert index.window(0, 89, end)[2:] == (50, 50, 1)
    assert index.window(0, 90, end)[2:] == (90, 90, 2)
    assert index.window(1, 500, end)[2:] == (120, 7, 3)
    # What is not written yet is out of reach.
    assert index.window(0, 1, Point(40, 7))[2:4] == (40, 7)


def sealed_segment() -> Segment:
    segment = Segment(Offset(5))
    for base in (5, 6, 7):
        data = stamped(base)
        frame = frame_at(data, 0)
        assert frame is not None
        segment.add(frame, crc=extend(segment.crc, data), index_bytes=200)
    return segment


def test_a_footer_brings_back_what_was_known() -> None:
    disk, segment = MemoryDisk(), sealed_segment()
    disk.make_folder("p")
    write_footer(disk, "p", segment)
    again = read_footer(disk, "p", Offset(5))
    index = read_index(disk, "p", Offset(5))
    assert again is not None
    assert index is not None
    assert segment.index is not None
    assert index.encode() == segment.index.encode()
    again.index = segment.index
    for name in set(Segment.__slots__) - {"written", "is_rolled", "is_sealed", "allocated"}:
        assert getattr(again, name) == getattr(segment, name), name


def test_a_damaged_footer_counts_as_none() -> None:
    disk = MemoryDisk()
    disk.make_folder("p")
    write_footer(disk, "p", sealed_segment())
    image = image_of(disk, "p")
    (name,) = image
    size = len(image[name])
    damaged = [flipped(image, name, at, bit=at % 8) for at in range(size)]
    damaged += [cut(image, name, length) for length in range(size)]
    for one in damaged:
        held = disk_with(one)
        head, index = read_footer(held, "p", Offset(5)), read_index(held, "p", Offset(5))
        assert head is None or index is None
    assert read_footer(disk, "p", Offset(6)) is None


def test_a_damaged_start_mark_counts_as_none() -> None:
    disk = MemoryDisk()
    disk.make_folder("p")
    assert read_start_mark(disk, "p") == 0
    write_start_mark(disk, "p", Offset(77))
    assert read_start_mark(disk, "p") == 77
    image = image_of(disk, "p")
    (name,) = image
    for position in range(len(image[name])):
        assert read_start_mark(disk_with(flipped(image, name, position, bit=2)), "p") == 0
        assert read_start_mark(disk_with(cut(image, name, position)), "p") == 0


@pytest.mark.parametrize("name", SegmentConfig.__slots__)
def test_a_limit_of_zero_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        SegmentConfig(**{name: 0})
