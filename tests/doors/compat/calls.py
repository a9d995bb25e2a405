"""The profiles' calls in this process: raw messages, which their schemas' own pools read and write.

Stories with generated clients run in processes of their own (`generated_client`); these are for
what has to happen at a certain moment.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

from angarium_compat.bale.schema import SCHEMA as BALE
from angarium_compat.geo.schema import SCHEMA as GEO
from angarium_compat.hermes.schema import SCHEMA as HERMES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from angarium_compat.schemas import Schema

CONSISTENT, EVENTUAL, PERFORMANCE = range(3)


class Calls:
    """One client of one profile; its calls are attributes, as a generated stub's are."""

    def __init__(self, channel: grpc.aio.Channel, schema: Schema) -> None:
        self.channel = channel
        self.schema = schema

    def __getattr__(self, name: str) -> Any:
        method = self.schema.methods[name]
        kinds = {
            (False, False): self.channel.unary_unary,
            (True, False): self.channel.stream_unary,
            (False, True): self.channel.unary_stream,
            (True, True): self.channel.stream_stream,
        }
        return kinds[method.client_streams, method.server_streams](
            f"/{self.schema.service}/{name}",
            request_serializer=self.schema[method.request].SerializeToString,
            response_deserializer=self.schema[method.response].FromString,
        )

    def message(self, name: str, **fields: object) -> Any:
        """Return a message of the schema."""
        return self.schema[name](**fields)


class HermesCalls(Calls):
    """A client of hermes."""

    async def publish(self, topic: str, payload: bytes, mode: int = CONSISTENT) -> None:
        answer = await self.Publish(
            self.message("PublishRequest", topic=topic, payload=payload, mode=mode)
        )
        assert answer.success

    async def subscribe(self, topic: str, group: str = "") -> Any:
        """Send SUBSCRIBE and return the call; nothing is waited for."""
        call = self.Subscribe()
        await call.write(
            self.message("SubscribeRequest", topic=topic, action="SUBSCRIBE", group_id=group)
        )
        return call

    def ack(self, message: Any) -> Any:
        return self.message("SubscribeRequest", action="ACK", ack_message_id=message.id)


@asynccontextmanager
async def hermes_calls(address: str) -> AsyncIterator[HermesCalls]:
    async with grpc.aio.insecure_channel(address) as channel:
        yield HermesCalls(channel, HERMES)


@asynccontextmanager
async def bale_calls(address: str) -> AsyncIterator[Calls]:
    async with grpc.aio.insecure_channel(address) as channel:
        yield Calls(channel, BALE)


@asynccontextmanager
async def geo_calls(address: str) -> AsyncIterator[Calls]:
    async with grpc.aio.insecure_channel(address) as channel:
        yield Calls(channel, GEO)
