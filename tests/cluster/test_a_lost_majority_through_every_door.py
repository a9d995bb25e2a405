"""Partitions that have lost a majority are recovered over REST, gRPC and GraphQL, and it is
recorded who did it."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any

import grpc.aio
from tests.doors.speaking import http

from angarium.client import Client
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub
from angarium.testing.cluster import eventually
from angarium.testing.cluster.cluster import ADMIN

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.cluster.running import ClusterOf, Run

    from angarium.api import TopicInfo
    from angarium.ids import NodeId
    from angarium.testing.cluster import ProcessCluster
    from angarium.testing.cluster.processes import NodeProcess

PARTITIONS = 12
QUICK = {"recover_after_s": 2}
AUDIT = "angarium.audit"
PASSWORD = ADMIN.password
assert PASSWORD is not None
BASIC = "Basic " + base64.b64encode(f"{ADMIN.user}:{PASSWORD.reveal()}".encode()).decode()
WRONG = "00000000"


class OverRest:
    """Looks and recovers by REST."""

    def __init__(self, node: NodeProcess) -> None:
        assert node.http_port is not None
        self._address = f"127.0.0.1:{node.http_port.number}"

    async def look(self, partition: int) -> tuple[str, str]:
        """Return what stands against it, and the code."""
        found = await self._ask("GET", partition)
        return found["objection"], found["code"]

    async def recover(self, partition: int, code: str) -> str:
        """Return "done", or the code of the refusal."""
        found = await self._ask("POST", partition, {"code": code})
        return "done" if found.get("is_done") else str(found["code"])

    async def _ask(self, method: str, partition: int, body: object = None) -> Any:
        path = f"/v1/topics/orders/partitions/{partition}/recovery"
        return (await http(self._address, method, path, body, Authorization=BASIC)).json


class OverGraphql(OverRest):
    """Looks and recovers by GraphQL."""

    async def look(self, partition: int) -> tuple[str, str]:
        query = f'{{ recovery(topic: "orders", partition: {partition}) {{ objection code }} }}'
        found = (await self._send(query))["data"]["recovery"]
        return found["objection"], found["code"]

    async def recover(self, partition: int, code: str) -> str:
        given = f'topic: "orders", partition: {partition}, code: "{code}"'
        found = await self._send(f"mutation {{ recoverPartition({given}) {{ isDone }} }}")
        if "errors" in found:
            return str(found["errors"][0]["extensions"]["angariumCode"])
        return "done" if found["data"]["recoverPartition"]["isDone"] else "not done"

    async def _send(self, query: str) -> Any:
        body = {"query": query}
        return (await http(self._address, "POST", "/graphql", body, Authorization=BASIC)).json


class OverGrpc:
    """Looks and recovers by gRPC."""

    def __init__(self, node: NodeProcess) -> None:
        assert node.grpc_port is not None
        self._address = f"127.0.0.1:{node.grpc_port.number}"

    async def look(self, partition: int) -> tuple[str, str]:
        request = pb.DescribeRecoveryRequest(topic="orders", partition=partition)
        found = await self._call(lambda stub, who: stub.DescribeRecovery(request, metadata=who))
        return found.recovery.objection, found.recovery.code

    async def recover(self, partition: int, code: str) -> str:
        request = pb.RecoverPartitionRequest(topic="orders", partition=partition, code=code)
        try:
            found = await self._call(lambda stub, who: stub.RecoverPartition(request, metadata=who))
        except grpc.aio.AioRpcError as error:
            return str(dict(error.trailing_metadata() or ())["x-angarium-code"])
        return "done" if found.recovery.is_done else "not done"

    async def _call(self, call: Callable[[Any, Any], Awaitable[Any]]) -> Any:
        async with grpc.aio.insecure_channel(self._address) as channel:
            return await call(BrokerStub(channel), (("authorization", BASIC),))


async def _dead_and_stuck(
    cluster: ProcessCluster, client: Client
) -> tuple[tuple[NodeId, NodeId], list[int]]:
    """Choose two nodes to lose, so that catalog and audit records keep a majority."""
    outside = cluster.ids[3]  # three of four vote on the catalog, this one does not

    async def recorded() -> TopicInfo | None:
        found = await client.describe_topic(AUDIT)
        return found if len(found.partitions[0].replicas) == 3 else None

    audit = await eventually(recorded, what="audit records on three nodes", within_s=60)
    assert audit is not None
    topic = await client.describe_topic("orders")
    for other in cluster.ids[:3]:
        dead = (outside, other)
        stuck = [one.number for one in topic.partitions if set(dead) <= set(one.replicas)]
        if not set(dead) <= set(audit.partitions[0].replicas) and len(stuck) >= 3:
            return dead, stuck
    raise AssertionError(f"no two nodes will do: {topic}")


def test_partitions_are_recovered_through_every_door_and_it_is_recorded(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(4, settings=QUICK, doors=True, users=True) as cluster:
            assert ADMIN.user is not None
            await cluster.create_topic("orders", partitions=PARTITIONS)
            first = cluster.nodes[cluster.ids[0]].address
            async with Client(first, user=ADMIN.user, password=PASSWORD.reveal()) as client:
                dead, stuck = await _dead_and_stuck(cluster, client)
            for one in dead:
                cluster.nodes[one].kill()
            living = [cluster.nodes[one] for one in cluster.ids if one not in dead]
            doors = {"http": OverRest, "grpc": OverGrpc, "graphql": OverGraphql}
            for partition, (name, kind) in zip(stuck, doors.items(), strict=False):
                door: Any = kind(living[0])

                async def code(door: Any = door, partition: int = partition) -> str:
                    objection, found = await door.look(partition)
                    return "" if objection else found

                shown = await eventually(code, what=f"allowed over {name}", within_s=60)
                assert await door.recover(partition, WRONG) == "INVALID_ARGUMENT", name
                assert await door.recover(partition, shown) == "done", name
            servers = [one.address for one in living]
            async with Client(*servers, user=ADMIN.user, password=PASSWORD.reveal()) as client:
                for partition in stuck[: len(doors)]:
                    await asyncio.wait_for(
                        client.publish("orders", b"after", partition=partition), 60
                    )
                records = [
                    json.loads(bytes(one.value or b""))
                    for one in await client.fetch(AUDIT, 0, 0, fresh=True)
                ]
            done = [one for one in records if one.get("what") == "recover_partition"]
            allowed = [one for one in done if one["outcome"] == "allowed"]
            failed = [one for one in done if one["outcome"] == "failed"]
            assert {one["who"] for one in done} == {ADMIN.user}
            # Each door: a code that was wrong, which was let through and failed, and the right one.
            assert [one["door"] for one in allowed] == ["http"] * 2 + ["grpc"] * 2 + ["http"] * 2
            assert len(failed) == len(doors)

    run(scenario())
