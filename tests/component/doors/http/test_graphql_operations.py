"""GraphQL over HTTP: queries, mutations, errors, and limits that hold against every trick."""

from __future__ import annotations

import asyncio
import base64
from typing import Any
from urllib.parse import quote

import pytest
from graphql import build_schema, get_introspection_query
from tests.component.doors.http.opened_http import Opened, opened
from tests.on_a_loop import run

from angarium.batch import Batch
from angarium.errors import NotLeader, QuotaExceeded
from angarium.modes import DeliveryMode


async def ask(door: Opened, query: str, **variables: Any) -> Any:
    answer = await door.ask("POST", "/graphql", {"query": query, "variables": variables})
    assert answer.status == 200, answer.body
    return answer.json


async def data(door: Opened, query: str, **variables: Any) -> Any:
    answer = await ask(door, query, **variables)
    assert "errors" not in answer, answer
    return answer["data"]


async def refused(door: Opened, body: object, *, status: int = 400) -> str:
    answer = await door.ask("POST", "/graphql", body)
    assert answer.status == status, answer.body
    code: str = answer.json["errors"][0]["extensions"]["angariumCode"]
    return code


def test_what_the_earlier_broker_could_be_asked_still_can() -> None:
    async def story() -> None:
        async with opened() as door:
            assert await data(door, "{ health }") == {"health": "ok"}
            publish = """mutation($p: String!) {
                publish(topic: "orders", payload: $p, mode: EVENTUAL) { success } }"""
            assert await data(door, publish, p="x") == {"publish": {"success": True}}
            assert door.broker.requests[0].mode is DeliveryMode.EVENTUAL
            many = 'mutation { publishBatch(topic: "orders", payloads: ["a", "b"]) { success } }'
            assert await data(door, many) == {"publishBatch": {"success": True}}

    run(story())


def test_graphql_is_loaded_for_whoever_first_asks_and_several_may_be_first() -> None:
    async def story() -> None:
        async with opened() as door:
            assert door.door._guests._graphql is None
            first = [data(door, "{ health }") for _ in range(3)]
            page = door.ask("GET", "/graphql/schema")
            *told, schema = await asyncio.gather(*first, page)
            assert told == [{"health": "ok"}] * 3
            build_schema(schema.body.decode())

    run(story())


def test_a_record_is_published_and_read_with_its_bytes() -> None:
    async def story() -> None:
        async with opened() as door:
            raw = bytes(range(256))
            publish = """
              mutation($v: String!, $k: String!) {
                publish(topic: "orders", payloadBase64: $v, keyBase64: $k, partition: 2,
                        headers: [{name: "h", valueBase64: "/w=="}, {name: "n"}]) {
                  success ack { partition offset mode provisional }
                }
              }"""
            told = await data(
                door, publish, v=base64.b64encode(raw).decode(), k=base64.b64encode(b"k").decode()
            )
            ack = told["publish"]["ack"]
            assert ack == {
                "partition": 2,
                "offset": 0,
                "mode": "CONSISTENT",
                "provisional": False,
            }
            record = next(iter(Batch.trusted(door.broker.partition("orders", 2).batches[0])))
            assert (record.key, record.value) == (b"k", raw)
            assert record.headers == (("h", b"\xff"), ("n", None))
            page = await data(
                door,
                """{ records(topic: "orders", partition: 2) {
                       nextOffset endOffset
                       records { offset valueBase64 key headers { name value valueBase64 } } } }""",
            )
            found = page["records"]["records"][0]
            assert base64.b64decode(found["valueBase64"]) == raw
            assert found["key"] == "k"
            assert found["headers"][1] == {"name": "n", "value": None, "valueBase64": None}

    run(story())


@pytest.mark.parametrize(
    ("declared", "given", "named"),
    [
        ("$p: String!", {}, "'$p'"),
        ("$p: String!", {"p": None}, "'$p'"),
        ("$p: String!", {"p": 3}, "'$p'"),
        ("$p: String, $m: DeliveryMode = BOGUS", {}, "BOGUS"),
    ],
)
def test_variables_that_do_not_fit_are_the_callers_mistake_and_named(
    declared: str, given: dict[str, Any], named: str
) -> None:
    async def story() -> None:
        async with opened() as door:
            mode = ", mode: $m" if "$m" in declared else ""
            query = (
                f"mutation({declared}) {{"
                f' publish(topic: "orders", payload: $p{mode}) {{ success }} }}'
            )
            (error,) = (await ask(door, query, **given))["errors"]
            assert error["extensions"]["angariumCode"] == "INVALID_ARGUMENT"
            assert error["extensions"]["code"] == "BAD_USER_INPUT"
            assert named in error["message"]
            assert door.broker.requests == []

    run(story())


