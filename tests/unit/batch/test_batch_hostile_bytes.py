"""The door: bytes with a valid checksum that lie about everything else."""

from __future__ import annotations

import struct
import sys
import tracemalloc
from typing import Any

import lz4.block
import pytest
from tests.fuzz.forgery import HEADER_FIELDS, forged, resealed

from angarium.batch import NEVER, TIME_MAX, Batch, BatchLimits, Codec, Flag, encode
from angarium.batch.compression import packed
from angarium.errors import InvalidBatch

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PEAK_BYTES_MAX = 128 * 1024 * 1024
"""What parsing one batch may allocate under the default limits, whatever its bytes say."""

SAMPLE: dict[str, Any] = {
    "values": [b"one", None, b"three"],
    "keys": [b"k", None, b""],
    "headers": [{"a": b"1"}, {}, {"b": None}],
    "timestamps": [3, 1, 2],
    "expires_at": [9, NEVER, 8],
    "deliver_at": [0, 5, 4],
}


@pytest.mark.parametrize(
    ("field", "lie", "reason"),
    [
        ("length", 0, "no batch has a length"),
        ("length", 2**32 - 8, "is declared in a buffer"),
        ("version", 2, "version 2"),
        ("format", 2, "format 2"),
        ("codec", 3, "codec 3"),
        ("reserved_byte", 1, "no meaning"),
        ("reserved", 1, "no meaning"),
        ("flags", 1 << 31, "no meaning"),
        ("flags", int(Flag.KEY_NULLS), "null marks"),
        ("flags", int(Flag.HEADER_NULLS), "null marks"),
        ("flags", int(Flag.OFFSET_DELTAS), "not welcome"),
        ("flags", 0, "end at byte"),
        ("count", 0, "0 records"),
        ("count", 2**32 - 1, "are more than"),
        ("span", 4, "cannot span"),
        ("producer_id", -1, "producer"),
        ("sequence", -1, "sequence"),
        ("sequence", 2**63 - 1, "sequence"),
        ("section_bytes", 2**32 - 1, "exceeds"),
        ("section_bytes", 8, "two different lengths"),
        ("packed_bytes", 8, "two different lengths"),
        ("timestamp_min", -1, "timestamps are out of range"),
        ("timestamp_min", 4, "timestamps are out of range"),
        ("timestamp_min", 2, "timestamps leave"),
        ("timestamp_max", 2, "timestamps leave"),
        ("timestamp_max", TIME_MAX + 1, "timestamps are out of range"),
        ("expires_at_min", 0, "expiry times are out of range"),
        ("expires_at_min", 9, "expiry times leave"),
        ("expires_at_max", NEVER - 1, "expiry times are out of range"),
        ("expires_at_max", 9, "expiry times leave"),
        ("deliver_at_max", 4, "delivery times leave"),
        ("deliver_at_min", 6, "delivery times are out of range"),
    ],
)
def test_a_lie_in_the_header_is_refused_with_a_reason(field: str, lie: int, reason: str) -> None:
    buffer = forged(encode(**SAMPLE), **{field: lie})
    with pytest.raises(InvalidBatch, match=reason):
        Batch.parse(buffer)


def test_times_that_differ_need_a_column() -> None:
    buffer = forged(encode([b"a", b"b"], timestamps=5), timestamp_min=4)
    with pytest.raises(InvalidBatch, match="column is missing"):
        Batch.parse(buffer)


def test_a_negative_time_in_a_column_is_refused() -> None:
    buffer = encode([b"a", b"b"], timestamps=[1, 2])
    struct.pack_into("<q", buffer, 136, -1)
    with pytest.raises(InvalidBatch, match="timestamps leave"):
        Batch.parse(resealed(buffer))


@pytest.mark.parametrize(
    "offsets", [(1, 3, 8), (0, 9, 8), (0, -1, 8), (0, 3, -1), (0, 3, 2**31 - 1)]
)
def test_offsets_that_do_not_climb_are_refused(offsets: tuple[int, ...]) -> None:
    buffer = encode([b"abc", b"defgh"])
    struct.pack_into("<3i", buffer, 136, *offsets)
    with pytest.raises(InvalidBatch):
        Batch.parse(resealed(buffer))


def test_offsets_that_climb_elsewhere_are_another_batch() -> None:
    buffer = encode([b"abc", b"defgh"])
    struct.pack_into("<3i", buffer, 136, 0, 1, 8)
    assert Batch.parse(resealed(buffer)).values() == [b"a", b"bcdefgh"]


@pytest.mark.parametrize(
    "name", [b"\xff", b"\xc3", b"\xed\xa0\x80", "ü".encode()[1:], b"ab\xf0\x9f\x98"]
)
def test_a_header_name_that_is_not_utf8_is_refused(name: bytes) -> None:
    mark = b"~" * len(name)
    buffer = bytearray(encode([b""], headers=[{mark.decode(): b""}]).replace(mark, name))
    with pytest.raises(InvalidBatch, match="UTF-8"):
        Batch.parse(resealed(buffer))


def test_a_character_cut_in_two_between_header_names_is_refused() -> None:
    buffer = encode([b""], headers=[[("x", b""), ("y", b"")]])
    buffer = bytearray(buffer.replace(b"xy", "ü".encode()))
    with pytest.raises(InvalidBatch, match="UTF-8"):
        Batch.parse(resealed(buffer))


