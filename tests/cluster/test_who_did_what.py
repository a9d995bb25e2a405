"""Audit records of a real cluster: through every door, through kills, and with somebody at them."""

from __future__ import annotations

import asyncio
import base64
import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
from tests.cluster.audited_nodes import DAMAGED, AuditedNodes, audited_nodes

from angarium.errors import AlreadyExists, AngariumError, PermissionDenied, Unauthenticated
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.running import Run

    from angarium.client import Client, Record

ALICE = ("alice", "alices password")


def basic(user: tuple[str, str]) -> str:
    return "Basic " + base64.b64encode(":".join(user).encode()).decode()


async def listed(nodes: AuditedNodes, *words: str) -> list[dict[str, Any]]:
    lines = await nodes.angarium("audit", "list", *words, "--format", "json")
    return [json.loads(line) for line in lines.splitlines()]


async def denied_over_grpc(nodes: AuditedNodes) -> None:
    async with grpc.aio.insecure_channel(nodes.address(2, "grpc")) as channel:
        stub: Any = BrokerStub(channel)
        asked = pb.PublishRequest(topic="orders", record=pb.NewRecord(value=b"x"))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Publish(asked, metadata=(("authorization", basic(ALICE)),), timeout=60)
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED


def ask_rest(
    nodes: AuditedNodes, method: str, path: str, body: object, *, user: tuple[str, str]
) -> int:
    request = urllib.request.Request(
        f"http://{nodes.address(3, 'http')}{path}",
        data=json.dumps(body).encode(),
        method=method,
        headers={"Authorization": basic(user), "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_every_door_is_recorded_and_what_was_altered_is_named(tmp_path: Path, run: Run) -> None:
    async def check(nodes: AuditedNodes) -> None:
        await nodes.ready()
        async with nodes.client() as admin:
            await admin.create_topic("orders", partitions=1)
            await admin.create_user(ALICE[0], password=ALICE[1], roles=["monitor"])
        await nodes.have_heard_of(ALICE)
        async with nodes.client(1, user=ALICE) as alice:
            with pytest.raises(PermissionDenied):
                await alice.publish("orders", b"x")
            with pytest.raises(PermissionDenied):
                await alice.alter_topic("orders", partitions=2)
        with pytest.raises(Unauthenticated):
            async with nodes.client(1, user=("alice", "not hers")):
                pass
        await denied_over_grpc(nodes)
        topic: dict[str, object] = {"name": "over.rest", "partitions": 1}
        admin_user = ("admin", "a long password")
        made = await asyncio.to_thread(
            ask_rest, nodes, "POST", "/v1/topics", topic, user=admin_user
        )
        assert made in {200, 201}
        path = "/v1/topics/orders/records"
        assert await asyncio.to_thread(ask_rest, nodes, "POST", path, {}, user=ALICE) in {400, 403}
        refused = await asyncio.to_thread(ask_rest, nodes, "POST", path, {"value": "x"}, user=ALICE)
        assert refused == 403
        wrong = ("alice", "guessed again")
        assert await asyncio.to_thread(ask_rest, nodes, "POST", path, {}, user=wrong) == 401

        wanted = {(door, "127.0.0.1") for door in ("wire", "grpc", "http")}
        async with asyncio.timeout(120):
            while True:
                denied = await listed(nodes, "--who", "alice", "--what", "publish", "--denied")
                everything = await listed(nodes)
                # What was refused, and who was not let in, is recorded a moment later.
                doors = {one["door"] for one in everything if one["event"] == "login"}
                if (
                    wanted <= {(one["door"], one["address"]) for one in denied}
                    and doors >= {"wire", "http"}
                    and any(one["what"] == "alter_topic" for one in everything)
                ):
                    break
        (over_rest,) = await listed(nodes, "--resource", "over.*", "--since", "1h")
        assert (over_rest["who"], over_rest["door"]) == ("admin", "http")
        assert await listed(nodes, "--since", "2100-01-01") == []
        assert len(await listed(nodes, "--max", "3")) == 3
        (altered,) = [one for one in everything if one["what"] == "alter_topic"]
        assert (altered["action"], altered["outcome"]) == ("topic.alter", "denied")
        assert doors == {"wire", "http"}
        for secret in (ALICE[1], "not hers", "guessed again", "a long password"):
            assert secret not in repr(everything)

        anchor = str(tmp_path / "anchor.json")
        told = await nodes.angarium("audit", "verify", "--write-anchor", anchor)
        assert "all is sound" in told
        async with nodes.client() as admin:
            await altered_copies(nodes, admin, anchor)

    with audited_nodes(tmp_path) as nodes:
        run(check(nodes))


async def altered_copies(nodes: AuditedNodes, admin: Client, anchor: str) -> None:
    """Copy the topic, do something to each copy, and see what a check says."""
    records = [one async for one in admin.read("angarium.audit")]
    said = [json.loads(one.value or b"") for one in records]
    # The second record of whoever has written several: its writer's next one is there, too.
    at = next(
        at
        for at, one in enumerate(said)
        if one["number"] == 1 and any(o["writer"] == one["writer"] for o in said[at + 1 :])
    )
    name = f"number {said[at]['number']} of writer {said[at]['writer']}"

    async def told(copy: str, *words: str) -> str:
        return await nodes.angarium("audit", "verify", "--topic", copy, *words, status=DAMAGED)

    await copied(admin, "copy.removed", records[:at] + records[at + 1 :])
    assert f"REMOVED: {name} is missing" in await told("copy.removed")

    values = [one.value or b"" for one in records]
    values[at] = values[at].replace(b'"time":"2', b'"time":"1')
    assert values[at] != records[at].value
    await copied(admin, "copy.changed", records, values=values)
    assert f"CHANGED: the record at offset {at}, {name}" in await told("copy.changed")

    swapped = [*records[:at], records[at + 1], records[at], *records[at + 2 :]]
    await copied(admin, "copy.swapped", swapped)
    assert f"REORDERED: the record at offset {at}" in await told("copy.swapped")

    await copied(admin, "copy.cut", records[:-3])
    assert "CUT OFF: the topic ends before" in await told("copy.cut", "--anchor", anchor)

    lines = nodes.folder / "lines"
    sub = ("sub", "angarium.audit", "--from", "earliest", "--no-follow", "--format", "json")
    text = await nodes.angarium(*sub)
    lines.write_text(text)
    verify = ("audit", "verify", "--file", str(lines), "--format", "json")
    assert json.loads(await nodes.angarium(*verify))["sound"]
    kept = text.splitlines(keepends=True)
    lines.write_text("".join(kept[:at] + kept[at + 1 :]))
    found = json.loads(await nodes.angarium(*verify, status=DAMAGED))
    assert not found["sound"]
    assert [(one["trouble"], one["number"]) for one in found["findings"]] == [("removed", 1)]


async def copied(
    admin: Client, topic: str, records: list[Record], *, values: list[bytes] | None = None
) -> None:
    await admin.create_topic(topic, partitions=1)
    for at, one in enumerate(records):
        value = one.value if values is None else values[at]
        await admin.publish(topic, value, headers=one.headers)


def test_no_acknowledged_action_is_without_its_record_when_nodes_are_killed(
    tmp_path: Path, run: Run
) -> None:
    async def check(nodes: AuditedNodes) -> None:
        await nodes.ready()
        acknowledged: list[str] = []
        async with nodes.client() as admin:
            (partition,) = (await admin.describe_topic("angarium.audit")).partitions
        leader = partition.leader or 1
        # Once the node that records is killed, and once the one that leads the topic.
        for turn, (victim, through) in enumerate([(2, 2), (leader, 1 if leader != 1 else 3)]):
            acting = asyncio.create_task(act(nodes, through, f"role-{turn}", acknowledged))
            await more_than(len(acknowledged) + 5, acknowledged)
            nodes.kill(victim)
            if victim != through:
                await more_than(len(acknowledged) + 3, acknowledged)
            acting.cancel()
            await asyncio.gather(acting, return_exceptions=True)
            nodes.start(victim)
            await nodes.ready()
        recorded = {one["resource"] for one in await listed(nodes, "--what", "create_role")}
        assert [one for one in acknowledged if one not in recorded] == []
        report = json.loads(await nodes.angarium("audit", "verify", "--format", "json"))
        assert report["sound"], report["findings"]
        of_victim = [one for one in report["writers"] if one["writer"].startswith("2-")]
        assert not of_victim[0]["has_ended"], "it was killed"

    with audited_nodes(tmp_path) as nodes:
        run(check(nodes))


async def act(nodes: AuditedNodes, through: int, name: str, acknowledged: list[str]) -> None:
    """Make roles through one node, and note which were made, until the node is gone."""
    async with nodes.client(through) as admin:
        for number in range(100_000):
            role = f"{name}-{number}"
            try:
                await admin.create_role(role)
            except AlreadyExists:
                pass  # made by a call whose answer was lost
            except AngariumError as error:
                if error.retriable:
                    continue
                raise
            acknowledged.append(role)


async def more_than(count: int, acknowledged: list[str]) -> None:
    async with asyncio.timeout(120):
        while len(acknowledged) < count:  # noqa: ASYNC110 - they are polled
            await asyncio.sleep(0.02)