@pytest.mark.parametrize(
    ("declared", "given"),
    [("Long!", 1 << 70), ("Long", 1 << 70), ("Int!", 1 << 40), ("Long!", "1"), ("Long!", True)],
)
def test_a_variable_that_is_no_such_number_is_the_callers_mistake(
    declared: str, given: object
) -> None:
    async def story() -> None:
        async with opened() as door:
            field = "offset" if declared.startswith("Long") else "partition"
            query = (
                f"query($n: {declared})"
                f' {{ records(topic: "orders", {field}: $n) {{ nextOffset }} }}'
            )
            (error,) = (await ask(door, query, n=given))["errors"]
            assert error["extensions"]["angariumCode"] == "INVALID_ARGUMENT"
            for literal in (1 << 70, '"1"', "true"):
                query = f'{{ records(topic: "orders", offset: {literal}) {{ nextOffset }} }}'
                told = (await ask(door, query))["errors"]
                assert told[0]["extensions"]["angariumCode"] == "INVALID_ARGUMENT"

    run(story())


def test_an_empty_name_of_an_operation_is_none() -> None:
    async def story() -> None:
        async with opened() as door:
            for query in (
                "{ health }",
                "query A { health }",
                "{ ...F } fragment F on Query { health }",
            ):
                body = {"query": query, "operationName": ""}
                answer = await door.ask("POST", "/graphql", body)
                assert answer.json == {"data": {"health": "ok"}}
            several = {"query": "query A { health } query B { health }", "operationName": ""}
            assert await refused(door, several) == "INVALID_ARGUMENT"

    run(story())


def test_topics_and_the_cluster_are_looked_after() -> None:
    async def story() -> None:
        async with opened() as door:
            made = await data(
                door,
                """mutation { createTopic(name: "letters", partitions: 2,
                     config: {mode: EVENTUAL, retentionMs: 5000000000}) {
                       id name createdAtUs config { mode retentionMs batchBytesMax }
                       partitions { number } } }""",
            )
            assert made["createTopic"]["config"]["retentionMs"] == 5_000_000_000
            assert len(made["createTopic"]["partitions"]) == 2
            await data(door, 'mutation { alterTopic(name: "letters", partitions: 3) { name } }')
            assert len(door.broker.topics["letters"].partitions) == 3
            assert (await data(door, '{ topic(name: "nowhere") { name } }'))["topic"] is None
            assert await data(door, 'mutation { deleteTopic(name: "letters") }')
            status = await data(door, "{ status { node nodes { id alive wire http } } }")
            assert status["status"]["nodes"][0]["wire"] == "10.0.0.1:7400"

    run(story())


def test_an_error_has_the_one_tables_code_and_ours() -> None:
    async def story() -> None:
        async with opened() as door:
            answer = await ask(door, '{ records(topic: "orders", partition: 9) { nextOffset } }')
            error = answer["errors"][0]
            assert error["path"] == ["records"]
            assert error["extensions"] == {
                "code": "NOT_FOUND",
                "angariumCode": "NOT_FOUND",
                "retriable": False,
                "fault": "caller",
            }
            door.broker.trouble = NotLeader("an election")
            answer = await ask(door, "{ topics { name } }")
            assert answer["errors"][0]["extensions"]["code"] == "UNAVAILABLE"
            door.broker.trouble = QuotaExceeded("requests", "used up", retry_after=2.5)
            answer = await ask(door, "{ topics { name } }")
            assert answer["errors"][0]["extensions"] == {
                "code": "RESOURCE_EXHAUSTED",
                "angariumCode": "QUOTA_EXCEEDED",
                "retriable": True,
                "fault": "caller",
                "retryAfter": 2.5,
            }
            door.broker.trouble = ZeroDivisionError("secret")
            answer = await ask(door, "{ topics { name } }")
            assert answer["errors"][0]["extensions"]["angariumCode"] == "INTERNAL"
            assert "secret" not in str(answer)
            answer = await ask(door, "{ groups { name } }")
            assert answer["errors"][0]["extensions"]["angariumCode"] == "UNSUPPORTED_OPERATION"

    run(story())


