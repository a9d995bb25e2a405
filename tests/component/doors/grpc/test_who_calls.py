"""Who calls the gRPC door: no call without a proof, each with a broker of its own."""

from __future__ import annotations

import asyncio
import base64
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
from tests.accounts import AccountsInMemory, account, authenticator
from tests.component.doors.grpc.opened import LOCALHOST, refusal
from tests.on_a_loop import run
from tests.unit.doors.grpc.memory_broker import MemoryBroker

from angarium.api import TopicConfig
from angarium.doors.callers import Callers
from angarium.doors.grpc import GrpcDoor
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from angarium.api.access import Principal

LIST = pb.ListTopicsRequest()
RECORD = pb.PublishRequest(topic="orders", partition=0, record=pb.NewRecord(value=b"x"))


class Guarded:
    """A door that wants to know who calls; each principal has a broker that knows its name."""

    def __init__(self) -> None:
        self.accounts = AccountsInMemory(account("alice", "right"), account("bob", "b"))
        self.brokers: dict[str, MemoryBroker] = {}
        callers = Callers(authenticator(self.accounts), self.broker_for)
        self.door = GrpcDoor(callers, host=LOCALHOST, port=0)  # type: ignore[arg-type]
        self.stub: Any = None
        self.channel: Any = None

    def broker_for(self, principal: Principal) -> MemoryBroker:
        return self.brokers[principal.name]


@asynccontextmanager
async def guarded() -> AsyncIterator[Guarded]:
    it = Guarded()
    for name in ("alice", "bob"):
        it.brokers[name] = MemoryBroker()
        await it.brokers[name].create_topic("orders", partitions=1, config=TopicConfig())
        await it.brokers[name].create_topic(f"of-{name}", partitions=1, config=TopicConfig())
    port = await it.door.start()
    try:
        async with grpc.aio.insecure_channel(f"{LOCALHOST}:{port}") as channel:
            it.channel, it.stub = channel, BrokerStub(channel)
            yield it
    finally:
        await it.door.stop(grace_s=0)


def basic(name: str, password: str) -> tuple[tuple[str, str], ...]:
    told = base64.b64encode(f"{name}:{password}".encode()).decode()
    return (("authorization", f"Basic {told}"),)


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)


async def topics(it: Guarded, metadata: Any) -> set[str]:
    answer = await it.stub.ListTopics(LIST, metadata=metadata)
    return {one.name for one in answer.topics}


def test_each_principal_is_served_by_its_own_broker() -> None:
    async def check() -> None:
        async with guarded() as it:
            for _ in range(2):  # the second time from what is remembered
                assert await topics(it, basic("alice", "right")) == {"orders", "of-alice"}
                assert await topics(it, basic("bob", "b")) == {"orders", "of-bob"}
            token = it.accounts.issue("bob")
            assert await topics(it, bearer(token)) == {"orders", "of-bob"}
            for metadata in (basic("alice", "right"), bearer(token)):
                ack = (await it.stub.Publish(RECORD, metadata=metadata)).ack
                # One record for each of them: nothing travels in another one's batch.
                assert ack.offset == 0

    run(check())


@pytest.mark.parametrize(
    "metadata",
    [
        (),
        basic("alice", "wrong"),
        basic("nobody", "right"),
        bearer("angt_" + "A" * 43),
        bearer("a.b.c"),
        bearer("A" * 10_000),
        (("authorization", "Digest x"),),
        (("authorization", "garbage"),),
        (("authorization", ""),),
    ],
)
def test_without_a_proof_nothing_is_served_but_health_and_reflection(metadata: Any) -> None:
    async def check() -> None:
        async with guarded() as it:
            calls = [
                it.stub.ListTopics(LIST, metadata=metadata),
                it.stub.Publish(RECORD, metadata=metadata),
                it.stub.PublishBatch(
                    pb.PublishBatchRequest(topic="orders", records=[pb.NewRecord()]),
                    metadata=metadata,
                ),
                it.stub.Fetch(pb.FetchRequest(topic="orders"), metadata=metadata),
                anext(aiter(it.stub.Subscribe(iter(()), metadata=metadata))),
                anext(aiter(it.stub.PublishStream(iter(()), metadata=metadata))),
            ]
            for call in calls:
                refused = await refusal(call)
                assert refused.status in {
                    grpc.StatusCode.UNAUTHENTICATED,
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                }
                assert "AAAA" not in refused.message
                assert len(refused.message) < 300
            assert all(not one.requests for one in it.brokers.values())
            await it.channel.unary_unary("/grpc.health.v1.Health/Check")(b"")

    run(check())


def test_every_method_asks() -> None:
    async def check() -> None:
        async with guarded() as it:
            for method in pb.DESCRIPTOR.services_by_name["Broker"].methods:
                path = f"/angarium.v1.Broker/{method.name}"
                if method.client_streaming:
                    call = it.channel.stream_stream(path)(iter(()))
                    refused = await refusal(anext(aiter(call)))
                else:
                    refused = await refusal(it.channel.unary_unary(path)(b""))
                assert refused.status is grpc.StatusCode.UNAUTHENTICATED, method.name
                assert "ANGARIUM_TOKEN" in refused.message

    run(check())


def test_streams_are_the_principals_own() -> None:
    async def check() -> None:
        async with guarded() as it:
            requests = [pb.PublishStreamRequest(number=7, publish=RECORD)]
            call = it.stub.PublishStream(iter(requests), metadata=basic("alice", "right"))
            answer = await anext(aiter(call))
            assert answer.results[0].number == 7
            assert it.brokers["alice"].requests
            assert not it.brokers["bob"].requests

    run(check())


def test_an_expired_token_opens_nothing_more() -> None:
    async def check() -> None:
        async with guarded() as it:
            token = it.accounts.issue("alice", seconds=0.3)
            assert await topics(it, bearer(token))
            refused = None
            async with asyncio.timeout(10):
                while refused is None:
                    try:
                        await topics(it, bearer(token))
                    except grpc.aio.AioRpcError as error:
                        refused = error.code()
                    await asyncio.sleep(0.05)
            assert refused is grpc.StatusCode.UNAUTHENTICATED

    run(check())


def test_guesses_do_not_disturb_who_is_in() -> None:
    async def check() -> None:
        async with guarded() as it:
            await topics(it, basic("alice", "right"))

            async def guess(number: int) -> grpc.StatusCode:
                refused = await refusal(
                    it.stub.ListTopics(LIST, metadata=basic("alice", f"guess-{number}"))
                )
                return refused.status

            for begin in range(0, 200, 50):
                guesses = [guess(begin + at) for at in range(50)]
                begun = time.monotonic()
                statuses, _ = await asyncio.gather(
                    asyncio.gather(*guesses), topics(it, basic("alice", "right"))
                )
                assert set(statuses) <= {
                    grpc.StatusCode.UNAUTHENTICATED,
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                }
                assert time.monotonic() - begun < 20

    run(check())
