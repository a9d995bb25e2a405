"""Every stream of every listener answers with its headers as soon as it is there, not with its
first message: clients wait for them, and some say nothing before they have them."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
from tests.doors.cluster_of_doors import Doors, run
from tests.doors.compat.calls import EVENTUAL, bale_calls, geo_calls, hermes_calls
from tests.doors.compat.profiles_on import PASSWORD, USER

from angarium.client import Client
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from tests.doors.compat.profiles_on import Profiles

SOON_S = 60.0
"""A busy machine is given its time; what never came did not come within any."""


async def headers_of(call: Any) -> dict[str, str | bytes]:
    async with asyncio.timeout(SOON_S):
        return dict(await call.initial_metadata())


def test_a_publish_stream_of_hermes_has_headers_before_its_first_message(
    profiles: Profiles,
) -> None:
    async def story() -> None:
        for one in profiles.listeners:
            async with hermes_calls(one.hermes) as client:
                call = client.PublishStream()
                assert "x-leader-hint" not in await headers_of(call)
                for number in range(10):
                    request = client.message(
                        "PublishRequest", topic="headed", payload=b"%d" % number, mode=EVENTUAL
                    )
                    await call.write(request)
                await call.done_writing()
                summary = await call
                assert (summary.processed_count, summary.failed_count) == (10, 0)

    run(story())


def test_subscriptions_of_the_profiles_have_headers_with_nothing_to_deliver(
    profiles: Profiles,
) -> None:
    async def story() -> None:
        one = profiles.listeners[1]
        proof = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        async with (
            hermes_calls(one.hermes) as hermes,
            bale_calls(one.bale) as bale,
            geo_calls(one.geo) as geo,
        ):
            for group in ("", "__REPLAY__", "quiet-ones"):
                call = await hermes.subscribe("quiet", group)
                await headers_of(call)
                call.cancel()
            await headers_of(bale.Subscribe(bale.message("SubscribeRequest", subject="quiet")))
            await headers_of(
                geo.Subscribe(
                    geo.message("SubscribeRequest", topics={"quiet": 0}),
                    metadata=(("authorization", f"basic {proof}"),),
                )
            )

    run(story())


def test_streams_of_our_own_door_have_headers_at_once(doors: Doors) -> None:
    async def story() -> None:
        async with Client(*doors.servers) as client:
            await client.create_topic("headed-own", partitions=2)
        async with grpc.aio.insecure_channel(doors.nodes[2].grpc) as channel:
            stub: Any = BrokerStub(channel)
            publishing = stub.PublishStream()
            await headers_of(publishing)
            publishing.cancel()
            for opening in (
                pb.SubscribeRequest.Open(interests=[pb.Interest(topic="headed-own")]),
                pb.SubscribeRequest.Open(
                    group=pb.Membership(group="quiet-ones", topics=["headed-own"])
                ),
            ):
                call = stub.Subscribe()
                await call.write(pb.SubscribeRequest(open=opening))
                await headers_of(call)
                call.cancel()

    run(story())
