"""Priorities are passed over, but for what may not be."""

from __future__ import annotations

from tests.unit.wire.http2.client_bytes import REQUEST, Client, request, was_reset

from angarium.wire.http2 import ErrorCode
from angarium.wire.http2 import frames as h2


def test_a_priority_changes_nothing() -> None:
    client = Client()
    assert client.say(h2.frame(h2.PRIORITY, 0, 1, h2.long_bytes(7) + b"\x10")) == []
    client.say(request(1, h2.long_bytes(7) + b"\x10" + REQUEST, ends=True, flags=h2.HAS_PRIORITY))
    assert client.heard.calls == [("begun", 1, b"/a/b"), ("ended", 1)]


def test_a_priority_of_another_size_ends_the_stream() -> None:
    client = Client()
    client.say(request(1))
    answers = client.say(h2.frame(h2.PRIORITY, 0, 1, bytes(4)))
    assert answers == was_reset(1, ErrorCode.FRAME_SIZE_ERROR)
    assert client.heard.calls[-1] == ("given up", 1)


def test_a_stream_that_depends_on_itself_is_refused_and_nobody_hears_of_it() -> None:
    client = Client()
    itself = h2.long_bytes(1) + b"\x10"
    answers = client.say(request(1, itself + REQUEST, ends=True, flags=h2.HAS_PRIORITY))
    assert answers == was_reset(1, ErrorCode.PROTOCOL_ERROR)
    assert client.heard.calls == []


def test_and_so_it_is_when_its_head_goes_on_in_the_next_frame() -> None:
    client = Client()
    itself = h2.long_bytes(1) + b"\x10"
    answers = client.say(
        h2.frame(h2.HEADERS, h2.HAS_PRIORITY | h2.END_STREAM, 1, itself + REQUEST[:2]),
        h2.frame(h2.CONTINUATION, h2.END_HEADERS, 1, REQUEST[2:]),
    )
    assert answers == was_reset(1, ErrorCode.PROTOCOL_ERROR)
    assert client.heard.calls == []
