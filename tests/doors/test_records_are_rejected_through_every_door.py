"""Whoever speaks for a member can reject its records, through every door."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import grpc.aio
from tests.doors.cluster_of_doors import run
from tests.doors.speaking import http
from websockets.asyncio.client import connect

from angarium import GroupConfig
from angarium.client import Client
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from tests.doors.cluster_of_doors import Doors

    from angarium.client import GroupRecord


def test_what_is_rejected_is_a_dead_letter_at_once(doors: Doors) -> None:
    node = doors.nodes[2]
    config = GroupConfig(max_attempts=9, dead_letter_topic="rejected-here")

    async def reject_over_grpc(record: GroupRecord) -> None:
        offset = record.offset or 0
        settlement = pb.Settlement(
            topic="rejects", verb=pb.VERB_REJECT, ranges=[offset, offset + 1], reason="grpc"
        )
        request = pb.SettleRequest(group="strict", member="me", settlements=[settlement])
        async with grpc.aio.insecure_channel(node.grpc) as channel:
            (settled,) = (await BrokerStub(channel).Settle(request)).settled
        assert settled.records == 1, settled

    async def reject_over_rest(record: GroupRecord) -> None:
        offset = record.offset or 0
        settlement = {
            "topic": "rejects",
            "partition": 0,
            "verb": "reject",
            "ranges": [offset, offset + 1],
            "reason": "rest",
        }
        body = {"member": "me", "settlements": [settlement]}
        answer = (await http(node.http, "POST", "/v1/groups/strict/settle", body)).json
        assert answer["settled"][0]["records"] == 1, answer

    async def main() -> None:
        async with Client(*doors.servers) as client:
            await client.create_topic("rejects")
            await client.publish_batch("rejects", [b"wire", b"grpc", b"rest"])
            group = client.group("strict", config=config)
            ways = [lambda record: record.reject("wire"), reject_over_grpc, reject_over_rest]
            async with group.consume("rejects", member="me") as consumer:
                async for record in consumer:
                    assert record.attempt == 1
                    await ways.pop(0)(record)
                    if not ways:
                        break
            async with asyncio.timeout(60):
                while (await group.describe()).lag:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            letters = [
                (one.value, dict(one.headers)["angarium-dlq-reason"])
                async for one in client.read("rejected-here")
            ]
            assert letters == [(one, one) for one in (b"wire", b"grpc", b"rest")]

    run(main())


def test_a_member_on_a_websocket_rejects_what_it_was_handed(doors: Doors) -> None:
    node = doors.nodes[1]
    config = GroupConfig(max_attempts=9, dead_letter_topic="rejected-on-sockets")

    async def main() -> None:
        async with Client(*doors.servers) as client:
            await client.create_topic("socket-rejects")
            group = client.group("strict-sockets", config=config)
            async with group.consume("socket-rejects"):
                pass  # so that the group has its settings
            await client.publish_batch("socket-rejects", [b"bad", b"good"])
            async with connect(f"ws://{node.http}/v1/socket", proxy=None) as ws:

                async def heard(kind: str) -> Any:
                    async with asyncio.timeout(60):
                        while True:
                            said = json.loads(await ws.recv())
                            assert said["type"] != "error", said
                            if said["type"] == kind:
                                return said

                async def settle(verb: str, offset: int) -> None:
                    wish = {"verb": verb, "ranges": [offset, offset + 1], "reason": "not so"}
                    place = {"topic": "socket-rejects", "partition": 0}
                    await ws.send(json.dumps({"type": "settle", "id": "g", **place, **wish}))
                    assert (await heard("settled"))["records"] == 1

                opening = {"group": "strict-sockets", "topics": ["socket-rejects"]}
                await ws.send(json.dumps({"type": "consume", "id": "g", **opening}))
                found: list[str] = []
                while len(found) < 2:
                    found += [one["value"] for one in (await heard("records"))["records"]]
                assert found == ["bad", "good"]
                await settle("reject", 0)
                await settle("ack", 1)
                async with asyncio.timeout(60):
                    while (await group.describe()).lag:  # noqa: ASYNC110
                        await asyncio.sleep(0.05)
            (letter,) = [one async for one in client.read("rejected-on-sockets")]
            headers = dict(letter.headers)
            assert (letter.value, headers["angarium-dlq-reason"]) == (b"bad", b"not so")
            assert headers["angarium-dlq-attempts"] == b"1"

    run(main())
