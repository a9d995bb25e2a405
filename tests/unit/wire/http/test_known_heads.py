"""Heads that are recognised mean what they meant when they were read."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hypothesis import given
from hypothesis import strategies as st

from angarium.wire.flooding import FloodMeter
from angarium.wire.http import HttpLimits
from angarium.wire.http.known_heads import HEAD_BYTES_MAX, HEADS_MAX, KnownHeads
from angarium.wire.http.request_reader import RequestReader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.wire.http.connection import Connection
    from angarium.wire.http.messages import Head, Request


class Heard:
    """A connection that only listens, and is idle between requests."""

    def __init__(self, heads: KnownHeads) -> None:
        self.requests: list[Request] = []
        self.flood = FloodMeter()
        self._reader = RequestReader(cast("Connection", self), HttpLimits(), heads)

    def request_read(self, request: Request) -> None:
        self.requests.append(request)

    def leave_wanted(self) -> None:
        """Grant it silently."""

    def check_proof(self, _: bytes | None) -> bool:
        """Know everybody."""
        return True

    def hear(self, pieces: Iterable[bytes]) -> list[tuple[object, ...]]:
        for piece in pieces:
            known = self._reader.recognised(piece)
            if known is not None:
                self.request_read(known)
                continue
            is_idle = not self._reader.in_head and not self._reader.in_body
            self._reader.feed(piece, is_idle=is_idle)
        return [_shown(one.head, one.body) for one in self.requests]


def _shown(head: Head, body: bytes) -> tuple[object, ...]:
    facts = (head.method, head.target, head.headers, dict(head.named))
    return (*facts, head.keep_alive, head.is_http_1_1, body)


def post(body: bytes, *more: str, target: str = "/a") -> bytes:
    lines = [f"POST {target} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *more]
    return "\r\n".join([*lines, "", ""]).encode() + body


def test_a_head_that_came_before_is_shared_and_the_body_is_its_own() -> None:
    heads = KnownHeads()
    heard = Heard(heads)
    heard.hear([post(b"one"), post(b"two")])
    first, second = heard.requests
    assert first.head is second.head
    assert [first.body, second.body] == [b"one", b"two"]
    assert len(heads) == 1
    # Another connection of the same server knows it, too.
    other = Heard(heads)
    other.hear([post(b"six")])
    assert other.requests[0].head is first.head


def test_what_needs_more_than_its_bytes_is_read_each_time() -> None:
    heads = KnownHeads()
    asked = post(b"x", "Expect: 100-continue")
    chunked = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    long = post(b"x", f"Long: {'y' * HEAD_BYTES_MAX}")
    Heard(heads).hear([asked, chunked, long])
    assert not len(heads)


def test_the_memory_for_heads_has_a_bound() -> None:
    heads = KnownHeads()
    Heard(heads).hear([post(b"", target=f"/{number}") for number in range(HEADS_MAX + 1)])
    assert len(heads) == 1


REQUESTS = st.sampled_from(
    [
        post(b"abc"),
        post(b"a\r\n\r\n"),
        post(b""),
        post(b"abcd", "X: 1", "x: 2"),
        post(b"ab", "Connection: keep-alive"),
        b"GET /b?c=d HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        b"\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    ]
)


@given(st.lists(REQUESTS, max_size=12), st.lists(st.integers(1, 200), max_size=6), st.booleans())
def test_however_they_are_cut_requests_are_what_a_fresh_reader_finds(
    requests: list[bytes], cuts: list[int], are_apart: bool
) -> None:
    pieces = list(requests)
    if not are_apart:
        data, pieces = b"".join(requests), []
        for size in cuts:
            pieces.append(data[:size])
            data = data[size:]
        pieces = [one for one in (*pieces, data) if one]
    heads = KnownHeads()
    for one in requests:  # so that whatever can be recognised will be
        Heard(heads).hear([one])
    fresh = [_shown(*_read_alone(one)) for one in requests]
    assert Heard(heads).hear(pieces) == fresh


def _read_alone(data: bytes) -> tuple[Head, bytes]:
    heard = Heard(KnownHeads())
    heard.hear([data])
    (request,) = heard.requests
    return request.head, request.body
