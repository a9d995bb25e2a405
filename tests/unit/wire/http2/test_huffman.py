"""Strings in the Huffman code of header blocks are read as they were written, or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angarium.wire.http2.huffman import InvalidHuffman, huffman_decoded

LENGTHS = bytes.fromhex(
    "0d 17 1c 1c 1c 1c 1c 1c 1c 18 1e 1c 1c 1e 1c 1c 1c 1c 1c 1c 1c 1c 1e 1c"
    "1c 1c 1c 1c 1c 1c 1c 1c 06 0a 0a 0c 0d 06 08 0b 0a 0a 08 0b 08 06 06 06"
    "05 05 05 06 06 06 06 06 06 06 07 08 0f 06 0c 0a 0d 06 07 07 07 07 07 07"
    "07 07 07 07 07 07 07 07 07 07 07 07 07 07 07 07 08 07 08 0d 13 0d 0e 06"
    "0f 05 06 05 06 05 06 06 06 05 07 07 06 06 06 05 06 07 06 05 05 06 07 07"
    "07 07 07 0f 0b 0e 0d 1c 14 16 14 14 16 16 16 17 16 17 17 17 17 17 18 17"
    "18 18 16 17 18 17 17 17 17 15 16 17 16 17 17 18 16 15 14 16 16 17 17 15"
    "17 16 16 18 15 16 17 17 15 15 16 15 17 16 17 17 14 16 16 16 17 16 16 17"
    "1a 1a 14 13 16 17 16 19 1a 1a 1a 1b 1b 1a 18 19 13 15 1a 1b 1b 1a 1b 18"
    "15 15 1a 1a 1c 1b 1b 1b 14 18 14 15 16 15 15 17 16 16 19 19 18 18 1a 17"
    "1a 1b 1a 1a 1b 1b 1b 1b 1b 1c 1b 1b 1b 1b 1b 1a"
)
"""The bits of each byte's word, in the order of RFC 7541, appendix B."""

END_OF_STRING = "1" * 30


def words() -> list[str]:
    """Return each byte's word: numbers in the order of length, then of the byte."""
    found = [""] * 256
    word = length = 0
    for byte in sorted(range(256), key=lambda one: (LENGTHS[one], one)):
        word <<= LENGTHS[byte] - length
        length = LENGTHS[byte]
        found[byte] = f"{word:0{length}b}"
        word += 1
    return found


WORDS = words()


def packed(bits: str) -> bytes:
    assert len(bits) % 8 == 0
    return bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8))


def encoded(text: bytes) -> bytes:
    bits = "".join(WORDS[byte] for byte in text)
    return packed(bits + "1" * (-len(bits) % 8))


@given(st.binary(max_size=200))
def test_what_was_encoded_is_read_again(text: bytes) -> None:
    assert huffman_decoded(encoded(text)) == text


def test_every_byte_is_read_wherever_it_begins() -> None:
    text = (
        bytes(range(256)) + bytes(range(255, -1, -1)) + b"".join(b"0%c" % one for one in range(256))
    )
    assert huffman_decoded(encoded(text)) == text


def test_the_standards_own_example_is_read() -> None:
    # RFC 7541, C.4.1.
    assert huffman_decoded(bytes.fromhex("f1e3c2e5f23a6ba0ab90f4ff")) == b"www.example.com"


def test_nothing_is_nothing() -> None:
    assert huffman_decoded(b"") == b""


@pytest.mark.parametrize("bits", ["00000000", "00000110", "00000" + "011"])
def test_padding_that_is_not_all_ones_is_refused(bits: str) -> None:
    with pytest.raises(InvalidHuffman):
        huffman_decoded(packed(bits))


@pytest.mark.parametrize("text", [b"", b"0", b"&"])
def test_a_whole_byte_of_padding_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidHuffman):
        huffman_decoded(encoded(text) + b"\xff")


def test_seven_bits_of_padding_are_allowed() -> None:
    text = b"!0000000"  # 10 + 7 x 5 bits: three to go
    for count in range(8):
        assert huffman_decoded(encoded(text[: count + 1])) == text[: count + 1]
    # A word of 28 bits and one of 13: seven to go.
    assert huffman_decoded(packed(WORDS[2] + WORDS[0] + "1" * 7)) == b"\x02\0"


@pytest.mark.parametrize("before", [b"", b"a", b"&"])
def test_the_end_of_a_string_is_never_sent_whole(before: bytes) -> None:
    bits = "".join(WORDS[byte] for byte in before) + END_OF_STRING
    with pytest.raises(InvalidHuffman):
        huffman_decoded(packed(bits + "1" * (-len(bits) % 8)))
    with pytest.raises(InvalidHuffman):
        huffman_decoded(packed(bits + WORDS[ord("a")] + "1" * (-(len(bits) + 5) % 8)))


@given(st.binary(max_size=64))
def test_only_what_an_encoder_writes_is_taken(data: bytes) -> None:
    try:
        text = huffman_decoded(data)
    except InvalidHuffman:
        return
    assert encoded(text) == data
