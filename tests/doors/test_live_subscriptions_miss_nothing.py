"""Whoever is told that a live subscription has begun misses nothing that is published from then on:
whichever mode, through whichever nodes, whether the topic was there or not."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest
from tests.doors.cluster_of_doors import Doors, run
from tests.doors.compat.calls import (
    CONSISTENT,
    EVENTUAL,
    PERFORMANCE,
    bale_calls,
    geo_calls,
    hermes_calls,
)
from tests.doors.compat.speaking_profiles import PROOF
from tests.doors.test_a_gateway_in_front_of_a_cluster import gateway
from websockets.asyncio.client import connect

from angarium.client import Client
from angarium.errors import NotFound
from angarium.modes import DeliveryMode
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from tests.doors.compat.profiles_on import Profiles

    from angarium.bench.cluster import BenchNode

TIMES = 12
RECORDS = 20
WITHIN_S = 60.0
MODES = {"consistent": CONSISTENT, "eventual": EVENTUAL, "performance": PERFORMANCE}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("is_confirmed", [True, False], ids=["confirmed", "not-yet"])
def test_a_subscriber_of_hermes_has_the_first_messages_of_a_new_topic(
    profiles: Profiles, mode: str, is_confirmed: bool
) -> None:
    """Its client waits for nothing: it subscribes, and a moment later it publishes. So nothing may
    be missed as soon as the subscription has made the topic, either."""

    async def once(number: int, client: Client) -> None:
        topic = f"first-{mode}-{uuid.uuid4().hex[:8]}"
        nodes = profiles.listeners
        here, there = nodes[number % 3], nodes[(number // 3) % 3]
        async with hermes_calls(here.hermes) as reader, hermes_calls(there.hermes) as writer:
            await writer.channel.channel_ready()
            call = await reader.subscribe(topic)
            await (call.initial_metadata() if is_confirmed else is_there(client, topic))
            wanted = [b"%d" % one for one in range(RECORDS)]
            for payload in wanted:
                await writer.publish(topic, payload, MODES[mode])
            async with asyncio.timeout(WITHIN_S):
                found = [(await call.read()).payload for _ in wanted]
            assert found == wanted, (number, found)
            call.cancel()

    async def story() -> None:
        async with Client(*profiles.servers) as client:
            for number in range(TIMES):
                await once(number, client)

    run(story(), within_s=120)


async def is_there(client: Client, topic: str) -> None:
    while True:
        try:
            await client.describe_topic(topic)
            return
        except NotFound:
            await asyncio.sleep(0.001)


def test_a_member_of_a_new_group_of_a_new_topic_has_what_passes(profiles: Profiles) -> None:
    async def story() -> None:
        for number in range(6):
            topic = f"first-member-{uuid.uuid4().hex[:8]}"
            nodes = profiles.listeners
            async with (
                hermes_calls(nodes[number % 3].hermes) as reader,
                hermes_calls(nodes[(number + 1) % 3].hermes) as writer,
            ):
                call = await reader.subscribe(topic, "members")
                await call.initial_metadata()
                await writer.publish(topic, b"passing", PERFORMANCE)
                async with asyncio.timeout(WITHIN_S):
                    assert (await call.read()).payload == b"passing"
                call.cancel()

    run(story(), within_s=120)


def test_subscribers_of_bale_and_geo_have_the_first_messages_of_a_new_topic(
    profiles: Profiles,
) -> None:
    async def story() -> None:
        nodes = profiles.listeners
        for number in range(6):
            here, there = nodes[number % 3], nodes[(number + 1) % 3]
            name = f"first-{uuid.uuid4().hex[:8]}"
            async with (
                bale_calls(here.bale) as bale,
                bale_calls(there.bale) as other,
                geo_calls(here.geo) as geo,
                asyncio.timeout(WITHIN_S),
            ):
                call = bale.Subscribe(bale.message("SubscribeRequest", subject=f"{name}-b"))
                await call.initial_metadata()
                told = other.message("PublishRequest", subject=f"{name}-b", body=b"told")
                await other.Broadcast(told)
                await other.Publish(told)
                assert [(await call.read()).body for _ in range(2)] == [b"told", b"told"]
                call.cancel()
                far = 2**62  # nobody has seen it: what comes from now on
                wish = geo.message("SubscribeRequest", topics={f"{name}-g": far})
                seen = geo.Subscribe(wish, metadata=PROOF)
                await seen.initial_metadata()
                first = geo.message("PublishRequest", topic=f"{name}-g", body=b"first")
                await geo.Publish(first, metadata=PROOF)
                assert (await seen.read()).body == b"first"
                seen.cancel()

    run(story(), within_s=120)


# --- our own doors: a topic with several partitions, PERFORMANCE, subscribed through any node -----


async def with_grpc(node: BenchNode, topic: str, begun: asyncio.Event, count: int) -> set[bytes]:
    async with grpc.aio.insecure_channel(node.grpc) as channel:
        stub: Any = BrokerStub(channel)
        call = stub.Subscribe()
        opening = pb.SubscribeRequest.Open(interests=[pb.Interest(topic=topic)])
        await call.write(pb.SubscribeRequest(open=opening))
        await call.initial_metadata()
        begun.set()
        found: set[bytes] = set()
        while len(found) < count:
            found |= {one.value for one in (await call.read()).records}
        call.cancel()
        return found


async def with_events(node: BenchNode, topic: str, begun: asyncio.Event, count: int) -> set[bytes]:
    host, _, port = node.http.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        target = f"/v1/topics/{topic}/stream"
        writer.write(f"GET {target} HTTP/1.1\r\nHost: {node.http}\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        begun.set()
        found: set[bytes] = set()
        while len(found) < count:
            line = await reader.readline()
            if line.startswith(b"data: "):
                found.add(json.loads(line[6:])["value"].encode())
        return found
    finally:
        writer.transport.abort()


async def with_socket(node: BenchNode, topic: str, begun: asyncio.Event, count: int) -> set[bytes]:
    async with connect(f"ws://{node.http}/v1/socket", proxy=None) as ws:
        await ws.send(json.dumps({"type": "subscribe", "id": "s", "topic": topic}))
        assert json.loads(await ws.recv())["type"] == "subscribed"
        begun.set()
        found: set[bytes] = set()
        while len(found) < count:
            found |= {one["value"].encode() for one in json.loads(await ws.recv())["records"]}
        return found


async def with_client(node: BenchNode, topic: str, begun: asyncio.Event, count: int) -> set[bytes]:
    async with Client(node.wire) as client, client.subscribe(topic) as records:
        begun.set()
        found: set[bytes] = set()
        async for one in records:
            found.add(one.value or b"")
            if len(found) == count:
                break
        return found


SUBSCRIBERS = {
    "grpc": with_grpc,
    "events": with_events,
    "websocket": with_socket,
    "client": with_client,
}


async def passing_is_seen(doors: Doors, subscriber: str, nodes: list[BenchNode]) -> None:
    async with Client(*doors.servers) as client:
        for number in range(TIMES):
            topic = f"passing-{uuid.uuid4().hex[:8]}"
            await client.create_topic(topic, partitions=3)
            begun = asyncio.Event()
            wanted = {b"%d" % one for one in range(RECORDS)}
            async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
                node = nodes[number % len(nodes)]
                seen = tasks.create_task(SUBSCRIBERS[subscriber](node, topic, begun, RECORDS))
                await begun.wait()
                for payload in sorted(wanted):
                    await client.publish(topic, payload, mode=DeliveryMode.PERFORMANCE)
            assert seen.result() == wanted


@pytest.mark.parametrize("subscriber", SUBSCRIBERS)
def test_what_passes_comes_to_whoever_has_subscribed(doors: Doors, subscriber: str) -> None:
    run(passing_is_seen(doors, subscriber, doors.nodes), within_s=120)


@pytest.mark.parametrize("subscriber", ["events", "websocket"])
def test_what_passes_comes_through_a_gateway_as_well(doors: Doors, subscriber: str) -> None:
    async def story() -> None:
        async with gateway(doors) as node:
            await passing_is_seen(doors, subscriber, [node])

    run(story(), within_s=120)
