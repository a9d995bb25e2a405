"""A stream whose client has just gone: gRPC refuses to write, which is nobody's mistake."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio
import pytest

from angarium.doors.grpc.calls import Calls
from angarium.errors import NotFound


class Refusals:
    def __init__(self) -> None:
        self.refused: list[Exception] = []

    async def refuse(self, _: object, error: Exception) -> None:
        self.refused.append(error)


def refused_after(error: Exception) -> list[Exception]:
    """Serve a stream whose handler raises `error`; return what a client would have been told."""

    async def handler(_: object, __: object) -> None:
        raise error

    refusals: Any = Refusals()
    call: Any = Calls(refusals, message_bytes_max=1_024).streaming(handler).stream_stream
    asyncio.run(call(None, None))
    return list(refusals.refused)


GONE = grpc.aio.InternalError("Failed execute_batch")
STOPPED = grpc.aio.BaseError("Server already stopped")


@pytest.mark.parametrize("error", [GONE, STOPPED, ExceptionGroup("tasks", [GONE])])
def test_nobody_is_told_that_nobody_is_there(error: Exception) -> None:
    assert refused_after(error) == []


@pytest.mark.parametrize("error", [NotFound("x"), ExceptionGroup("tasks", [NotFound("x")])])
def test_every_other_error_is_told(error: Exception) -> None:
    assert refused_after(error) == [error]
