"""The same mistake gets the same code through every door."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import pytest
from tests.doors.cluster_of_doors import Doors, run
from tests.doors.codes import graphql_code, grpc_code, rest_code, socket_code, wire_code

from angarium.api import TopicConfig
from angarium.client import Client
from angarium.errors import AngariumError
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from angarium.bench.cluster import BenchNode

LARGE = 300_000
"""Bytes of a record that is too large for the topic `narrow`."""


@pytest.fixture(scope="module")
def node(doors: Doors) -> BenchNode:
    async def prepare() -> None:
        async with Client(*doors.servers) as client:
            await client.create_topic("plain")
            await client.create_topic("narrow", config=TopicConfig(batch_bytes_max=100_000))

    with contextlib.suppress(AngariumError):
        run(prepare())
    return doors.nodes[1]


def test_a_partition_that_is_not_there(node: BenchNode) -> None:
    async def codes() -> list[str]:
        record = pb.NewRecord(value=b"x")
        request = pb.PublishRequest(topic="plain", partition=7, record=record)
        return [
            await wire_code(node, lambda one: one.fetch("plain", 7)),
            await wire_code(node, lambda one: one.publish("plain", b"x", partition=7)),
            await grpc_code(node, lambda one: one.Publish(request)),
            await rest_code(node, "POST", "/v1/topics/plain/records?partition=7", {"value": "x"}),
            await graphql_code(
                node,
                'mutation { publish(topic: "plain", payload: "x", partition: 7) { success } }',
            ),
            await socket_code(
                node, type="publish", topic="plain", partition=7, record={"value": "x"}
            ),
        ]

    assert set(run(codes())) == {"NOT_FOUND"}


def test_a_topic_of_the_clusters_own(node: BenchNode) -> None:
    async def codes() -> list[str]:
        own = "angarium.transactions"
        request = pb.PublishRequest(topic=own, record=pb.NewRecord(value=b"x"))
        return [
            await wire_code(node, lambda one: one.publish(own, b"x")),
            await grpc_code(node, lambda one: one.Publish(request)),
            await rest_code(node, "POST", f"/v1/topics/{own}/records", {"value": "x"}),
            await graphql_code(
                node, f'mutation {{ publish(topic: "{own}", payload: "x") {{ success }} }}'
            ),
            await socket_code(node, type="publish", topic=own, record={"value": "x"}),
        ]

    assert run(codes()) == ["INVALID_ARGUMENT"] * 5


def test_a_partition_that_no_topic_can_have(node: BenchNode) -> None:
    async def codes() -> list[str]:
        record = pb.NewRecord(value=b"x")
        request = pb.PublishRequest(topic="plain", partition=-1, record=record)
        return [
            await wire_code(node, lambda one: one.fetch("plain", -1)),
            await wire_code(node, lambda one: one.publish("plain", b"x", partition=-1)),
            await grpc_code(node, lambda one: one.Publish(request)),
            await grpc_code(
                node, lambda one: one.Fetch(pb.FetchRequest(topic="plain", partition=-1))
            ),
            await rest_code(node, "POST", "/v1/topics/plain/records?partition=-1", {"value": "x"}),
            await rest_code(node, "GET", "/v1/topics/plain/partitions/-1/records"),
            await graphql_code(
                node,
                'mutation { publish(topic: "plain", payload: "x", partition: -1) { success } }',
            ),
            await graphql_code(node, '{ records(topic: "plain", partition: -1) { nextOffset } }'),
            await socket_code(
                node, type="publish", topic="plain", partition=-1, record={"value": "x"}
            ),
        ]

    assert run(codes()) == ["INVALID_ARGUMENT"] * 9


@pytest.mark.parametrize("partitions", [0, -1, 1_025, 20_000])
def test_a_number_of_partitions_that_no_topic_can_have(node: BenchNode, partitions: int) -> None:
    async def codes() -> list[str]:
        request = pb.CreateTopicRequest(name="odd", partitions=partitions)
        found = [
            await wire_code(node, lambda one: one.create_topic("odd", partitions=partitions)),
            await rest_code(node, "POST", "/v1/topics", {"name": "odd", "partitions": partitions}),
            await graphql_code(
                node,
                f'mutation {{ createTopic(name: "odd", partitions: {partitions}) {{ name }} }}',
            ),
        ]
        if partitions:  # in protobuf 0 is what is not said, and means 1
            found.append(await grpc_code(node, lambda one: one.CreateTopic(request)))
        return found

    assert set(run(codes())) == {"INVALID_ARGUMENT"}


def test_a_topic_that_is_not_there(node: BenchNode) -> None:
    async def codes() -> list[str]:
        return [
            await wire_code(node, lambda one: one.fetch("nowhere")),
            await grpc_code(node, lambda one: one.Fetch(pb.FetchRequest(topic="nowhere"))),
            await rest_code(node, "GET", "/v1/topics/nowhere/partitions/0/records"),
            await rest_code(node, "GET", "/v1/topics/nowhere/stream"),
            await graphql_code(node, '{ records(topic: "nowhere") { nextOffset } }'),
            await socket_code(node, type="subscribe", topic="nowhere"),
        ]

    assert set(run(codes())) == {"NOT_FOUND"}


@pytest.mark.parametrize("name", ["", "a/b", "../up", "a" * 300, "a\nb"])
def test_a_name_that_no_topic_can_have(node: BenchNode, name: str) -> None:
    async def codes() -> list[str]:
        query = f"mutation {{ createTopic(name: {json.dumps(name)}) {{ name }} }}"
        return [
            await wire_code(node, lambda one: one.create_topic(name)),
            await grpc_code(node, lambda one: one.CreateTopic(pb.CreateTopicRequest(name=name))),
            await rest_code(node, "POST", "/v1/topics", {"name": name}),
            await graphql_code(node, query),
        ]

    found = run(codes())
    assert len(set(found)) == 1, found
    assert found[0] == "INVALID_ARGUMENT"


def test_a_topic_that_is_there_already(node: BenchNode) -> None:
    async def codes() -> list[str]:
        return [
            await wire_code(node, lambda one: one.create_topic("plain", partitions=2)),
            await grpc_code(
                node,
                lambda one: one.CreateTopic(pb.CreateTopicRequest(name="plain", partitions=2)),
            ),
            await rest_code(node, "POST", "/v1/topics", {"name": "plain", "partitions": 2}),
            await graphql_code(
                node, 'mutation { createTopic(name: "plain", partitions: 2) { name } }'
            ),
        ]

    assert set(run(codes())) == {"ALREADY_EXISTS"}


def test_a_record_that_is_too_large_for_its_topic(node: BenchNode) -> None:
    async def codes() -> list[str]:
        value = "x" * LARGE
        record = pb.NewRecord(value=value.encode())
        query = (
            f'mutation {{ publish(topic: "narrow", payload: "{value[:60_000]}") {{ success }} }}'
        )
        assert query
        return [
            await grpc_code(
                node, lambda one: one.Publish(pb.PublishRequest(topic="narrow", record=record))
            ),
            await rest_code(node, "POST", "/v1/topics/narrow/records", {"value": value}),
            await socket_code(node, type="publish", topic="narrow", record={"value": value}),
        ]

    assert set(run(codes())) == {"TOO_LARGE"}


def test_an_offset_beyond_the_end(node: BenchNode) -> None:
    async def codes() -> list[str]:
        return [
            await wire_code(node, lambda one: one.fetch("plain", offset=10**9)),
            await grpc_code(
                node, lambda one: one.Fetch(pb.FetchRequest(topic="plain", offset=10**9))
            ),
            await rest_code(node, "GET", f"/v1/topics/plain/partitions/0/records?offset={10**9}"),
            await graphql_code(
                node, f'{{ records(topic: "plain", offset: {10**9}) {{ nextOffset }} }}'
            ),
        ]

    assert len(set(run(codes()))) == 1
