"""Messages come out of a body as they went in, wherever it is cut, and within their limit."""

from __future__ import annotations

import gzip
import zlib
from itertools import pairwise
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angarium.errors import InvalidArgument, TooLarge
from angarium.wire.grpc.codes import GrpcCode
from angarium.wire.grpc.messages import CallRefused, MessageReader, framed, framed_gzip

BYTES_MAX = 1_000


def reader(*, has_gzip: bool = True) -> MessageReader:
    return MessageReader(bytes_max=BYTES_MAX, gzip=has_gzip)


def compressed(data: bytes) -> bytes:
    return pack(">BI", 1, len(data)) + data


@given(
    st.lists(st.tuples(st.binary(max_size=40), st.booleans()), max_size=6),
    st.lists(st.integers(0, 1 << 16), max_size=10),
)
def test_a_body_may_be_cut_anywhere(said: list[tuple[bytes, bool]], places: list[int]) -> None:
    body = b"".join(framed_gzip(one) if is_gzip else framed(one) for one, is_gzip in said)
    at = sorted({0, len(body), *(place % (len(body) + 1) for place in places)})
    it, found = reader(), []
    for begin, end in pairwise(at):
        found += it.feed(body[begin:end])
    assert found == [one for one, _ in said]
    assert it.held_bytes == 0


def test_each_byte_may_come_alone() -> None:
    it = reader()
    body = framed(b"") + framed(b"one") + framed_gzip(b"two")
    found = [message for byte in body for message in it.feed(bytes((byte,)))]
    assert found == [b"", b"one", b"two"]


def test_what_came_of_a_message_that_is_not_whole_is_known() -> None:
    it = reader()
    assert it.feed(framed(b"one") + framed(b"two")[:-1]) == [b"one"]
    assert it.held_bytes == 7
    assert it.feed(b"") == []
    assert it.held_bytes == 7
    assert it.feed(b"o" + framed(b"three")[:3]) == [b"two"]
    assert it.held_bytes == 3


def test_a_message_that_is_too_large_is_refused_before_it_has_come() -> None:
    assert reader().feed(framed(bytes(BYTES_MAX))) == [bytes(BYTES_MAX)]
    for cut in (5, 6, 100):
        with pytest.raises(TooLarge):
            reader().feed(framed(bytes(BYTES_MAX + 1))[:cut])
    it = reader()
    it.feed(b"\0\xff")
    with pytest.raises(TooLarge):
        it.feed(b"\xff\xff\xff")


def test_a_message_may_not_inflate_to_more_than_one_may_have() -> None:
    assert reader().feed(framed_gzip(bytes(BYTES_MAX))) == [bytes(BYTES_MAX)]
    with pytest.raises(TooLarge):
        reader().feed(framed_gzip(bytes(BYTES_MAX + 1)))
    with pytest.raises(TooLarge):
        reader().feed(framed_gzip(bytes(100_000)))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"no gzip", id="text"),
        pytest.param(gzip.compress(b"cut")[:-1], id="cut"),
        pytest.param(gzip.compress(b"more behind") + b"x", id="more behind"),
        pytest.param(gzip.compress(b"one") + gzip.compress(b"two"), id="two"),
        pytest.param(zlib.compress(b"another format"), id="zlib"),
        pytest.param(gzip.compress(b"wrong sum")[:-8] + bytes(8), id="wrong sum"),
    ],
)
def test_what_is_no_gzip_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidArgument):
        reader().feed(compressed(data))


@pytest.mark.parametrize("flag", [1, 2, 255])
def test_a_compressed_message_of_a_call_that_named_no_encoding_is_refused(flag: int) -> None:
    data = gzip.compress(b"x")
    with pytest.raises(CallRefused) as refusal:
        reader(has_gzip=False).feed(pack(">BI", flag, len(data)) + data)
    assert refusal.value.code is GrpcCode.INTERNAL


def test_a_flag_that_nobody_knows_is_refused() -> None:
    with pytest.raises(CallRefused):
        reader().feed(pack(">BI", 2, 1) + b"x")


@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_are_messages_or_refused(body: bytes, has_gzip: bool) -> None:
    it = reader(has_gzip=has_gzip)
    try:
        found = it.feed(body)
    except (CallRefused, InvalidArgument, TooLarge):
        return
    assert sum(len(one) + 5 for one in found) + it.held_bytes >= len(body) or has_gzip
