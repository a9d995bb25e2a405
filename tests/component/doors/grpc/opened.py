"""An open door with a broker behind it and a client in front: what each test starts with."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
import grpc.aio
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from tests.unit.doors.grpc.memory_broker import MemoryBroker

from angarium.api import TopicConfig
from angarium.doors.grpc import GrpcDoor, GrpcLimits
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

T = TypeVar("T")

LOCALHOST = "127.0.0.1"


@dataclass
class Opened:
    broker: MemoryBroker
    door: GrpcDoor
    port: int
    channel: grpc.aio.Channel
    stub: Any
    """The generated one, which has no types."""


@asynccontextmanager
async def opened(
    limits: GrpcLimits | None = None,
    *,
    topics: dict[str, int] | None = None,
    leader_hint: Callable[[str, int], str | None] | None = None,
) -> AsyncIterator[Opened]:
    """Open a door; `topics` by name and number of partitions, "orders" with four if not given."""
    broker = MemoryBroker()
    for name, partitions in ({"orders": 4} if topics is None else topics).items():
        await broker.create_topic(name, partitions=partitions, config=TopicConfig())
    door = GrpcDoor(broker, host=LOCALHOST, port=0, limits=limits, leader_hint=leader_hint)
    port = await door.start()
    try:
        async with grpc.aio.insecure_channel(
            f"{LOCALHOST}:{port}", options=[("grpc.max_receive_message_length", -1)]
        ) as channel:
            yield Opened(broker, door, port, channel, BrokerStub(channel))
    finally:
        await door.stop(grace_s=0)


async def all_is_done(it: Opened) -> None:
    """Return when the door has done whatever it was about to do.

    Other calls on the same connection are answered behind what it had to send before them.
    """
    check: Any = it.channel.unary_unary("/grpc.health.v1.Health/Check")
    for _ in range(5):
        await check(b"")


@dataclass
class Refused:
    """What a client learns when its call fails."""

    status: grpc.StatusCode
    code: str
    message: str
    metadata: dict[str, str]
    hint: str | None
    details: list[Any]
    retry_after_s: float | None = None


async def refusal(call: Awaitable[object]) -> Refused:
    """Await a call that must fail; return what it failed with, after checking that all agrees."""
    try:
        answer = await call
    except grpc.aio.AioRpcError as error:
        return refused(error)
    raise AssertionError(f"the call did not fail but answered {answer!r}")


def refused(error: grpc.aio.AioRpcError) -> Refused:
    """Read an error as a client with google.rpc's library would."""
    trailing = dict(error.trailing_metadata() or ())
    status = rpc_status.from_call(error)
    assert status is not None, f"no details: {error.code()} {error.details()}"
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert info.domain == "angarium"
    assert info.reason == trailing["x-angarium-code"]
    assert status.code == error.code().value[0]
    others = []
    retry_after_s = None
    for packed in status.details[1:]:
        wait = error_details_pb2.RetryInfo()
        if packed.Unpack(wait):
            retry_after_s = wait.retry_delay.ToMilliseconds() / 1_000
            continue
        response = pb.PublishBatchResponse()
        assert packed.Unpack(response)
        others.append(response)
    return Refused(
        status=error.code(),
        code=info.reason,
        message=error.details() or "",
        metadata=dict(info.metadata),
        hint=str(trailing["x-leader-hint"]) if "x-leader-hint" in trailing else None,
        details=others,
        retry_after_s=retry_after_s,
    )
