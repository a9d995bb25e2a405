"""Frames: what goes in comes out, however the bytes are cut; hostile bytes are refused."""

from __future__ import annotations

import tracemalloc

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from angarium.errors import InvalidArgument, LimitExceeded
from angarium.wire import Frame, FrameTooLarge, InvalidFrame
from angarium.wire.decoder import SCRATCH_BYTES, FrameDecoder
from angarium.wire.frames import PREFIX, PREFIX_BYTES, FrameKind, frame_head, roomy

FRAME_MAX = 8 * 1024 * 1024
HEADER_MAX = 1024 * 1024


class Greeting(msgspec.Struct):
    name: str
    times: int = 1


def framed(
    header: bytes | msgspec.Struct = b"",
    *payload: bytes | bytearray | memoryview,
    kind: int = FrameKind.MESSAGE,
    operation: int = 7,
    frame_id: int = 9,
    flags: int = 0,
) -> bytes:
    head, size = frame_head(
        kind,
        operation,
        frame_id,
        header,
        payload,
        flags=flags,
        frame_bytes_max=FRAME_MAX,
        header_bytes_max=HEADER_MAX,
    )
    whole = b"".join([head, *payload])
    assert len(whole) == size
    return whole


def decoder(scratch_bytes: int = SCRATCH_BYTES) -> FrameDecoder:
    return FrameDecoder(
        frame_bytes_max=FRAME_MAX, header_bytes_max=HEADER_MAX, scratch=bytearray(scratch_bytes)
    )


frames_in = st.lists(
    st.tuples(
        st.integers(0, 255),
        st.integers(0, 2**16 - 1),
        st.integers(0, 2**64 - 1),
        st.binary(max_size=70),
        st.lists(st.binary(max_size=300), max_size=3),
    ),
    max_size=6,
)


@settings(max_examples=150)
@given(frames_in, st.lists(st.integers(1, 400), min_size=1, max_size=20), st.integers(24, 900))
def test_however_the_stream_is_cut_the_same_frames_come_out(
    frames: list[tuple[int, int, int, bytes, list[bytes]]], cuts: list[int], scratch_bytes: int
) -> None:
    stream = b"".join(
        framed(header, *payload, kind=kind, operation=operation, frame_id=frame_id)
        for kind, operation, frame_id, header, payload in frames
    )
    receiving = decoder(scratch_bytes)
    received: list[Frame] = []
    at = turn = 0
    while at < len(stream):
        size = cuts[turn % len(cuts)]
        received += receiving.feed(stream[at : at + size])
        at, turn = at + size, turn + 1
    assert receiving.error is None
    assert [
        (frame.kind, frame.operation, frame.id, frame.header, bytes(frame.payload))
        for frame in received
    ] == [
        (kind, operation, frame_id, header, b"".join(payload))
        for kind, operation, frame_id, header, payload in frames
    ]


@settings(max_examples=150)
@given(st.binary(max_size=400), st.integers(1, 50))
def test_any_bytes_at_all_end_in_frames_or_in_one_typed_error(noise: bytes, cut: int) -> None:
    whole, pieces = decoder(), decoder(100)
    at_once = whole.feed(noise)
    piecewise = [
        frame
        for start in range(0, len(noise), cut)
        for frame in pieces.feed(noise[start : start + cut])
    ]
    assert at_once == piecewise
    assert type(whole.error) is type(pieces.error)
    assert whole.error is None or isinstance(whole.error, InvalidFrame)


