"""The door: what must hold before a batch from outside is believed.

Always checked, in this order, each before anything is allocated for the next: the length against
the bytes that are there; version, format, codec and flags; every limit; the extent of every fixed
column and of the section; both checksums; the fixed columns' contents against the bounds in the
header. With the section's contents (the default) also: that it decompresses to exactly the
declared length, that its columns fill it exactly, that all offsets climb from 0, and that header
names are UTF-8. What passed can be read, iterated and handed to Arrow without further checks.

Not checked: that a key's hash is the key's hash (whoever acts on it compares keys), and padding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.batch.columns import check_times
from angarium.batch.compression import unpacked
from angarium.batch.lanes import always_increases, lies_within
from angarium.batch.layout import (
    HEADER_NULLS,
    HEADERS,
    INT32_MAX,
    INT64_MAX,
    KEY_NULLS,
    KEYS,
    KNOWN_FLAGS,
    OFFSET_DELTAS,
    VERSION,
    Codec,
    FixedColumns,
    Format,
    Header,
    fixed_columns,
    padded,
    unpacked_header,
)
from angarium.batch.section import Section
from angarium.batch.stamping import batch_length, verify_checksums
from angarium.errors import InvalidBatch

if TYPE_CHECKING:
    from angarium.batch.batch_limits import BatchLimits


def checked_header(view: memoryview, *, limits: BatchLimits, compacted: bool) -> Header:
    """Return the header of a batch that fills `view`; what follows it is not yet believed."""
    length = batch_length(view)
    if length != len(view):
        raise InvalidBatch(f"a batch of {length} bytes is declared in a buffer of {len(view)}")
    # Each bound is checked before anything is allocated or unpacked by it: the numbers come from a
    # stranger.
    if length > limits.bytes_max:
        raise InvalidBatch(f"a batch of {length} bytes exceeds the limit of {limits.bytes_max}")
    header = unpacked_header(view)
    _check_kind(header)
    _check_counts(header, limits=limits, compacted=compacted)
    _check_times(header)
    return header


def checked_columns(view: memoryview, header: Header) -> FixedColumns:
    """Return where the fixed columns lie, after checking extent, checksums and contents."""
    columns = fixed_columns(header.flags, header.count)
    end = columns.end + padded(header.packed_bytes)
    if end != header.length:
        raise InvalidBatch(f"the columns end at byte {end} of a batch of {header.length}")
    verify_checksums(view, header)
    count = header.count
    for name, start, low, high in (
        ("timestamps", columns.timestamps, header.timestamp_min, header.timestamp_max),
        ("expiry times", columns.expires_at, header.expires_at_min, header.expires_at_max),
        ("delivery times", columns.deliver_at, header.deliver_at_min, header.deliver_at_max),
    ):
        if start and not lies_within(
            view[start : start + 8 * count], count=count, low=low, high=high
        ):
            raise InvalidBatch(f"the {name} leave the bounds that the header declares")
        if not start and low != high:
            raise InvalidBatch(f"the {name} differ, yet their column is missing")
    if columns.offset_deltas and count:
        _check_deltas(view[columns.offset_deltas :][: 4 * count], header)
    return columns


def checked_section(
    view: memoryview, header: Header, columns: FixedColumns, *, limits: BatchLimits
) -> Section:
    """Return the section's columns after unpacking and checking all of them."""
    section = located_section(view, header, columns)
    section.check(headers_max=limits.headers_max)
    return section


def located_section(view: memoryview, header: Header, columns: FixedColumns) -> Section:
    """Return the section's columns, unpacked if need be."""
    stored = view[columns.end : columns.end + header.packed_bytes]
    section = unpacked(header.codec, stored, section_bytes=header.section_bytes)
    return Section.locate(memoryview(section), flags=header.flags, count=header.count)


def _check_kind(header: Header) -> None:
    if header.version != VERSION:
        raise InvalidBatch(f"version {header.version} of the batch layout is unknown")
    if header.format != Format.COLUMNAR:
        raise InvalidBatch(f"format {header.format} is unknown")
    if header.codec > Codec.ZSTD:
        raise InvalidBatch(f"codec {header.codec} is unknown")
    flags = header.flags
    # Refused and not ignored, so that a later release may give these bits a meaning.
    if flags & ~KNOWN_FLAGS or header.reserved or header.reserved_byte:
        raise InvalidBatch("the header uses bits that have no meaning yet")
    if (flags & KEY_NULLS and not flags & KEYS) or (flags & HEADER_NULLS and not flags & HEADERS):
        raise InvalidBatch("null marks are declared for a column that is not there")


def _check_counts(header: Header, *, limits: BatchLimits, compacted: bool) -> None:
    count, span = header.count, header.span
    if count > limits.records_max:
        raise InvalidBatch(f"{count} records are more than the {limits.records_max} allowed")
    if header.flags & OFFSET_DELTAS:
        if not compacted:
            raise InvalidBatch("a compacted batch is not welcome here")
        if not count <= span <= INT32_MAX or not span:
            raise InvalidBatch(f"{count} records cannot span {span} offsets")
    elif not count or span != count:
        raise InvalidBatch(f"{count} records, not compacted, cannot span {span} offsets")
    if header.producer_id < 0 or not 0 <= header.sequence <= INT64_MAX - span:
        raise InvalidBatch("the producer's id or sequence is out of range")
    # Before decompression: a few kilobytes may claim to become gigabytes.
    if header.section_bytes > limits.section_bytes_max:
        raise InvalidBatch(
            f"a section of {header.section_bytes} bytes exceeds {limits.section_bytes_max}"
        )
    if header.codec == Codec.NONE and header.packed_bytes != header.section_bytes:
        raise InvalidBatch("an uncompressed section has two different lengths")


def _check_times(header: Header) -> None:
    check_times("timestamps", header.timestamp_min, header.timestamp_max)
    check_times("expiry times", header.expires_at_min, header.expires_at_max, low_min=1, never=True)
    check_times("delivery times", header.deliver_at_min, header.deliver_at_max)


def _check_deltas(deltas: memoryview, header: Header) -> None:
    if not always_increases(deltas, count=header.count) or deltas.cast("i")[-1] >= header.span:
        raise InvalidBatch("the offset deltas do not climb within the span")