@pytest.mark.parametrize("codec", [Codec.LZ4, Codec.ZSTD])
@pytest.mark.parametrize("change", [-8, 8])
def test_a_section_that_unpacks_to_another_length_is_refused(codec: Codec, change: int) -> None:
    buffer = encode([b"x" * 1000], codec=codec)
    section_bytes = Batch.trusted(buffer).header.section_bytes
    with pytest.raises(InvalidBatch):
        Batch.parse(forged(buffer, section_bytes=section_bytes + change))


def test_two_zstandard_frames_are_not_one() -> None:
    section = encode([b"x" * 1000])[136:]
    stream = packed(Codec.ZSTD, section)
    for twice in (stream + stream, stream + packed(Codec.ZSTD, b""), stream[:-1]):
        with pytest.raises(InvalidBatch, match="Zstandard"):
            Batch.parse(forged_section(twice, codec=Codec.ZSTD, section_bytes=len(section)))


def forged_section(stream: bytes, *, codec: Codec, section_bytes: int, **fields: int) -> bytearray:
    buffer = encode([b""])[:136] + stream + bytes(-len(stream) % 8)
    return forged(
        bytearray(buffer),
        length=len(buffer),
        codec=codec,
        packed_bytes=len(stream),
        section_bytes=section_bytes,
        **fields,
    )


def test_a_door_that_leaves_the_contents_alone_does_not_open_the_section() -> None:
    buffer = forged_section(b"nonsense", codec=Codec.ZSTD, section_bytes=16)
    Batch.parse(buffer, contents=False)
    with pytest.raises(InvalidBatch):
        Batch.parse(buffer)


@pytest.mark.parametrize(
    "limits",
    [
        BatchLimits(bytes_max=136),
        BatchLimits(records_max=1),
        BatchLimits(section_bytes_max=8),
        BatchLimits(headers_max=1),
    ],
)
def test_every_limit_is_kept(limits: BatchLimits) -> None:
    buffer = encode([b"a", b"b"], headers=[{"x": b""}, {"y": b""}])
    Batch.parse(buffer)
    with pytest.raises(InvalidBatch):
        Batch.parse(buffer, limits=limits)


def zeros(length: int, codec: Codec) -> bytes:
    if codec is Codec.LZ4:
        return bytes(lz4.block.compress(bytes(length), store_size=False))
    return packed(codec, bytes(length))


MEBIBYTE = 1024 * 1024
BOMBS = {
    "zstd, one gigabyte behind a small claim": lambda: forged_section(
        b"".join([zeros(64 * MEBIBYTE, Codec.ZSTD)] * 16), codec=Codec.ZSTD, section_bytes=16
    ),
    "zstd, all that may be claimed": lambda: forged_section(
        zeros(32 * MEBIBYTE, Codec.ZSTD),
        codec=Codec.ZSTD,
        section_bytes=32 * MEBIBYTE,
        count=131_072,
        span=131_072,
    ),
    "zstd, less than claimed": lambda: forged_section(
        zeros(8, Codec.ZSTD), codec=Codec.ZSTD, section_bytes=32 * MEBIBYTE
    ),
    "lz4, more than claimed": lambda: forged_section(
        zeros(64 * MEBIBYTE, Codec.LZ4), codec=Codec.LZ4, section_bytes=16
    ),
    "lz4, all that may be claimed": lambda: forged_section(
        zeros(32 * MEBIBYTE, Codec.LZ4), codec=Codec.LZ4, section_bytes=32 * MEBIBYTE
    ),
    "lz4, a claim beyond its ratio": lambda: forged_section(
        zeros(8, Codec.LZ4), codec=Codec.LZ4, section_bytes=32 * MEBIBYTE
    ),
    "a claim beyond the limit": lambda: forged_section(
        zeros(8, Codec.ZSTD), codec=Codec.ZSTD, section_bytes=2**32 - 8
    ),
    "four billion records": lambda: forged(encode([b""]), count=2**32 - 1, span=2**32 - 1),
    "two billion headers": lambda: resealed(
        bytearray(
            encode([b""], headers=[{"x": b""}]).replace(
                struct.pack("<2i", 0, 1), struct.pack("<2i", 0, 2**31 - 1)
            )
        )
    ),
    "headers with long names, none of them ASCII": lambda: encode(
        [b""] * 65_536, headers=[[("ü", None)] * 4] * 65_536, codec=Codec.ZSTD
    ),
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_memory_stays_bounded_whatever_is_claimed(bomb: Any) -> None:
    buffer = bomb()
    tracemalloc.start()
    try:
        Batch.parse(buffer)
    except InvalidBatch:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < PEAK_BYTES_MAX


def test_a_window_larger_than_the_section_and_8_mib_is_refused() -> None:
    section = encode([bytes(9 * MEBIBYTE)])[136:]
    parameter = zstd.CompressionParameter
    compressor = zstd.ZstdCompressor(
        options={parameter.window_log: 27, parameter.content_size_flag: 0}
    )
    stream = compressor.compress(section[:8]) + compressor.compress(
        section[8:], compressor.FLUSH_FRAME
    )
    with pytest.raises(InvalidBatch, match="Zstandard"):
        Batch.parse(forged_section(stream, codec=Codec.ZSTD, section_bytes=len(section)))


def test_the_forger_knows_every_field() -> None:
    buffer = encode(**SAMPLE)
    header = Batch.trusted(buffer).header
    for field in HEADER_FIELDS:
        assert forged(bytearray(buffer), **{field: getattr(header, field)}) == buffer
