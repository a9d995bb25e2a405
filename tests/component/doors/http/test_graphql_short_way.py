"""The short way through a GraphQL operation gives the answers of the general one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.component.doors.http.opened_http import opened, request_bytes
from tests.on_a_loop import run
from tests.unit.doors.grpc.memory_broker import MemoryBroker

from angarium.doors.http.graphql.execution import Executor, Operation, Prepared
from angarium.doors.http.graphql.resolving import Resolvers
from angarium.doors.intake import Intake
from angarium.errors import NotLeader

SHORT: list[tuple[str, dict[str, Any]]] = [
    ("{ health }", {}),
    ("{ a: health b: health }", {}),
    ("{ topics { id name config { mode retentionMs } partitions { number leader inSync } } }", {}),
    ('{ topic(name: "nowhere") { name } }', {}),
    ('{ topic(name: "orders") { name createdAtUs partitions { replicas } } }', {}),
    ("query($n: String!) { topic(name: $n) { name } }", {"n": "orders"}),
    ('{ records(topic: "orders", partition: 9) { nextOffset } }', {}),
    ('query($o: Long!) { records(topic: "orders", offset: $o) { nextOffset } }', {"o": 77}),
    ('{ records(topic: "orders", limit: 5000) { nextOffset } }', {}),
    ("{ status { node nodes { id wire http region alive } } }", {}),
    ("{ groups { name } }", {}),
    (
        'mutation { publish(topic: "orders", payload: "x", partition: 0) { ack { mode } } }',
        {},
    ),
    (
        """mutation($p: String, $m: DeliveryMode) {
             publish(topic: "orders", payload: $p, partition: 1, mode: $m) {
               success acks { partition mode provisional subscribers } } }""",
        {"p": "x", "m": "EVENTUAL"},
    ),
    (
        """mutation($p: String) {
             publish(topic: "orders", payload: $p, partition: 1) { success } }""",
        {},
    ),
    (
        'mutation { a: publish(topic: "t", partition: 9) { success } deleteTopic(name: "x") }',
        {},
    ),
]

GENERAL: list[tuple[str, dict[str, Any]]] = [
    ("{ __typename }", {}),
    ("{ health @skip(if: true) }", {}),
    ("{ ...F } fragment F on Query { health }", {}),
    ("query A { health }  query B { health }", {}),
    ('query($n: String = "orders") { topic(name: $n) { name } }', {}),
    (
        'mutation($p: [String!]!) { publishBatch(topic: "orders", payloads: $p) { success } }',
        {"p": ["a"]},
    ),
    ("{ topics { name name } }", {}),
]

UNFIT: list[tuple[str, dict[str, Any]]] = [
    ("query($n: String!) { topic(name: $n) { name } }", {"n": 5}),
    ("query($n: String!) { topic(name: $n) { name } }", {}),
    ('query($o: Long!) { records(topic: "t", offset: $o) { nextOffset } }', {"o": True}),
    ('query($o: Long!) { records(topic: "t", offset: $o) { nextOffset } }', {"o": 1 << 70}),
    ('mutation($m: DeliveryMode) { publish(topic: "t", mode: $m) { success } }', {"m": "LOUD"}),
    ('mutation($p: String) { publish(topic: "t", payload: $p) { success } }', {"p": None}),
]


def prepared(query: str) -> Prepared:
    return Executor(Resolvers(Intake(MemoryBroker()), None)).prepared(query)


async def answered(ready: Prepared, variables: dict[str, Any]) -> Any:
    async with opened() as door:
        executor = Executor(Resolvers(Intake(door.broker), None))
        asked = Operation("", variables)
        first = await executor.executed(asked, ready)
        door.broker.trouble = NotLeader("an election")
        troubled = await executor.executed(asked, ready)
        return first, troubled


@pytest.mark.parametrize(("query", "variables"), SHORT)
def test_both_ways_give_the_same_answer(query: str, variables: dict[str, Any]) -> None:
    ready = prepared(query)
    assert ready.plan is not None
    assert ready.plan.fits(variables)
    short = run(answered(ready, variables))
    general = run(answered(replace(ready, plan=None), variables))
    assert short == general


@pytest.mark.parametrize(("query", "variables"), GENERAL)
def test_whatever_needs_more_goes_the_general_way(query: str, variables: dict[str, Any]) -> None:
    assert prepared(query).plan is None


@pytest.mark.parametrize(("query", "variables"), UNFIT)
def test_variables_that_need_a_second_look_go_the_general_way(
    query: str, variables: dict[str, Any]
) -> None:
    plan = prepared(query).plan
    assert plan is not None
    assert not plan.fits(variables)


def test_publishes_that_travel_together_are_each_told_what_they_asked_for() -> None:
    def asked(fields: str, partition: int) -> bytes:
        mutation = f"""mutation($p: String) {{
            publish(topic: "orders", payload: $p, partition: {partition}) {{ {fields} }} }}"""
        return request_bytes("POST", "/graphql", {"query": mutation, "variables": {"p": "x"}})

    async def story() -> None:
        async with opened() as door:
            wires = [await door.connect() for _ in range(8)]
            for number, wire in enumerate(wires):
                ack = "ack { partition }" if number % 2 else "acks { offset }"
                await wire.say(asked(f"success {ack}", partition=number % 4 // 2))
            told = [(await wire.hear()).json["data"]["publish"] for wire in wires]
            assert all(one["success"] for one in told)
            assert [one["ack"]["partition"] for one in told[1::2]] == [0, 1, 0, 1]
            offsets = [one["acks"][0]["offset"] for one in told[::2]]
            assert len(set(offsets[::2])) == len(set(offsets[1::2])) == 2

    run(story())
