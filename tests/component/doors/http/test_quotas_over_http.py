"""Quotas at the HTTP door: requests wait and are refused with 429, streams take places."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import websockets
from tests.component.doors.counted import CountedPrincipal
from tests.component.doors.http.opened_http import LOCALHOST
from tests.component.doors.http.test_who_asks import SUBSCRIBE, Guarded, basic, guarded
from tests.on_a_loop import eventually, run

from angarium.api.quotas import QuotaKind
from angarium.errors import QuotaExceeded
from angarium.service.access.tolls import FRESH

if TYPE_CHECKING:
    import pytest
    from tests.component.doors.http.opened_http import Answered

ALICE = basic("alice", "right")
BOB = basic("bob", "b")
SSE = b"GET /v1/topics/orders/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: %b\r\n\r\n"


def count(it: Guarded, **limits: int) -> CountedPrincipal:
    counted = CountedPrincipal(**limits)
    it.brokers["alice"].counted = counted  # type: ignore[attr-defined]
    return counted


async def listed(it: Guarded, header: str) -> Answered:
    return await it.ask("GET", "/v1/topics", Authorization=header)


def test_requests_wait_first_and_are_refused_then_and_nobody_elses() -> None:
    async def check() -> None:
        async with guarded() as it:
            counted = count(it, requests=5)
            assert (await listed(it, ALICE)).status == 200
            loop = asyncio.get_running_loop()
            began = loop.time()
            answers = await asyncio.gather(*(listed(it, ALICE) for _ in range(30)))
            took_s = loop.time() - began
            served = [one for one in answers if one.status == 200]
            refused = [one for one in answers if one.status == 429]
            assert len(served) + len(refused) == 30
            assert 5 <= len(served) <= 5 + 5 * (took_s + 1) + 2
            assert took_s >= 0.8, "some waited for their turn"
            one = refused[0]
            assert one.json["code"] == "QUOTA_EXCEEDED"
            assert one.json["limit"] == "requests"
            assert 1 <= int(one.headers["retry-after"]) <= 3
            assert one.json["retry_after"] > 1.0
            assert (await listed(it, BOB)).status == 200
            assert all(
                answer.status == 200
                for answer in await asyncio.gather(*(listed(it, BOB) for _ in range(30)))
            )
            counted.limit()
            assert (await listed(it, ALICE)).status == 200

    run(check())


def test_a_list_of_graphql_operations_costs_as_many_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def check() -> None:
        async with guarded() as it:
            counted = count(it, requests=1_000)
            assert counted.toll is not None
            asked = [{"query": "{ topics { name } }"}] * 10
            answer = await it.ask("POST", "/graphql", asked, Authorization=ALICE)
            assert [list(one) for one in answer.json] == [["data"]] * 10
            used = counted.toll.measure(1.0)[QuotaKind.REQUESTS].rate / FRESH
            assert used == 10

            # One that would have to wait too long is refused, and those before it are answered.
            refusal = QuotaExceeded("requests", "too many", retry_after=2.0)
            monkeypatch.setattr(counted.toll, "admit_request", AsyncMock(side_effect=refusal))
            answer = await it.ask("POST", "/graphql", asked[:2], Authorization=ALICE)
            first, second = answer.json
            assert "data" in first
            assert second["errors"][0]["extensions"]["angariumCode"] == "QUOTA_EXCEEDED"

    run(check())


def test_a_proof_that_takes_work_is_counted_like_any_other() -> None:
    async def check() -> None:
        async with guarded() as it:
            counted = count(it, requests=1)
            assert counted.toll is not None
            for _ in range(3):
                counted.toll.begin_request()
            answer = await listed(it, ALICE)
            assert answer.status == 429

    run(check())


def test_streams_and_sockets_take_places_and_give_them_back() -> None:
    async def check() -> None:
        async with guarded() as it:
            counted = count(it, connections=3)
            reader, writer = await asyncio.open_connection(LOCALHOST, it.port)
            writer.write(SSE % ALICE.encode())
            assert b"200 OK" in await reader.readline()
            first = it.socket("/v1/socket", additional_headers={"Authorization": ALICE})
            async with first as one, it.socket("/v1/socket") as two:
                await two.send(json.dumps(proof()))
                assert json.loads(await two.recv())["type"] == "authenticated"
                assert counted.open == 3
                answer = await it.ask("GET", "/v1/topics/orders/stream", Authorization=ALICE)
                assert (answer.status, answer.json["limit"]) == (429, "connections")
                refused = await upgrade_refused(it)
                assert refused.status_code == 429
                async with it.socket("/v1/socket") as three:
                    await three.send(json.dumps(proof()))
                    told = json.loads(await three.recv())
                    assert (told["type"], told["code"]) == ("error", "QUOTA_EXCEEDED")
                    assert told["retry_after"] > 0
                assert counted.open == 3
                await one.send(json.dumps(SUBSCRIBE))
                assert json.loads(await one.recv())["type"] == "subscribed"
            writer.close()
            await eventually(lambda: counted.open == 0)

    run(check())


def proof() -> dict[str, str]:
    return {"type": "authenticate", "id": "0", "user": "alice", "password": "right"}


async def upgrade_refused(it: Guarded) -> Any:
    try:
        async with it.socket("/v1/socket", additional_headers={"Authorization": ALICE}):
            raise AssertionError("there was room")
    except websockets.InvalidStatus as refused:
        return refused.response


def test_what_is_said_over_a_socket_is_counted_message_by_message() -> None:
    async def check() -> None:
        async with guarded() as it:
            counted = count(it, requests=4)
            loop = asyncio.get_running_loop()
            async with it.socket("/v1/socket", additional_headers={"Authorization": ALICE}) as one:
                began = loop.time()
                for number in range(12):
                    said = {"type": "publish", "id": str(number), "topic": "orders"}
                    await one.send(json.dumps({**said, "record": {"value": "x"}}))
                told = [json.loads(await one.recv()) for _ in range(12)]
                # A socket is read no faster than that: nothing is refused.
                assert {one["type"] for one in told} == {"published"}
                assert loop.time() - began >= 1.2
            assert counted.meters.delayed

    run(check())


def test_operations_over_a_graphql_socket_are_counted_and_so_is_the_socket() -> None:
    async def check() -> None:
        async with guarded() as it:
            counted = count(it, requests=2, connections=1)
            async with it.socket("/graphql", subprotocols=["graphql-transport-ws"]) as one:
                payload = {"Authorization": ALICE}
                await one.send(json.dumps({"type": "connection_init", "payload": payload}))
                assert json.loads(await one.recv())["type"] == "connection_ack"
                assert counted.open == 1
                for number in range(12):
                    operation = {"query": "{ topics { name } }"}
                    asked = {"type": "subscribe", "id": str(number), "payload": operation}
                    await one.send(json.dumps(asked))
                told: dict[str, list[dict[str, Any]]] = {}
                while sum(one["type"] != "next" for some in told.values() for one in some) < 12:
                    message = json.loads(await one.recv())
                    told.setdefault(message["id"], []).append(message)
                kinds = [some[-1]["type"] for some in told.values()]
                assert set(kinds) == {"complete", "error"}
                errors = [some[-1] for some in told.values() if some[-1]["type"] == "error"]
                extensions = errors[0]["payload"][0]["extensions"]
                assert extensions["angariumCode"] == "QUOTA_EXCEEDED"
                assert extensions["retryAfter"] > 1.0
            await eventually(lambda: counted.open == 0)

    run(check())


def test_pings_and_mistakes_over_a_socket_are_counted_as_requests() -> None:
    async def check() -> None:
        async with guarded() as it:
            counted = count(it, requests=1_000)
            async with it.socket("/v1/socket", additional_headers={"Authorization": ALICE}) as mine:
                for _ in range(5):
                    await (await mine.ping())
                    await mine.send("this is no JSON")
                    assert json.loads(await mine.recv())["type"] == "error"
                assert counted.toll is not None
                used = counted.toll.measure(1.0)[QuotaKind.REQUESTS].rate / FRESH
                assert used == 11, "and the request that opened it"

    run(check())
