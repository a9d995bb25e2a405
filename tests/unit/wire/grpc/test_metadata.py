"""Metadata, timeouts and status travel as gRPC's protocol says."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

import hpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from angarium.wire.grpc.codes import GrpcCode
from angarium.wire.grpc.metadata import (
    OK_TRAILERS,
    block_of,
    pairs_of,
    timeout_of,
    trailers_of,
)


def fields_of(block: bytes) -> list[tuple[bytes, bytes]]:
    found = hpack.Decoder().decode(block, raw=True)
    return [(bytes(name), bytes(value)) for name, value in found]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (b"1H", 3_600.0),
        (b"2M", 120.0),
        (b"30S", 30.0),
        (b"250m", 0.25),
        (b"1000u", 0.001),
        (b"5n", 5e-9),
        (b"0S", 0.0),
        (b"99999999H", 99_999_999 * 3_600.0),
    ],
)
def test_a_timeout_is_a_number_and_a_unit(text: bytes, seconds: float) -> None:
    assert timeout_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", [b"", b"1", b"S", b"1s", b"1h", b"-1S", b"+1S", b"1.5S", b" 1S", b"1S\n", b"123456789S"]
)
def test_what_is_no_timeout_is_none(text: bytes) -> None:
    assert timeout_of(text) is None


def test_metadata_is_what_http_and_grpc_do_not_use_themselves() -> None:
    fields = [
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
        (b"user-agent", b"x"),
        (b"content-length", b"1"),
        (b"grpc-timeout", b"1S"),
        (b"authorization", b"Bearer a"),
        (b"x", b"1"),
        (b"x", b"2"),
    ]
    assert pairs_of(fields) == (("authorization", "Bearer a"), ("x", "1"), ("x", "2"))


def test_text_that_is_none_is_read_byte_by_byte() -> None:
    assert pairs_of([(b"x", b"\xe9\xff")]) == (("x", "\xe9\xff"),)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (b"YWI=", (b"ab",)),
        (b"YWI", (b"ab",)),
        (b"", (b"",)),
        (b"YQ,YWI=,YWJj", (b"a", b"ab", b"abc")),
        (b"YQ, YWI", (b"a", b"ab")),
        (b"Y", ()),
        (b"Y,YQ", (b"a",)),
        (b"!!!!", ()),
        (b"YW I=", ()),
        (b"YQ==YQ==", ()),
        (b"\xff\xff", ()),
    ],
)
def test_binary_values_are_base64_or_left_out(value: bytes, found: tuple[bytes, ...]) -> None:
    assert pairs_of([(b"x-bin", value)]) == tuple(("x-bin", one) for one in found)


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_binary_values_travel_both_ways(values: list[bytes]) -> None:
    pairs = [("x-bin", value) for value in values]
    assert pairs_of(fields_of(block_of(pairs))) == tuple(pairs)


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=60))
def test_text_travels_as_it_is(value: str) -> None:
    assert pairs_of(fields_of(block_of([("x", value)]))) == (("x", value),)


def test_a_call_that_went_well_says_so_in_one_field() -> None:
    assert fields_of(trailers_of(GrpcCode.OK, "")) == [(b"grpc-status", b"0")]
    assert trailers_of(GrpcCode.OK, "") is OK_TRAILERS
    assert fields_of(trailers_of(GrpcCode.OK, "", [("x", "1")])) == [
        (b"grpc-status", b"0"),
        (b"x", b"1"),
    ]


@given(st.sampled_from(GrpcCode), st.text(min_size=1, max_size=60))
def test_a_sentence_is_escaped_so_that_it_is_printable_and_whole(
    code: GrpcCode, message: str
) -> None:
    status, said = fields_of(trailers_of(code, message))
    assert status == (b"grpc-status", b"%d" % code)
    assert said[0] == b"grpc-message"
    assert all(0x20 <= byte <= 0x7E for byte in said[1])
    assert unquote_to_bytes(said[1]) == message.encode(errors="replace")


def test_only_what_has_to_be_is_escaped() -> None:
    plain = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")
    (_, said) = fields_of(trailers_of(GrpcCode.UNKNOWN, plain))
    assert said[1].decode() == plain
    (_, said) = fields_of(trailers_of(GrpcCode.UNKNOWN, "50% für\n"))
    assert said[1] == b"50%25 f%C3%BCr%0A"


def test_half_a_character_is_replaced() -> None:
    (_, said) = fields_of(trailers_of(GrpcCode.UNKNOWN, "\ud800"))
    assert said[1] == b"?"
