"""Publishing and reading through each profile's listener, with messages of its own schema."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import grpc.aio
from tests.doors.compat.profiles_on import PASSWORD, USER

from angarium_compat.bale.schema import SCHEMA as BALE
from angarium_compat.geo.schema import SCHEMA as GEO
from angarium_compat.hermes.schema import SCHEMA as HERMES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tests.doors.compat.profiles_on import Listeners

    from angarium_compat.schemas import Schema

PROOF = (("authorization", "basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()),)


def packed(message: Any) -> bytes:
    return bytes(message.SerializeToString())


async def _publish(
    address: str, schema: Schema, messages: Sequence[Any], metadata: Any = ()
) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        call: Any = channel.unary_unary(f"/{schema.service}/Publish", request_serializer=packed)
        for message in messages:
            await call(message, metadata=metadata, timeout=30)


async def publish_hermes(node: Listeners, topic: str, values: Sequence[bytes]) -> None:
    make = HERMES["PublishRequest"]
    await _publish(node.hermes, HERMES, [make(topic=topic, payload=one) for one in values])


async def publish_bale(node: Listeners, topic: str, values: Sequence[bytes]) -> None:
    make = BALE["PublishRequest"]
    await _publish(node.bale, BALE, [make(subject=topic, body=one) for one in values])


async def publish_geo(node: Listeners, topic: str, values: Sequence[bytes]) -> None:
    make = GEO["PublishRequest"]
    await _publish(node.geo, GEO, [make(topic=topic, body=one) for one in values], PROOF)


async def read_hermes(node: Listeners, topic: str, count: int) -> list[bytes]:
    async with grpc.aio.insecure_channel(node.hermes) as channel:
        call: Any = channel.stream_stream(
            "/broker.BrokerService/Subscribe",
            request_serializer=packed,
            response_deserializer=HERMES["Message"].FromString,
        )()
        opening = HERMES["SubscribeRequest"](topic=topic, action="SUBSCRIBE", group_id="__REPLAY__")
        await call.write(opening)
        found = [(await asyncio.wait_for(call.read(), 30)).payload for _ in range(count)]
        call.cancel()
    return found


async def read_bale(node: Listeners, topic: str, count: int) -> list[bytes]:
    """By id: its subscriptions are about what is to come."""
    async with grpc.aio.insecure_channel(node.bale) as channel:
        call: Any = channel.unary_unary(
            "/broker.Broker/Fetch",
            request_serializer=packed,
            response_deserializer=BALE["MessageResponse"].FromString,
        )
        wishes = [BALE["FetchRequest"](subject=topic, id=number) for number in range(count)]
        return [(await call(wish, timeout=30)).body for wish in wishes]


async def read_geo(node: Listeners, topic: str, count: int) -> list[bytes]:
    async with grpc.aio.insecure_channel(node.geo) as channel:
        call: Any = channel.unary_stream(
            "/broker.Broker/Subscribe",
            request_serializer=packed,
            response_deserializer=GEO["MessageResponse"].FromString,
        )(GEO["SubscribeRequest"](topics={topic: 0}), metadata=PROOF)
        found = [(await asyncio.wait_for(call.read(), 30)).body for _ in range(count)]
        call.cancel()
    return found


WRITERS: dict[str, Callable[[Listeners, str, Sequence[bytes]], Awaitable[None]]] = {
    "hermes": publish_hermes,
    "bale": publish_bale,
    "geo": publish_geo,
}
READERS: dict[str, Callable[[Listeners, str, int], Awaitable[list[bytes]]]] = {
    "hermes": read_hermes,
    "bale": read_bale,
    "geo": read_geo,
}
