"""A connection that rests is not read before its time is up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from tests.on_a_loop import eventually, run

from angarium.wire.http import HttpServer, Response
from angarium.wire.http.connection import Connection
from angarium.wire.http.http_limits import HttpLimits

if TYPE_CHECKING:
    from angarium.wire.http.messages import Request
    from angarium.wire.http.stream import Stream

REST_S = 0.2


class Socket:
    """A transport that knows whether it is read."""

    def __init__(self) -> None:
        self.is_read = True

    def get_extra_info(self, name: str, default: object = None) -> object:
        del name
        return default

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def write(self, data: bytes) -> None:
        pass


def test_a_turn_that_is_out_of_date_does_not_end_a_rest() -> None:
    async def story() -> None:
        taken: list[Stream] = []

        def handler(request: Request) -> None:
            request.connection.wait_for_turn()
            taken.append(request.connection.begin_stream(request, status=200, headers=()))
            request.connection.rest(REST_S)

        def problem(error: Exception, /, *, status: int | None = None) -> Response:
            raise AssertionError(error, status)

        server = HttpServer(handler, problem=problem, limits=HttpLimits())
        connection, socket = Connection(server), Socket()
        connection.connection_made(cast("asyncio.Transport", socket))
        loop = asyncio.get_running_loop()
        began = loop.time()
        connection.data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert taken
        await eventually(lambda: socket.is_read)
        assert loop.time() - began >= REST_S * 0.9
        connection.connection_lost(None)

    run(story())
