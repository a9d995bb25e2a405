"""A flood of requests that are refused to who asks ends its connection, after a login, too."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from tests.accounts import AccountsInMemory, account, authenticator
from tests.component.doors.counted import CountedPrincipal
from tests.component.doors.test_floods_end_their_connection import (
    DOORS,
    PROOF,
    Limits,
)
from tests.component.wire.running import LOCALHOST
from tests.floods import frames
from tests.floods.ending import flooded_until_cut
from tests.floods.frames import KINDS, Cell
from tests.on_a_loop import run
from tests.unit.doors.grpc.memory_broker import MemoryBroker

from angarium.doors.callers import Callers
from angarium.doors.grpc import GrpcDoor
from angarium.wire.flooding import Door
from angarium.wire.http2 import frames as h2
from angarium.wire.http2.header_blocks import literal

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS_MAX = 60.0

HEAD = (
    b"\x83\x86"
    + literal(b":path", b"/angarium.v1.Broker/ListTopics")
    + literal(b"content-type", b"application/grpc")
)
WRONG = b"GET /v1/topics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic %b\r\n\r\n"


def calls(number: int, *, head: bytes = HEAD, pieces: int = 1) -> bytes:
    """Return a block of calls, each with a message in so many pieces."""
    message = (b"\0" + (5 * pieces - 5).to_bytes(4)).ljust(5 * pieces, b"\0")
    said = []
    for one in range(64):
        stream = 101 + 2 * (64 * number + one)
        said.append(h2.frame(h2.HEADERS, h2.END_HEADERS, stream, head))
        for at in range(0, 5 * pieces, 5):
            ends = h2.END_STREAM if at == 5 * pieces - 5 else 0
            said.append(h2.frame(h2.DATA, ends, stream, message[at : at + 5]))
    return b"".join(said)


@pytest.mark.parametrize(
    ("door", "is_proven", "block"),
    [
        (Door.GRPC, True, calls),
        (Door.GRPC, True, partial(calls, pieces=20)),
        (
            Door.GRPC,
            True,
            partial(calls, head=HEAD + literal(b"authorization", b"Basic YWxpY2U6d3Jvbmc=")),
        ),
        (Door.HTTP, False, lambda _: WRONG % b"YWxpY2U6d3Jvbmc=" * 64),
    ],
    ids=["grpc", "grpc in pieces", "grpc wrong password", "http wrong password"],
)
def test_requests_without_a_login_end_their_connection(
    door: Door,
    is_proven: bool,
    block: Callable[[int], bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(KINDS[door], "refused", block)
    if door is Door.HTTP:
        ready = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        monkeypatch.setitem(frames._OPENINGS, door, lambda *_: (ready,))

    async def story() -> None:
        async with DOORS[door]() as (port, asks), asyncio.timeout(SECONDS_MAX):
            await flooded_until_cut(port, Cell(door, "refused", is_proven), PROOF)
            assert await asks()

    run(story())


def test_calls_over_their_quota_end_their_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    head = HEAD + literal(b"authorization", PROOF.authorization)
    monkeypatch.setitem(KINDS[Door.GRPC], "refused", partial(calls, head=head))

    async def story() -> None:
        broker: Any = MemoryBroker()
        broker.counted = CountedPrincipal(requests=20)
        accounts = AccountsInMemory(account("alice", "right"))
        callers: Any = Callers(authenticator(accounts), lambda _: broker)
        door = GrpcDoor(callers, host=LOCALHOST, port=0, limits=Limits())
        port = await door.start()
        try:
            async with asyncio.timeout(SECONDS_MAX):
                await flooded_until_cut(port, Cell(Door.GRPC, "refused", True), PROOF)
        finally:
            await door.stop(grace_s=0)

    run(story())
