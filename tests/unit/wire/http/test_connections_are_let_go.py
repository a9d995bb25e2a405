"""A connection that has ended is freed at once: it leaves no ring for the garbage collector.

Clients that open a connection for every request would else fill memory until it comes by.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING, cast

import pytest

from angarium.wire.http import HttpServer, Response
from angarium.wire.http.connection import Connection
from angarium.wire.http.http_limits import HttpLimits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.wire.http.messages import Request

REQUEST = b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"


class Written:
    """A transport that keeps what was written."""

    def __init__(self) -> None:
        self.data = b""

    def get_extra_info(self, name: str, default: object = None) -> object:
        del name
        return default

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def write(self, data: bytes) -> None:
        self.data += data


@pytest.fixture
def _collector_is_off() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.usefixtures("_collector_is_off")
@pytest.mark.parametrize("pieces", [(REQUEST,), (REQUEST[:30], REQUEST[30:]), (REQUEST, REQUEST)])
def test_a_connection_that_has_ended_is_freed_at_once(pieces: tuple[bytes, ...]) -> None:
    def handler(_: Request) -> Response:
        return Response(200, b"{}")

    def problem(error: Exception, /, *, status: int | None = None) -> Response:
        raise AssertionError((error, status))

    async def lived() -> weakref.ref[Connection]:
        connection = Connection(HttpServer(handler, problem, HttpLimits()))
        transport = Written()
        connection.connection_made(cast("asyncio.Transport", transport))
        for piece in pieces:
            connection.data_received(piece)
        assert transport.data.startswith(b"HTTP/1.1 200 ")
        connection.connection_lost(None)
        return weakref.ref(connection)

    assert asyncio.run(lived())() is None
