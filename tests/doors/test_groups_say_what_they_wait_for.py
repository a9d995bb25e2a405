"""The description of a group says what it waits for and until when, through every door."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import grpc.aio
from tests.doors.cluster_of_doors import run
from tests.doors.speaking import http

from angarium.client import Client
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from tests.doors.cluster_of_doors import Doors

    from angarium.bench.cluster import BenchNode

DELAY_S = 600.0
WHAT = "another attempt at record 0"


async def told(node: BenchNode, group: str) -> dict[str, tuple[Any, Any]]:
    """Return what each door says that the first partition waits for, and until when."""
    async with Client(node.wire) as client:
        wire = (await client.describe_group(group)).positions[0]
    async with grpc.aio.insecure_channel(node.grpc) as channel:
        answer = await BrokerStub(channel).DescribeGroup(pb.DescribeGroupRequest(group=group))
    over_grpc = answer.group.positions[0]
    rest = (await http(node.http, "GET", f"/v1/groups/{group}")).json["positions"][0]
    query = f'{{ group(name: "{group}") {{ positions {{ waitsFor waitsUntilUs }} }} }}'
    answered = (await http(node.http, "POST", "/graphql", {"query": query})).json
    graphql = answered["data"]["group"]["positions"][0]
    return {
        "wire": (wire.waits_for, wire.waits_until),
        "grpc": (over_grpc.waits_for, over_grpc.waits_until_us),
        "rest": (rest["waits_for"], rest["waits_until_us"]),
        "graphql": (graphql["waitsFor"], int(graphql["waitsUntilUs"])),
    }


def test_every_door_says_what_a_group_waits_for(doors: Doors) -> None:
    async def main() -> None:
        async with Client(*doors.servers) as client:
            await client.create_topic("patient", partitions=1)
            await client.publish("patient", b"x")
            async with client.group("patient").consume("patient") as consumer:
                started = time.time()
                batch = await consumer.next_batch()
                assert batch is not None
                await batch.nack(delay=DELAY_S)
                for node in doors.nodes:
                    said = await told(node, "patient")
                    (until,) = {until for what, until in said.values() if what == WHAT}
                    assert {what for what, _ in said.values()} == {WHAT}, said
                    assert -5.0 < until / 1e6 - started - DELAY_S < 60.0

    run(main())
