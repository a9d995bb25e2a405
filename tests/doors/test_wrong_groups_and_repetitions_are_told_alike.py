"""The same mistake about groups, streams, keys and series gets the same code through every door."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from tests.doors.cluster_of_doors import Doors, run
from tests.doors.codes import graphql_code, grpc_code, rest_code, socket_code, wire_code
from tests.doors.speaking import http

from angarium.api import Settlement, Verb
from angarium.batch import encode
from angarium.client import Client
from angarium.errors import AngariumError
from angarium.machine.keys import identity_of
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from angarium.bench.cluster import BenchNode

TOPIC = "group-mistakes"
LONG = "g" * 300
"""Longer than a group's or a series' name may be."""


@pytest.fixture(scope="module")
def node(doors: Doors) -> BenchNode:
    async def prepare() -> None:
        async with Client(*doors.servers) as client:
            await client.create_topic(TOPIC)
            await client.publish(TOPIC, b"x")
            async with client.group("queue-here").consume(TOPIC):
                pass

    with contextlib.suppress(AngariumError):
        run(prepare())
    return doors.nodes[2]


async def join(client: Client, group: str, topic: str, kind: str = "queue") -> None:
    async with client.group(group, kind=kind).consume(topic):
        pass


async def join_grpc(stub: Any, group: str, topic: str, kind: Any = None) -> None:
    membership = pb.Membership(group=group, topics=[topic], kind=kind)
    call = stub.Subscribe()
    await call.write(pb.SubscribeRequest(open=pb.SubscribeRequest.Open(group=membership)))
    await call.read()


def test_a_group_that_is_not_there(node: BenchNode) -> None:
    async def codes() -> list[str]:
        name = "nobody-made-it"
        return [
            await wire_code(node, lambda one: one.describe_group(name)),
            await wire_code(node, lambda one: one.pause_group(name)),
            await grpc_code(
                node, lambda one: one.DescribeGroup(pb.DescribeGroupRequest(group=name))
            ),
            await grpc_code(node, lambda one: one.PauseGroup(pb.PauseGroupRequest(group=name))),
            await rest_code(node, "GET", f"/v1/groups/{name}"),
            await rest_code(node, "GET", f"/v1/groups/{name}/lag"),
            await rest_code(node, "POST", f"/v1/groups/{name}/pause", {}),
            await graphql_code(node, f'mutation {{ pauseGroup(name: "{name}") }}'),
        ]

    assert run(codes()) == ["NOT_FOUND"] * 8


def test_a_group_that_wants_a_topic_that_is_not_there(node: BenchNode) -> None:
    async def codes() -> list[str]:
        return [
            await wire_code(node, lambda one: join(one, "lost", "nowhere")),
            await grpc_code(node, lambda one: join_grpc(one, "lost", "nowhere")),
            await rest_code(node, "GET", "/v1/topics/nowhere/stream?group=lost"),
            await socket_code(node, type="consume", group="lost", topics=["nowhere"]),
        ]

    assert run(codes()) == ["NOT_FOUND"] * 4


def test_a_name_that_no_group_can_have(node: BenchNode) -> None:
    async def codes() -> list[str]:
        found = [
            await wire_code(node, lambda one: join(one, LONG, TOPIC)),
            await grpc_code(node, lambda one: join_grpc(one, LONG, TOPIC)),
            await rest_code(node, "GET", f"/v1/topics/{TOPIC}/stream?group={LONG}"),
            await socket_code(node, type="consume", group=LONG, topics=[TOPIC]),
        ]
        assert len(set(found)) == 1, found
        return found

    assert set(run(codes())) <= {"INVALID_ARGUMENT", "TOO_LARGE"}


def test_a_group_of_another_kind(node: BenchNode) -> None:
    async def codes() -> list[str]:
        stream = pb.GROUP_KIND_STREAM
        return [
            await wire_code(node, lambda one: join(one, "queue-here", TOPIC, "stream")),
            await grpc_code(node, lambda one: join_grpc(one, "queue-here", TOPIC, stream)),
            await socket_code(
                node, type="consume", group="queue-here", topics=[TOPIC], kind="stream"
            ),
        ]

    found = run(codes())
    assert len(set(found)) == 1, found


def test_settling_for_a_member_that_is_not_there(node: BenchNode) -> None:
    async def codes() -> list[str]:
        settlement = Settlement(TOPIC, 0, Verb.ACK, (0, 1))
        told = pb.Settlement(topic=TOPIC, partition=0, ranges=[0, 1], verb=pb.VERB_ACK)
        request = pb.SettleRequest(group="queue-here", member="ghost", settlements=[told])
        shown = {"topic": TOPIC, "partition": 0, "ranges": [0, 1], "verb": "ack"}
        body = {"member": "ghost", "settlements": [shown]}

        told_codes: list[str] = []

        async def by_wire(client: Client) -> None:
            (one,) = await client.settle("queue-here", "ghost", [settlement])
            told_codes.append(one.code)

        async def by_grpc(stub: Any) -> None:
            told_codes.append((await stub.Settle(request)).settled[0].error.code)

        await wire_code(node, by_wire)
        await grpc_code(node, by_grpc)
        answer = (await http(node.http, "POST", "/v1/groups/queue-here/settle", body)).json
        told_codes.append(answer["settled"][0]["code"])
        return told_codes

    found = run(codes())
    assert len(found) == 3
    assert len(set(found)) == 1, found
    assert found[0]


def test_reading_that_begins_beyond_the_end(node: BenchNode) -> None:
    async def codes() -> list[str]:
        far = 10**9
        fetch = pb.FetchRequest(topic=TOPIC, offset=far)
        return [
            await wire_code(node, lambda one: one.fetch(TOPIC, offset=far)),
            await grpc_code(node, lambda one: one.Fetch(fetch)),
            await rest_code(node, "GET", f"/v1/topics/{TOPIC}/partitions/0/records?offset={far}"),
            await rest_code(node, "GET", f"/v1/topics/{TOPIC}/stream?partition=0&offset={far}"),
            await graphql_code(
                node, f'{{ records(topic: "{TOPIC}", offset: {far}) {{ nextOffset }} }}'
            ),
        ]

    assert run(codes()) == ["OFFSET_OUT_OF_RANGE"] * 5


def test_a_key_that_was_used_for_something_else(node: BenchNode) -> None:
    async def codes() -> list[str]:
        target = f"/v1/topics/{TOPIC}/records?partition=0"
        key = {"Idempotency-Key": "used-before"}
        await http(node.http, "POST", target, {"value": "first"}, **key)

        def packed(content: bytes) -> pb.PublishBatchRequest:
            producer, sequence = identity_of(b"used-before-packed", content)
            batch = bytes(encode([content], producer_id=producer, sequence=sequence))
            return pb.PublishBatchRequest(topic=TOPIC, partition=0, packed=batch)

        await grpc_code(node, lambda one: one.PublishBatch(packed(b"first")))
        return [
            await rest_code(node, "POST", target, {"value": "second"}, **key),
            await grpc_code(node, lambda one: one.PublishBatch(packed(b"second"))),
        ]

    assert run(codes()) == ["KEY_REUSED"] * 2


def test_a_name_that_no_series_can_have(node: BenchNode) -> None:
    async def codes() -> list[str]:
        number = {"Angarium-Sequence": f"{LONG}:1"}
        return [
            await wire_code(node, lambda one: one.open_series(LONG)),
            await rest_code(node, "POST", f"/v1/topics/{TOPIC}/records", {"value": "x"}, **number),
        ]

    assert run(codes()) == ["INVALID_ARGUMENT"] * 2
