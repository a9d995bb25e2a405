"""A topic is given partitions: feeds over its doors go on, and no key's record comes too early."""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_right
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest
import websockets
from tests.on_a_loop import eventually, run

from angarium.client import Client
from angarium.doors.feeds.feed import TopicFeed
from angarium.doors.feeds.following import EARLIEST, Whole
from angarium.doors.grpc import GrpcDoor
from angarium.doors.http import HttpDoor
from angarium.doors.http.graphql.subscribing import REPLAY, Subscribing
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub
from angarium.testing.broker import in_process_broker
from angarium_compat.subscribing import subscribed_live

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

LOCALHOST = "127.0.0.1"
KEYS = [f"key-{number}" for number in range(24)]
ADDITIONS = (3, 4, 8)
ROUNDS = 30
"""Records of each key before the first addition, and after each one."""

PADDING = "x" * 2_000
"""So that a partition is read in many turns, in which others have theirs."""

TOTAL = len(KEYS) * ROUNDS * (2 + len(ADDITIONS))


class Seen:
    """What one feed has brought."""

    def __init__(self) -> None:
        self.records = 0
        self._next: Counter[str] = Counter()

    def take(self, value: str) -> None:
        """Note a record; raises if it comes twice, or before an earlier one of its key."""
        key, number, _ = value.split("=")
        assert int(number) == self._next[key], f"{key}={number} came, {self._next[key]} is next"
        self._next[key] += 1
        self.records += 1


class Open:
    """A node with its doors."""

    def __init__(self, service: Any, http: int, grpc_port: int) -> None:
        self.service = service
        self.http = http
        self.grpc_port = grpc_port


@asynccontextmanager
async def opened(service: Any) -> AsyncIterator[Open]:
    http = HttpDoor(service, host=LOCALHOST, port=0)
    door = GrpcDoor(service, host=LOCALHOST, port=0)
    try:
        yield Open(service, await http.start(), await door.start())
    finally:
        await http.stop(grace_s=0)
        await door.stop(grace_s=0)


async def over_events(doors: Open, seen: Seen, where: str = "start=earliest") -> None:
    reader, writer = await asyncio.open_connection(LOCALHOST, doors.http, limit=1 << 24)
    head = f"GET /v1/topics/t/stream?{where} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    writer.write(head.encode())
    try:
        while True:
            line = await reader.readline()
            assert line, "the stream has ended"
            if line.startswith(b"data: "):
                seen.take(json.loads(line[6:])["value"])
    finally:
        writer.close()


async def over_events_again(doors: Open, seen: Seen) -> None:
    """Go on with an id from when there were two partitions, and nothing in them."""
    await over_events(doors, seen, "last_event_id=0.0")


async def over_grpc(doors: Open, seen: Seen) -> None:
    async with grpc.aio.insecure_channel(f"{LOCALHOST}:{doors.grpc_port}") as channel:
        call: Any = BrokerStub(channel).Subscribe()
        interest = pb.Interest(topic="t", start=pb.Start(earliest=pb.Start.Earliest()))
        opening = pb.SubscribeRequest.Open(interests=[interest])
        await call.write(pb.SubscribeRequest(open=opening))
        while True:
            answer = await call.read()
            assert not answer.fenced
            for record in answer.records:
                seen.take(record.value.decode())


async def over_a_socket(doors: Open, seen: Seen) -> None:
    url = f"ws://{LOCALHOST}:{doors.http}/v1/socket"
    async with websockets.connect(url, proxy=None, max_size=None) as ws:
        await ws.send('{"type":"subscribe","id":"a","topic":"t","start":"earliest"}')
        async for text in ws:
            message = json.loads(text)
            assert message["type"] in {"subscribed", "records"}, message
            for record in message.get("records", ()):
                seen.take(record["value"])


async def over_graphql(doors: Open, seen: Seen) -> None:
    events = Subscribing(doors.service, None).stream(topic="t", group=REPLAY)
    try:
        async for event in events:
            seen.take(event.subscribe.payload)
    finally:
        await events.close()


async def of_an_earlier_client(doors: Open, seen: Seen) -> None:
    feed = TopicFeed(await subscribed_live(doors.service, Whole("t", EARLIEST)))
    try:
        async for portion in feed:
            for record in portion.records:
                seen.take(bytes(record.value or b"").decode())
    finally:
        await feed.close()


FEEDS: list[Callable[[Open, Seen], Any]] = [
    over_events,
    over_grpc,
    over_a_socket,
    over_graphql,
    of_an_earlier_client,
]


async def publish_rounds(client: Client, first: int) -> None:
    for number in range(first, first + ROUNDS):
        for key in KEYS:
            client.publish_nowait("t", f"{key}={number}={PADDING}".encode(), key=key.encode())
        if number % 5 == 0:
            await asyncio.sleep(0.02)


async def publish_and_add(client: Client) -> None:
    """Publish all there is, and add partitions while some of it is on its way."""
    publishing = asyncio.create_task(publish_rounds(client, 0))
    for turn, partitions in enumerate(ADDITIONS, 1):
        await publishing
        publishing = asyncio.create_task(publish_rounds(client, turn * ROUNDS))
        await client.alter_topic("t", partitions=partitions)
    await publishing
    # An addition may take longer than what was published meanwhile: some goes by the last layout.
    await until_in_force(client)
    await publish_rounds(client, (1 + len(ADDITIONS)) * ROUNDS)
    await client.flush()


async def until_in_force(client: Client) -> None:
    async with asyncio.timeout(30):
        while True:
            info = await client.describe_topic("t")
            layouts = (2, *ADDITIONS)
            if all(
                len(one.fences) == len(ADDITIONS) - bisect_right(layouts, number)
                for number, one in enumerate(info.partitions)
            ):
                return
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("nodes", [1, 3])
def test_every_feed_of_a_whole_topic_keeps_the_order_of_keys(nodes: int, tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            in_process_broker(tmp_path, nodes=nodes) as broker,
            Client(*broker.addresses) as client,
            opened(broker.services[-1]) as doors,
        ):
            await client.create_topic("t", partitions=2)
            live = [(feed, Seen()) for feed in FEEDS]
            reading = [asyncio.create_task(feed(doors, seen)) for feed, seen in live]
            await publish_and_add(client)
            late = [(feed, Seen()) for feed in (*FEEDS, over_events_again)]
            reading += [asyncio.create_task(feed(doors, seen)) for feed, seen in late]
            everybody = [seen for _, seen in live + late]
            await eventually(
                lambda: (
                    any(one.done() for one in reading)
                    or all(seen.records == TOTAL for seen in everybody)
                )
            )
            for task in reading:
                if task.done():
                    await task
                task.cancel()
            await asyncio.wait(reading)
            assert [seen.records for seen in everybody] == [TOTAL] * len(everybody)
            info = await client.describe_topic("t")
            assert all(one.end_offset for one in info.partitions)

    run(story())