def test_queries_may_be_asked_with_get_and_nothing_else_may() -> None:
    async def story() -> None:
        async with opened() as door:
            answer = await door.ask("GET", "/graphql?query=" + quote("{ health }"))
            assert answer.json == {"data": {"health": "ok"}}
            query = quote('mutation { deleteTopic(name: "orders") }')
            answer = await door.ask("GET", f"/graphql?query={query}")
            assert answer.status == 405
            assert "orders" in door.broker.topics
            wanted = {"Accept": "application/graphql-response+json"}
            answer = await door.ask("GET", "/graphql?query=%7Bnope%7D", headers=wanted)
            assert answer.status == 400
            assert answer.headers["content-type"] == "application/graphql-response+json"

    run(story())


def test_the_page_and_the_schema_are_served() -> None:
    async def story() -> None:
        async with opened() as door:
            page = await door.ask("GET", "/graphql")
            assert page.headers["content-type"].startswith("text/html")
            assert b"http://" not in page.body and b"https://" not in page.body  # noqa: PT018
            text = (await door.ask("GET", "/graphql/schema")).body.decode()
            assert "Subscription" in build_schema(text).type_map
            await data(door, get_introspection_query())

    run(story())


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"query": "{"}, "INVALID_ARGUMENT"),
        ({"query": "{ nope }"}, "INVALID_ARGUMENT"),
        ({"query": "{ ...F } fragment F on Query { ...F }"}, "INVALID_ARGUMENT"),
        ({"query": "query A { health } query B { health }"}, "INVALID_ARGUMENT"),
        ({"query": 'subscription { subscribe(topic: "orders") { id } }'}, "INVALID_ARGUMENT"),
        ({"nope": 1}, "INVALID_ARGUMENT"),
        (b'{"query": "{health}", "query": "{topics{name}}"}', "INVALID_ARGUMENT"),
        (b'{"query": "{health}", "variables": {"a": NaN}}', "INVALID_ARGUMENT"),
        ({"query": "{" + " health" * 2_500 + "}"}, "TOO_LARGE"),
        ({"query": "{" + " health" * 500 + "}"}, "TOO_LARGE"),
        ({"query": "#" * 70_000 + "{ health }"}, "TOO_LARGE"),
        ({"query": "{" + " ".join(f"a{n}: health" for n in range(31)) + "}"}, "TOO_LARGE"),
        ({"query": "{ a " * 17 + "}" * 17}, "TOO_LARGE"),
        ({"query": "{ a" * 5_000}, "TOO_LARGE"),
        (
            {
                "query": "{ topics { ...A } } "
                + " ".join(
                    f"fragment {chr(65 + n)} on Topic {{ ...{chr(66 + n)} ...{chr(66 + n)} }}"
                    for n in range(20)
                )
                + " fragment U on Topic { name }"
            },
            "TOO_LARGE",
        ),
        (
            {
                "query": "{"
                + " ".join(
                    f'{name}: records(topic: "t", limit: 1000) {{ ...R }}' for name in "abcde"
                )
                + "} fragment R on RecordPage { records { offset value valueBase64 key keyBase64"
                " timestampUs appendTimeUs partition headers { name value valueBase64 } } }"
            },
            "TOO_LARGE",
        ),
        ([{"query": "{ health }"}] * 11, "TOO_LARGE"),
        (
            [{"query": "{" + " ".join(f"a{n}: health" for n in range(20)) + "}"}] * 2,
            "TOO_LARGE",
        ),
        ([], "TOO_LARGE"),
    ],
)
def test_what_is_wrong_or_costs_too_much_is_refused_before_anything_happens(
    body: object, code: str
) -> None:
    async def story() -> None:
        async with opened() as door:
            answer = await door.ask("POST", "/graphql", body)
            assert answer.status in (200, 400)
            assert answer.json["errors"][0]["extensions"]["angariumCode"] == code
            assert "data" not in answer.json
            assert door.broker.calls[1:] == []

    run(story())


def test_a_few_operations_may_come_together_in_their_order() -> None:
    async def story() -> None:
        async with opened() as door:
            batch = [
                {"query": 'mutation { createTopic(name: "x") { name } }'},
                {"query": '{ topic(name: "x") { name } }'},
            ]
            answer = await door.ask("POST", "/graphql", batch)
            assert answer.json[1] == {"data": {"topic": {"name": "x"}}}

    run(story())
