"""Header blocks mean what RFC 7541 says, whatever came before them; what does not ends all."""

from __future__ import annotations

import pytest

from angarium.wire.http2 import ErrorCode
from angarium.wire.http2.frames import ConnectionFailed
from angarium.wire.http2.header_blocks import RECOGNISED_MAX, HeaderDecoder, literal

CUSTOM = b"\x40\x0acustom-key\x0dcustom-header"
"""A literal that the table is to remember: 55 bytes there."""
SIXTY_TWO = b"\xbe"
"""Refers to what was remembered last."""


def decoder(block_bytes_max: int = 64 << 10) -> HeaderDecoder:
    return HeaderDecoder(block_bytes_max=block_bytes_max)


def remembered(name: bytes, value: bytes) -> bytes:
    return b"\x40" + literal(name, value)[1:]


def refused(block: bytes, reader: HeaderDecoder | None = None) -> ErrorCode:
    with pytest.raises(ConnectionFailed) as failure:
        (reader or decoder()).decoded(block)
    return failure.value.code


def test_the_requests_of_the_standards_example_are_read_one_after_another() -> None:
    # RFC 7541, C.4: with Huffman code, a table, and references to it.
    reader = decoder()
    first = reader.decoded(bytes.fromhex("828684418cf1e3c2e5f23a6ba0ab90f4ff"))
    assert first == (
        (b":method", b"GET"),
        (b":scheme", b"http"),
        (b":path", b"/"),
        (b":authority", b"www.example.com"),
    )
    second = reader.decoded(bytes.fromhex("828684be5886a8eb10649cbf"))
    assert second == (*first, (b"cache-control", b"no-cache"))
    third = reader.decoded(bytes.fromhex("828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf"))
    assert third == (
        (b":method", b"GET"),
        (b":scheme", b"https"),
        (b":path", b"/index.html"),
        (b":authority", b"www.example.com"),
        (b"custom-key", b"custom-value"),
    )


def test_the_first_and_the_last_of_the_static_table_are_where_they_belong() -> None:
    assert decoder().decoded(b"\x81\xbd") == ((b":authority", b""), (b"www-authenticate", b""))


@pytest.mark.parametrize("first", [b"\x00", b"\x10"])
def test_a_literal_that_is_not_to_be_remembered_is_not(first: bytes) -> None:
    reader = decoder()
    assert reader.decoded(first + CUSTOM[1:]) == ((b"custom-key", b"custom-header"),)
    assert refused(SIXTY_TWO, reader) is ErrorCode.COMPRESSION_ERROR


def test_what_was_remembered_last_has_the_lowest_number() -> None:
    reader = decoder()
    reader.decoded(remembered(b"a", b"1") + remembered(b"b", b"2"))
    assert reader.decoded(b"\xbe\xbf") == ((b"b", b"2"), (b"a", b"1"))


def test_a_name_may_come_from_the_table_and_leave_it_in_the_same_step() -> None:
    reader = decoder()
    reader.decoded(b"\x3f\x18" + CUSTOM)  # a table of 55 bytes: just this one
    assert reader.decoded(b"\x7e\x0dcustom-HEADER") == ((b"custom-key", b"custom-HEADER"),)
    assert reader.decoded(SIXTY_TWO) == ((b"custom-key", b"custom-HEADER"),)
    assert refused(b"\xbf", reader) is ErrorCode.COMPRESSION_ERROR


def test_the_oldest_make_room() -> None:
    reader = decoder()
    for one in range(200):
        reader.decoded(remembered(b"x", b"%03d" % one))  # 36 bytes each: 113 fit
    newest_first = reader.decoded(bytes((0x80 | 62,)) + b"\xff" + bytes((62 + 112 - 127,)))
    assert newest_first == ((b"x", b"199"), (b"x", b"087"))
    assert refused(b"\xff" + bytes((62 + 113 - 127,)), reader) is ErrorCode.COMPRESSION_ERROR


def test_one_that_is_larger_than_the_table_empties_it() -> None:
    reader = decoder()
    reader.decoded(CUSTOM)
    reader.decoded(remembered(b"large", b"l" * 5_000))
    assert refused(SIXTY_TWO, reader) is ErrorCode.COMPRESSION_ERROR


def test_a_table_made_smaller_forgets_and_made_larger_remembers_again() -> None:
    reader = decoder()
    reader.decoded(CUSTOM)
    assert reader.decoded(b"\x20\x3f\xe1\x1f" + CUSTOM) == ((b"custom-key", b"custom-header"),)
    assert refused(b"\xbf", reader) is ErrorCode.COMPRESSION_ERROR
    reader = decoder()
    reader.decoded(CUSTOM)
    reader.decoded(b"\x20")
    assert refused(SIXTY_TWO, reader) is ErrorCode.COMPRESSION_ERROR


