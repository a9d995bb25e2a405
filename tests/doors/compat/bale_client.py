"""A client of bale as protoc makes it, in this process, which loads no other profile's."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import asyncio
import functools
import importlib
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
from tests.doors.compat.generated_client import generated

if TYPE_CHECKING:
    from types import TracebackType

WITHIN_S = 40.0


@functools.cache
def modules() -> tuple[Any, Any]:
    """Generate the client's modules, once, and load them."""
    folder = tempfile.mkdtemp(prefix="bale-client-")
    generated(Path(folder), "bale.proto")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module("bale_pb2"), importlib.import_module("bale_pb2_grpc")
    finally:
        sys.path.remove(folder)


class Subscriber:
    """A subscription that is known to have begun."""

    def __init__(self, call: Any) -> None:
        self._call = call

    async def next(self, within_s: float = WITHIN_S) -> bytes:
        message = await asyncio.wait_for(self._call.read(), within_s)
        assert message is not grpc.aio.EOF
        return bytes(message.body)

    async def code(self) -> grpc.StatusCode:
        """Return how it ended."""
        code: grpc.StatusCode = await asyncio.wait_for(self._call.code(), WITHIN_S)
        return code

    def cancel(self) -> None:
        self._call.cancel()


class Bale:
    """A client with a connection of its own."""

    def __init__(self, address: str) -> None:
        self.pb, calls = modules()
        self.channel = grpc.aio.insecure_channel(address)
        self.stub = calls.BrokerStub(self.channel)

    async def __aenter__(self) -> Bale:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.channel.close()

    async def publish(self, subject: str, body: bytes, expires_s: int = 0) -> int:
        request = self.pb.PublishRequest(subject=subject, body=body, expirationSeconds=expires_s)
        return int((await self.stub.Publish(request, timeout=WITHIN_S)).id)

    async def broadcast(self, subject: str, body: bytes) -> bool:
        request = self.pb.PublishRequest(subject=subject, body=body)
        return bool((await self.stub.Broadcast(request, timeout=WITHIN_S)).ack)

    async def fetch(self, subject: str, number: int) -> bytes:
        request = self.pb.FetchRequest(subject=subject, id=number)
        return bytes((await self.stub.Fetch(request, timeout=WITHIN_S)).body)

    async def inc_idx(self, subject: str) -> int:
        request = self.pb.IncIdxRequest(subject=subject)
        return int((await self.stub.IncIdx(request, timeout=WITHIN_S)).newIdx)

    async def subscribe(self, subject: str) -> Subscriber:
        """Subscribe, and return once the broker has said that it began."""
        call = self.stub.Subscribe(self.pb.SubscribeRequest(subject=subject))
        await asyncio.wait_for(call.initial_metadata(), WITHIN_S)
        if call.done():
            await call.read()  # raises why
        return Subscriber(call)


async def refusal(work: Any) -> tuple[grpc.StatusCode, str]:
    """Return how a call was refused."""
    try:
        await work
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details() or ""
    raise AssertionError("it was not refused")
