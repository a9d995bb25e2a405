"""A list of groups says how far each is behind, through every door, from every node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc.aio
from tests.doors.cluster_of_doors import run
from tests.doors.speaking import http

from angarium.client import Client
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub
from angarium.testing.cluster.waiting import eventually

if TYPE_CHECKING:
    from tests.doors.cluster_of_doors import Doors

    from angarium.bench.cluster import BenchNode


async def told(node: BenchNode, group: str) -> dict[str, int | None]:
    """Return the group's lag as each door lists it; None where it is not listed."""
    async with Client(node.wire) as client:
        wire = {one.name: one.lag for one in await client.list_groups()}
    async with grpc.aio.insecure_channel(node.grpc) as channel:
        answer = await BrokerStub(channel).ListGroups(pb.ListGroupsRequest())
    rest = (await http(node.http, "GET", "/v1/groups")).json["groups"]
    body = {"query": "{ groups { name lag } }"}
    graphql = (await http(node.http, "POST", "/graphql", body)).json["data"]["groups"]
    return {
        "wire": wire.get(group),
        "grpc": next((one.lag for one in answer.groups if one.name == group), None),
        "rest": next((one["lag"] for one in rest if one["name"] == group), None),
        "graphql": next((one["lag"] for one in graphql if one["name"] == group), None),
    }


def test_a_list_of_groups_says_how_far_each_is_behind(doors: Doors) -> None:
    async def main() -> None:
        async with Client(*doors.servers) as client:
            await client.create_topic("behind", partitions=3)
            await client.publish_batch("behind", [b"x"] * 42, keys=[b"%d" % n for n in range(42)])
            async with client.group("late").consume("behind", credit=2) as consumer:
                settled = 0
                async for record in consumer:
                    await record.ack()
                    settled += 1
                    if settled == 2:
                        break
            described = (await client.describe_group("late")).lag
        assert described == 40
        for node in doors.nodes:

            async def all_say_so(node: BenchNode = node) -> bool:
                return set((await told(node, "late")).values()) == {described}

            # A node hears of a group that was made elsewhere in its own time.
            await eventually(all_say_so, what=f"{node.wire} says at each door how far it is behind")

    run(main())
