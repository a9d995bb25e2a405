"""Frames of a WebSocket, however they come, are those that wsproto would have read."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import Message, Ping, TextMessage

from angarium.wire.http.socket_frames import FrameCutter, MessageTooBig, text_frame

BYTES_MAX = 100_000


def client() -> Connection:
    return Connection(ConnectionType.CLIENT)


def texts_of(pieces: list[bytes]) -> tuple[list[str], int]:
    """Return the messages, and how many pings there were between them."""
    cutter, rest = FrameCutter(bytes_max=BYTES_MAX), Connection(ConnectionType.SERVER)
    texts: list[str] = []
    part, pings = "", 0
    for piece in pieces:
        for one in cutter.cut(piece):
            if isinstance(one, str):
                texts.append(one)
                continue
            rest.receive_data(one)
            for event in rest.events():
                if isinstance(event, Ping):
                    pings += 1
                elif isinstance(event, Message):
                    part += str(event.data)
                    if event.message_finished:
                        texts.append(part)
                        part = ""
    return texts, pings


SIZES = st.sampled_from([0, 1, 5, 124, 125, 126, 127, 1_000, 65_535, 65_536, 70_000])
MESSAGES = st.tuples(SIZES, st.sampled_from(["x", "é", "€"]), st.integers(1, 3), st.booleans())


@given(st.lists(MESSAGES, max_size=5), st.lists(st.integers(1, 40_000), max_size=8))
def test_texts_come_out_as_they_were_sent_however_they_are_cut(
    messages: list[tuple[int, str, int, bool]], cuts: list[int]
) -> None:
    sender = client()
    data, expected, pings = b"", [], 0
    for size, letter, parts, is_pinged in messages:
        text = (letter * size)[: size // len(letter.encode())]
        expected.append(text)
        at = [len(text) * number // parts for number in range(parts + 1)]
        for number in range(parts):
            is_last = number == parts - 1
            part = text[at[number] : at[number + 1]]
            data += sender.send(TextMessage(data=part, message_finished=is_last))
            if is_pinged:  # within a message, too
                pings += 1
                data += sender.send(Ping(payload=b"?"))
    pieces = []
    for size in cuts:
        pieces.append(data[:size])
        data = data[size:]
    assert texts_of([*pieces, data]) == (expected, pings)


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_what_is_sent_is_what_a_client_reads(size: int) -> None:
    reader = client()
    reader.receive_data(text_frame(b"y" * size))
    (event,) = reader.events()
    assert isinstance(event, TextMessage)
    assert event.data == "y" * size
    assert event.message_finished


@pytest.mark.parametrize("opcode", [0x0, 0x1])
def test_a_frame_that_says_it_is_too_long_is_not_waited_for(opcode: int) -> None:
    head = bytes([0x80 | opcode, 0xFF]) + (BYTES_MAX + 1).to_bytes(8)
    with pytest.raises(MessageTooBig):
        FrameCutter(bytes_max=BYTES_MAX).cut(head)


@pytest.mark.parametrize("opcode", [0x2, 0x3, 0x8, 0x9, 0xB])
def test_what_breaks_the_rules_is_handed_on_at_once(opcode: int) -> None:
    head = bytes([0x80 | opcode, 0xFF]) + (1 << 40).to_bytes(8)
    assert FrameCutter(bytes_max=BYTES_MAX).cut(head) == [head]


def test_a_text_that_is_none_is_left_to_wsproto() -> None:
    frame = bytes([0x81, 0x81, 0, 0, 0, 0, 0xFF])
    assert FrameCutter(bytes_max=BYTES_MAX).cut(frame) == [frame]


def test_a_message_that_dribbles_in_is_not_copied_for_each_byte() -> None:
    size = 1 << 20
    cutter = FrameCutter(bytes_max=size)
    cutter.keep(b"\x81\xff" + size.to_bytes(8) + bytes(4) + b"a" * (size - 4_000))
    tracemalloc.start()
    try:
        for _ in range(3_999):
            cutter.keep(b"a")
            assert cutter.cut() == []
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size + size // 2
    assert cutter.cut(b"a") == ["a" * size]