def test_a_table_larger_than_allowed_is_refused() -> None:
    assert decoder().decoded(b"\x3f\xe1\x1f") == ()  # 4,096
    assert refused(b"\x3f\xe2\x1f") is ErrorCode.COMPRESSION_ERROR


def test_a_table_changes_its_size_only_where_a_block_begins() -> None:
    assert refused(b"\x82\x20") is ErrorCode.COMPRESSION_ERROR


# --- recognised, not decoded ----------------------------------------------------------------------


def test_a_block_that_came_before_is_recognised() -> None:
    reader = decoder()
    reader.decoded(CUSTOM)
    block = b"\x83\x86" + SIXTY_TWO
    assert reader.decoded(block) is reader.decoded(bytes(bytearray(block)))


@pytest.mark.parametrize(
    ("change", "then"),
    [
        (remembered(b"other", b"1"), (b"other", b"1")),
        (b"\x20\x3f\xe1\x1f" + remembered(b"other", b"2"), (b"other", b"2")),
    ],
)
def test_it_is_decoded_anew_when_the_table_is_another(
    change: bytes, then: tuple[bytes, bytes]
) -> None:
    reader = decoder()
    reader.decoded(CUSTOM)
    assert reader.decoded(SIXTY_TWO) == ((b"custom-key", b"custom-header"),)
    reader.decoded(change)
    assert reader.decoded(SIXTY_TWO) == (then,)


def test_it_is_refused_when_the_table_has_it_no_more() -> None:
    reader = decoder()
    reader.decoded(CUSTOM)
    reader.decoded(SIXTY_TWO)
    reader.decoded(b"\x20")
    assert refused(SIXTY_TWO, reader) is ErrorCode.COMPRESSION_ERROR


def test_a_block_that_changes_the_table_changes_it_each_time() -> None:
    reader = decoder()
    for _ in range(2):
        reader.decoded(CUSTOM)
    assert len(reader.decoded(b"\xbe\xbf")) == 2


def test_with_many_blocks_remembering_begins_anew_and_all_are_understood() -> None:
    reader = decoder()
    blocks = [literal(b"x-number", b"%d" % one) for one in range(3 * RECOGNISED_MAX)]
    for _ in range(2):
        found = [reader.decoded(block) for block in blocks]
        assert found == [((b"x-number", b"%d" % one),) for one in range(len(blocks))]


# --- numbers and bounds ---------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 254, 255, 16_383, 16_510, 16_511, 60_000])
def test_lengths_of_one_digit_and_of_several_are_read(size: int) -> None:
    value = b"v" * size
    for name in (b"x-name", b"user-agent", b":path"):
        assert decoder().decoded(literal(name, value)) == ((name, value),)


def test_a_number_may_be_written_longer_than_it_is() -> None:
    assert decoder().decoded(b"\x0f\x80\x80\x00\x01v") == ((b"accept-charset", b"v"),)


@pytest.mark.parametrize("first", [b"\xff", b"\x7f", b"\x3f", b"\x0f", b"\x00\x7f", b"\x00\xff"])
def test_a_number_without_an_end_is_refused(first: bytes) -> None:
    assert refused(first + b"\x80" * 1_000 + b"\x01") is ErrorCode.COMPRESSION_ERROR
    assert refused(first + b"\xff" * 1_000 + b"\x01") is ErrorCode.COMPRESSION_ERROR


@pytest.mark.parametrize("block", [CUSTOM, bytes.fromhex("418cf1e3c2e5f23a6ba0ab90f4ff")])
def test_a_block_that_ends_too_early_is_refused(block: bytes) -> None:
    for end in range(1, len(block)):
        assert refused(block[:end]) is ErrorCode.COMPRESSION_ERROR, end


@pytest.mark.parametrize("block", [b"\x80", b"\xbe", b"\xff\xff\xff\xff\x7f"])
def test_what_is_in_no_table_is_refused(block: bytes) -> None:
    assert refused(block) is ErrorCode.COMPRESSION_ERROR


def test_broken_huffman_code_is_refused() -> None:
    assert refused(b"\x00\x81\xff\x01v") is ErrorCode.COMPRESSION_ERROR


def test_fields_count_their_bytes_and_32_more() -> None:
    fields = literal(b"abc", b"12345") * 10
    assert len(decoder(block_bytes_max=400).decoded(fields)) == 10
    assert refused(fields, decoder(block_bytes_max=399)) is ErrorCode.ENHANCE_YOUR_CALM


def test_a_few_references_to_something_large_are_too_much() -> None:
    reader = decoder(block_bytes_max=64 << 10)
    reader.decoded(remembered(b"large", b"l" * 4_000))
    assert refused(SIXTY_TWO * 20, reader) is ErrorCode.ENHANCE_YOUR_CALM
