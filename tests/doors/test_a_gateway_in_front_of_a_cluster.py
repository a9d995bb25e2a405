"""The HTTP door in a process of its own: everything that a node's door does."""

from __future__ import annotations

import asyncio
import json
import uuid
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.doors.cluster_of_doors import Doors, run
from tests.doors.speaking import READERS, WRITERS, Item, http
from websockets.asyncio.client import connect

from angarium.app.gateway import GatewayPart
from angarium.client import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from angarium.bench.cluster import BenchNode

ITEMS = [Item(bytes(range(256)), b"k"), Item(b""), *(Item(f"{n}".encode()) for n in range(10))]


@asynccontextmanager
async def gateway(doors: Doors) -> AsyncIterator[BenchNode]:
    part = GatewayPart(tuple(doors.servers), host="127.0.0.1", port=0)
    try:
        port = await part.start()
        yield replace(doors.nodes[0], http=f"127.0.0.1:{port}")
    finally:
        await part.stop()


@pytest.mark.parametrize("writer", ["rest", "rest-batch", "websocket", "graphql"])
@pytest.mark.parametrize("reader", ["rest", "sse", "websocket", "graphql"])
def test_records_go_in_and_come_out_through_a_gateway(
    doors: Doors, writer: str, reader: str
) -> None:
    topic = f"gateway-{writer}-{reader}"

    async def story() -> None:
        async with Client(*doors.servers) as client:
            await client.create_topic(topic)
        async with gateway(doors) as node:
            await WRITERS[writer](node, topic, ITEMS)
            assert await READERS[reader](node, topic, len(ITEMS)) == ITEMS

    run(story())


def test_a_gateway_is_ready_once_the_cluster_is_and_open_before_that(doors: Doors) -> None:
    async def story() -> None:
        async with gateway(doors) as node:
            assert (await http(node.http, "GET", "/healthz")).status == 200
            while (await http(node.http, "GET", "/readyz")).status != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        lonely = GatewayPart(("127.0.0.1:1",), host="127.0.0.1", port=0)
        try:
            address = f"127.0.0.1:{await lonely.start()}"
            assert (await http(address, "GET", "/healthz")).status == 200
            answer = await http(address, "GET", "/readyz")
            assert (answer.status, answer.body) == (503, b"no node of the cluster answers\n")
        finally:
            await lonely.stop()

    run(story())


def test_a_group_shares_work_through_a_gateway_and_its_lag_is_told(doors: Doors) -> None:
    async def hear(ws: Any, kind: str) -> Any:
        while True:
            message = json.loads(await ws.recv())
            assert message["type"] != "error", message
            if message["type"] == kind:
                return message

    async def story() -> None:
        async with Client(*doors.servers) as client:
            await client.create_topic("shared-work")
        async with gateway(doors) as node:
            await WRITERS["rest-batch"](node, "shared-work", ITEMS)
            async with connect(f"ws://{node.http}/v1/socket", proxy=None) as ws:
                wish = {"type": "consume", "id": "c", "group": "shared", "topics": ["shared-work"]}
                await ws.send(json.dumps(wish))
                assert (await hear(ws, "subscribed"))["kind"] == "queue"
                seen: list[int] = []
                while len(seen) < len(ITEMS):
                    message = await hear(ws, "records")
                    offsets = [one["offset"] for one in message["records"]]
                    seen += offsets
                    settle = {
                        "type": "settle",
                        "id": "c",
                        "topic": "shared-work",
                        "partition": 0,
                        "ranges": [offsets[0], offsets[-1] + 1],
                    }
                    await ws.send(json.dumps(settle))
                    assert (await hear(ws, "settled"))["records"] == len(offsets)
                assert seen == list(range(len(ITEMS)))
            lag = (await http(node.http, "GET", "/v1/groups/shared/lag")).json
            assert lag["lag"] == 0
            missing = await http(node.http, "GET", "/v1/groups/nobody/lag")
            assert missing.status == 404

    run(story())


def test_a_request_with_a_number_of_its_own_is_stored_once_by_whichever_node(doors: Doors) -> None:
    async def story() -> None:
        async with Client(*doors.servers) as client:
            await client.create_topic("numbered")
        target = "/v1/topics/numbered/records"
        async with gateway(doors) as node:
            for address in (node.http, doors.nodes[1].http, doors.nodes[2].http):
                number = {"Angarium-Sequence": "importer:41"}
                answer = await http(address, "POST", target, {"value": "x"}, **number)
                assert answer.status == 200, answer.body
                assert answer.json["offset"] == 0
            kept = "/v1/topics/numbered/partitions/0/records?fresh=true"
            page = await http(node.http, "GET", kept)
            assert len(page.json["records"]) == 1

    run(story())


def test_a_request_under_a_key_is_stored_once_by_whichever_node(doors: Doors) -> None:
    async def story() -> None:
        async with Client(*doors.servers) as client:
            await client.create_topic("once", partitions=3)
        target = "/v1/topics/once/records"
        key = {"Idempotency-Key": str(uuid.uuid4())}
        async with gateway(doors) as node:
            addresses = [node.http, *(one.http for one in doors.nodes)]
            places = set()
            for number, address in enumerate(addresses):
                answer = await http(address, "POST", target, {"value": "x"}, **key)
                assert answer.status == 200, answer.body
                assert answer.json.get("duplicate", False) is (number > 0)
                places.add((answer.json["partition"], answer.json["offset"]))
            assert len(places) == 1
            for address in addresses:
                refused = await http(address, "POST", target, {"value": "y"}, **key)
                assert (refused.status, refused.json["code"]) == (422, "KEY_REUSED")

    run(story())


def test_many_records_under_a_key_are_stored_once_together(doors: Doors) -> None:
    async def story() -> None:
        async with Client(*doors.servers) as client:
            await client.create_topic("once-many", partitions=3)
        target = "/v1/topics/once-many/records/batch"
        body = {"records": [{"value": f"{n}", "key": f"k{n}"} for n in range(30)]}
        for address in [one.http for one in doors.nodes]:
            answer = await http(address, "POST", target, body, **{"Idempotency-Key": "import-7"})
            assert answer.status == 200, answer.body
        total = 0
        for partition in range(3):
            page = f"/v1/topics/once-many/partitions/{partition}/records?fresh=true"
            total += len((await http(doors.nodes[0].http, "GET", page)).json["records"])
        assert total == 30

    run(story())
