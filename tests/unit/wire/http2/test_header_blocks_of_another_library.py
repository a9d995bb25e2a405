"""Another implementation of HPACK judges ours: the same blocks mean the same fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.wire.http2.client_bytes import Client, request, settings_of

from angarium.wire.http2 import frames as h2
from angarium.wire.http2.frames import ConnectionFailed, Setting
from angarium.wire.http2.header_blocks import HeaderDecoder, literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    Fields = Sequence[tuple[bytes, bytes]]

names = st.sampled_from(
    [b":path", b":method", b"user-agent", b"te", b"x-trace", b"grpc-timeout", b"www-authenticate"]
) | st.binary(min_size=1, max_size=20)
values = st.sampled_from([b"POST", b"", b"trailers", b"1S", b"gzip, deflate"]) | st.binary(
    max_size=300
)
fields = st.lists(st.tuples(names, values), max_size=12)
"""Few enough different ones that they come again."""

steps = st.lists(
    st.tuples(
        st.none() | st.integers(0, 4_096) | st.sampled_from([0, 60, 120, 4_096]),
        fields,
        st.booleans(),
        st.booleans(),
    ),
    max_size=12,
)
"""Another size of the table or none, a header list, whether its values are a secret, whether the
Huffman code is used."""


def plain(found: object) -> Fields:
    assert isinstance(found, list)
    return tuple((bytes(name), bytes(value)) for name, value in found)


@given(steps)
def test_what_it_writes_is_read_alike_whatever_the_tables_size(
    said: list[tuple[int | None, list[tuple[bytes, bytes]], bool, bool]],
) -> None:
    encoder = hpack.Encoder()
    decoder = HeaderDecoder(block_bytes_max=64 << 10)
    for size, some, is_secret, huffman in said:
        if size is not None:
            encoder.header_table_size = size
        kind = hpack.NeverIndexedHeaderTuple if is_secret else hpack.HeaderTuple
        block = encoder.encode([kind(*one) for one in some], huffman=huffman)
        assert decoder.decoded(block) == tuple(some)


@given(st.lists(st.lists(st.tuples(names, values), max_size=6), min_size=1, max_size=3))
def test_blocks_that_come_again_are_read_alike(lists: list[list[tuple[bytes, bytes]]]) -> None:
    encoder = hpack.Encoder()
    decoder = HeaderDecoder(block_bytes_max=64 << 10)
    for _ in range(4):
        for some in lists:
            assert decoder.decoded(encoder.encode(some)) == tuple(some)


@given(fields)
def test_what_we_write_it_reads(some: list[tuple[bytes, bytes]]) -> None:
    block = b"".join(literal(*one) for one in some)
    assert plain(hpack.Decoder().decode(block, raw=True)) == tuple(some)


parts = st.sampled_from(
    [b"\x82", b"\xbe", b"\xbf", b"\xc0", b"\x20", b"\x3f\xe1\x1f", b"\x40\x01a\x01b", b"\x7e\x01c"]
) | st.binary(max_size=6)


@given(st.lists(st.lists(parts, max_size=8).map(b"".join), max_size=6))
def test_of_what_nobody_wrote_both_make_the_same(blocks: list[bytes]) -> None:
    ours, theirs = HeaderDecoder(block_bytes_max=64 << 10), hpack.Decoder()
    for block in blocks:
        try:
            found = ours.decoded(block)
        except ConnectionFailed:
            return  # it is free to be more patient than we are
        assert found == plain(theirs.decode(block, raw=True))


added = st.lists(st.tuples(st.binary(min_size=1, max_size=20), st.binary(max_size=20)), max_size=8)


@given(added, st.integers(0, 300), added)
def test_a_table_holds_what_its_size_allows_and_nothing_else(
    before: list[tuple[bytes, bytes]], size: int, behind: list[tuple[bytes, bytes]]
) -> None:
    """As RFC 7541 counts (section 4): no encoder refers to what is gone, so this asks for it."""
    blocks = [b"".join(map(remembered, before)), resized(size), b"".join(map(remembered, behind))]
    held = kept([*reversed(behind), *kept([*reversed(before)], 4_096)], size)
    for index in range(len(before) + len(behind) + 1):
        decoder = HeaderDecoder(block_bytes_max=64 << 10)
        for block in blocks:
            decoder.decoded(block)
        asked = bytes((0x80 | 62 + index,))
        if index < len(held):
            assert decoder.decoded(asked) == (held[index],)
        else:
            with pytest.raises(ConnectionFailed):
                decoder.decoded(asked)


def remembered(field: tuple[bytes, bytes]) -> bytes:
    """Return a field as a literal that the table takes in."""
    return b"\x40" + b"".join(bytes((len(one),)) + one for one in field)


def resized(size: int) -> bytes:
    """Return a change of the table's size."""
    number = bytearray(hpack.hpack.encode_integer(size, 5))
    number[0] |= 0x20
    return bytes(number)


def kept(fields: list[tuple[bytes, bytes]], size: int) -> list[tuple[bytes, bytes]]:
    """Return the newest fields, which come first, as far as a table of this size goes."""
    room = size
    for at, (name, value) in enumerate(fields):
        room -= len(name) + len(value) + 32
        if room < 0:
            return fields[:at]
    return fields


@pytest.mark.parametrize("in_one_go", [True, False])
@pytest.mark.parametrize("sizes", [(0,), (100,), (0, 4_096), (4_096,), (65_536,)])
def test_a_client_whose_table_is_smaller_is_told_that_we_use_none(
    sizes: tuple[int, ...], in_one_go: bool
) -> None:
    # RFC 7541, section 4.2: an encoder says so where the next block begins, though its table was
    # empty all the time. Decoders insist on it.
    client = Client()
    client.say(*[settings_of((Setting.HEADER_TABLE_SIZE, one)) for one in sizes])
    decoder = hpack.Decoder()
    for one in sizes:
        decoder.max_allowed_table_size = one
    sender = client.connection.sender
    for stream_id in (1, 3):
        client.say(request(stream_id))
        stream = client.stream(stream_id)
        if in_one_go:
            sender.answer(stream, b"\x88", b"body", literal(b"grpc-status", b"0"))
        else:
            sender.send_headers(stream, b"\x88")
            sender.send_trailers(stream, literal(b"grpc-status", b"0"))
        blocks = [one.payload for one in client.answers() if one.kind == h2.HEADERS]
        assert [plain(decoder.decode(one, raw=True)) for one in blocks] == [
            ((b":status", b"200"),),
            ((b"grpc-status", b"0"),),
        ]
