"""What a client of geo does, unchanged: run with its listeners, a user, and a password."""

# mypy: ignore-errors

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import sys
import time
import uuid

import geo_pb2 as pb
import grpc
from geo_pb2_grpc import BrokerStub

ADDRESSES, USER, PASSWORD = sys.argv[1].split(","), sys.argv[2], sys.argv[3]


def proof(user: str = USER, password: str = PASSWORD, scheme: str = "basic"):
    packed = base64.b64encode(f"{user}:{password}".encode()).decode()
    return (("authorization", f"{scheme} {packed}"),)


class Subscriber:
    """A subscription that is known to have begun."""

    @classmethod
    async def begin(cls, stub, topics, metadata=None):
        one = cls()
        one.call = stub.Subscribe(
            pb.SubscribeRequest(topics=topics), metadata=proof() if metadata is None else metadata
        )
        await asyncio.wait_for(one.call.initial_metadata(), 60)
        return one

    async def next(self):
        message = await asyncio.wait_for(self.call.read(), 60)
        assert message is not grpc.aio.EOF
        return message

    async def take(self, count: int):
        return [await self.next() for _ in range(count)]


async def publish(stub, topic: str, body: bytes) -> str:
    request = pb.PublishRequest(topic=topic, body=body)
    return (await stub.Publish(request, metadata=proof(), timeout=30)).id


async def code_of(call) -> grpc.StatusCode:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code()
    raise AssertionError("it was not refused")


async def strangers(stubs) -> None:
    """Every call says who it is; which part of that is wrong nobody is told."""
    request = pb.PublishRequest(topic="secret", body=b"x")
    for metadata in (
        (),
        proof(password="wrong"),
        proof(user="nobody"),
        proof(scheme="bearer"),
        (("authorization", "basic !!!"),),
        (("authorization", "basic " + base64.b64encode(b"no colon").decode()),),
    ):
        refused = stubs[0].Publish(request, metadata=metadata)
        assert await code_of(refused) is grpc.StatusCode.UNAUTHENTICATED, metadata
        stream = stubs[0].Subscribe(pb.SubscribeRequest(topics={"secret": 0}), metadata=metadata)
        assert await code_of(stream.read()) is grpc.StatusCode.UNAUTHENTICATED, metadata
    assert (await stubs[0].Publish(request, metadata=proof(scheme="Basic"))).id


async def cheap(stubs) -> None:
    """A password is looked at once: a hundred calls take less than a hundred checks of it."""
    await publish(stubs[1], "cheap", b"x")
    began = time.monotonic()
    for _ in range(20):
        await publish(stubs[1], "cheap", b"x")
    took_s = time.monotonic() - began
    # What checks would cost is measured at the same load; a publish may be slow for other reasons.
    began = time.monotonic()
    for _ in range(3):
        hashlib.scrypt(PASSWORD.encode(), salt=bytes(16), n=1 << 14, r=8, p=5, maxmem=1 << 26)
    check_s = (time.monotonic() - began) / 3
    slowness = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    assert took_s < max(20 * 0.15 * slowness, 15 * check_s)


async def ids(stubs) -> None:
    """A UUID of its own for each message, and the same one wherever it is read."""
    sent = [await publish(stubs[number % 3], "ids", b"%d" % number) for number in range(6)]
    assert len({uuid.UUID(one) for one in sent}) == 6
    for stub in stubs:
        one = await Subscriber.begin(stub, {"ids": 0})
        assert [message.id for message in await one.take(6)] == sent
        one.call.cancel()


async def history_then_live(stubs) -> None:
    """Many topics in one stream: what was there by time, then what comes."""
    topics = ["red", "green", "blue"]
    sent = []
    for number in range(30):
        topic = topics[number % 3]
        await publish(stubs[0], topic, b"%d" % number)
        sent.append((topic, b"%d" % number))
    one = await Subscriber.begin(stubs[2], dict.fromkeys(topics, 0))
    history = await one.take(30)
    assert [(message.topic, message.body) for message in history] == sent
    for number in range(30, 60):
        topic = topics[number % 3]
        await publish(stubs[1], topic, b"%d" % number)
        sent.append((topic, b"%d" % number))
    live = await one.take(30)
    one.call.cancel()
    for topic in topics:
        mine = [body for where, body in sent if where == topic]
        assert [message.body for message in history + live if message.topic == topic] == mine
    times = [message.timestamp for message in history]
    assert times == sorted(times)
    assert len(set(times)) == 30
    assert abs(times[0] / 1e6 - time.time()) < 600


async def resuming(stubs) -> None:
    """After the last timestamp seen, topic by topic: nothing is missed, and nothing comes twice."""
    bodies = [b"%d" % number for number in range(40)]
    await asyncio.gather(*(publish(stubs[0], "resumed", body) for body in bodies))
    seen: list[bytes] = []
    last = 0
    for turn in range(8):
        one = await Subscriber.begin(stubs[turn % 3], {"resumed": last})
        for message in await one.take(5):
            seen.append(message.body)
            last = message.timestamp
        one.call.cancel()
    assert sorted(seen, key=int) == bodies
    late = await Subscriber.begin(stubs[0], {"resumed": last})
    await publish(stubs[1], "resumed", b"new")
    assert (await late.next()).body == b"new"
    late.call.cancel()
    future = await Subscriber.begin(stubs[0], {"resumed": (1 << 63) - 1})
    await publish(stubs[1], "resumed", b"newer")
    assert (await future.next()).body == b"newer"
    future.call.cancel()


async def wrong(stubs) -> None:
    nothing = stubs[0].Subscribe(pb.SubscribeRequest(), metadata=proof())
    assert await code_of(nothing.read()) is grpc.StatusCode.INVALID_ARGUMENT
    nameless = stubs[0].Publish(pb.PublishRequest(body=b"x"), metadata=proof())
    assert await code_of(nameless) is grpc.StatusCode.INVALID_ARGUMENT


async def main() -> None:
    channels = [grpc.aio.insecure_channel(address) for address in ADDRESSES]
    stubs = [BrokerStub(channel) for channel in channels]
    for story in (strangers, cheap, ids, history_then_live, resuming, wrong):
        began = time.monotonic()
        await asyncio.wait_for(story(stubs), 90)
        print(story.__name__, "ok", f"{time.monotonic() - began:.1f} s")
    for channel in channels:
        await channel.close()


asyncio.run(main())