@settings(max_examples=150)
@given(st.data())
def test_a_flipped_bit_never_comes_out_as_a_frame(data: st.DataObject) -> None:
    good = framed(b"header", b"payload of some length")
    stream = bytearray(good * 2)
    bit = data.draw(st.integers(0, len(good) * 8 - 1))
    stream[bit // 8] ^= 1 << bit % 8
    receiving = decoder()
    received = receiving.feed(stream)
    # Padding is under the checksum too. A damaged length may leave the decoder waiting for more.
    assert received == []


def test_what_came_before_the_damage_is_still_delivered() -> None:
    receiving = decoder()
    bad = bytearray(framed(b"bad"))
    bad[-1] ^= 1
    received = receiving.feed(framed(b"one") + framed(b"two") + bytes(bad) + framed(b"three"))
    assert [frame.header for frame in received] == [b"one", b"two"]
    assert isinstance(receiving.error, InvalidFrame)
    assert receiving.feed(framed(b"four")) == []


def test_a_frame_announced_too_large_is_refused_before_it_is_allocated() -> None:
    receiving = FrameDecoder(frame_bytes_max=1 << 30, header_bytes_max=HEADER_MAX)
    prefix = PREFIX.pack((1 << 30) + 1, 0, FrameKind.MESSAGE, 0, 0, 0, 0)
    tracemalloc.start()
    try:
        assert receiving.feed(prefix) == []
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
    assert isinstance(receiving.error, FrameTooLarge)
    assert "frame_bytes_max" in str(receiving.error)


def test_memory_follows_the_bytes_that_came_not_those_announced() -> None:
    receiving = FrameDecoder(frame_bytes_max=1 << 30, header_bytes_max=HEADER_MAX)
    announced = PREFIX.pack(1 << 30, 0, FrameKind.MESSAGE, 0, 0, 0, 0)
    tracemalloc.start()
    try:
        receiving.feed(announced + bytes(1000))
        assert tracemalloc.get_traced_memory()[1] < 4 * 1024 * 1024
    finally:
        tracemalloc.stop()
    assert receiving.error is None


@pytest.mark.parametrize(
    ("length", "header_bytes", "error"),
    [
        (PREFIX_BYTES - 1, 0, InvalidFrame),
        (0, 0, InvalidFrame),
        (PREFIX_BYTES, 1, InvalidFrame),
        (PREFIX_BYTES + 7, 7, InvalidFrame),
        (FRAME_MAX, HEADER_MAX + 1, FrameTooLarge),
        (FRAME_MAX, 2**32 - 1, FrameTooLarge),
        (FRAME_MAX + 1, 0, FrameTooLarge),
        (2**32 - 1, 0, FrameTooLarge),
    ],
)
@pytest.mark.parametrize("cut", [PREFIX_BYTES, 5])
def test_hostile_lengths_are_refused(
    length: int, header_bytes: int, error: type[InvalidFrame], cut: int
) -> None:
    receiving = decoder()
    prefix = PREFIX.pack(length, 0, FrameKind.MESSAGE, 0, 0, header_bytes, 0)
    for start in range(0, PREFIX_BYTES, cut):
        assert receiving.feed(prefix[start : start + cut]) == []
    assert type(receiving.error) is error


@pytest.mark.parametrize("size", [SCRATCH_BYTES, 3 * SCRATCH_BYTES + 5, 5 * 1024 * 1024 + 1])
def test_a_frame_longer_than_the_scratch_arrives_whole_and_so_does_the_next(size: int) -> None:
    body = bytes(index % 251 for index in range(size))
    receiving = decoder()
    received = receiving.feed(framed(b"long", body) + framed(b"next", b"x"))
    assert [frame.header for frame in received] == [b"long", b"next"]
    assert received[0].payload == body
    assert received[0].payload.readonly


def test_bytes_of_a_long_frame_land_where_they_stay() -> None:
    body = bytes(2 * 1024 * 1024)
    stream = framed(b"", body)
    receiving = decoder()
    receiving.feed(stream[:100])
    target = receiving.writable()
    assert len(target) > SCRATCH_BYTES


@pytest.mark.parametrize("header_bytes", range(18))
def test_a_payload_begins_on_a_multiple_of_eight(header_bytes: int) -> None:
    (frame,) = decoder().feed(framed(b"h" * header_bytes, b"payload!"))
    assert frame.header == b"h" * header_bytes
    # The payload's address, as Arrow would see it.
    numbers = frame.payload.cast("Q")
    assert len(numbers) == 1
    assert (frame.size - len(frame.payload)) % 8 == 0


def test_payload_buffers_of_every_kind_are_taken_and_checked() -> None:
    buffers = (b"bytes", bytearray(b"array"), memoryview(b"a view of it")[2:6])
    (frame,) = decoder().feed(framed(b"", *buffers))
    assert bytes(frame.payload) == b"bytesarrayview"


def test_a_struct_header_travels_as_msgpack_and_is_read_by_type() -> None:
    (frame,) = decoder().feed(framed(Greeting("Mara", 3)))
    assert frame.read(Greeting) == Greeting("Mara", 3)


@pytest.mark.parametrize(
    "header", [b"", b"\xc1", b"\x92", b"\x81\xa4name", msgspec.msgpack.encode({"name": 5})]
)
def test_a_header_of_the_wrong_shape_is_the_callers_mistake(header: bytes) -> None:
    (frame,) = decoder().feed(framed(header))
    with pytest.raises(InvalidArgument, match="Greeting"):
        frame.read(Greeting)


@given(st.binary(max_size=60))
def test_no_header_bytes_make_reading_fail_in_another_way(header: bytes) -> None:
    frame = Frame(0, 0, 0, 0, header)
    try:
        frame.read(Greeting)
    except InvalidArgument:
        return


def test_a_deeply_nested_header_is_refused() -> None:
    nested = b"\x81\xa4name" + b"\x91" * 200_000
    with pytest.raises(InvalidArgument):
        Frame(0, 0, 0, 0, nested).read(dict)


def test_a_sender_does_not_build_what_the_other_side_would_refuse() -> None:
    with pytest.raises(LimitExceeded, match="frame_bytes_max"):
        framed(b"", bytes(FRAME_MAX))
    with pytest.raises(LimitExceeded, match="header_bytes_max"):
        framed(bytes(HEADER_MAX + 1))


def test_what_is_too_large_for_a_header_comes_in_the_payload() -> None:
    for name in ("short", "x" * 1_000_000):
        header, payload = roomy(Greeting(name))
        assert bool(header) == (name == "short")
        frame = Frame(FrameKind.ANSWER, 0, 7, 9, header, memoryview(b"".join(payload)))
        assert frame.read_large(Greeting) == Greeting(name)
    with pytest.raises(InvalidArgument, match="payload is not a well-formed Greeting"):
        Frame(FrameKind.ANSWER, 0, 7, 9, b"").read_large(Greeting)
