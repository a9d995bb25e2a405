"""Quotas as somebody runs them: set by the command, kept on every door, fair behind a gateway."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from typing import TYPE_CHECKING, Any
from urllib import error as urllib_error
from urllib import request as urllib_request

import grpc
from tests.busy_machine import slowness
from tests.cluster.command_line import ran
from tests.cluster.secured import ADMIN, PASSWORD, SecuredNode
from tests.cluster.test_a_flood_of_bad_logins import admin_of
from tests.component.doors.grpc.opened import refused

from angarium.api import TopicConfig
from angarium.api.quotas import QuotaKind, QuotaSubject
from angarium.client import Client
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from pathlib import Path

LIMIT_EXIT = 7
DENIED_EXIT = 10
FLOOD_S = 5.0
"""How long somebody asks for more than its share."""


def command(
    node: SecuredNode, *words: str, user: str = "admin", password: str = ADMIN, status: int = 0
) -> str:
    """Run a command as somebody; return what it prints."""
    who = {"ANGARIUM_USER": user, "ANGARIUM_PASSWORD": password, "ANGARIUM_SERVERS": node.address}
    done = ran(node.folder, *words, **who)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def basic(user: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()


def posted(port: int, user: str, topic: str) -> tuple[int, dict[str, str], dict[str, Any]]:
    """Publish a record over REST; return status, headers and body."""
    asked = urllib_request.Request(
        f"http://127.0.0.1:{port}/v1/topics/{topic}/records",
        data=json.dumps({"value": "x" * 1_000}).encode(),
        headers={"Authorization": basic(user), "Content-Type": "application/json"},
    )
    try:
        with urllib_request.urlopen(asked, timeout=60) as answer:
            return answer.status, dict(answer.headers), json.loads(answer.read())
    except urllib_error.HTTPError as refusal:
        return refusal.code, dict(refusal.headers), json.loads(refusal.read())


async def prepared(node: SecuredNode) -> None:
    admin = await admin_of(node)
    for name in ("alice", "bob"):
        await admin.create_topic(f"of-{name}", partitions=1, config=TopicConfig())
        await admin.create_user(name, password=PASSWORD, roles=["publisher", "subscriber"])
    await admin.close()


def test_the_command_sets_shows_and_deletes_quotas(tmp_path: Path) -> None:
    node = SecuredNode(tmp_path)
    with node.running():
        asyncio.run(prepared(node))
        assert "There are no quotas." in command(node, "quota", "list")
        said = ("--bytes-in", "1MB", "--requests", "500/s", "--publishes", "unlimited")
        assert "requests 500" in command(node, "quota", "set", "user:alice", *said)
        command(node, "quota", "set", "default", "--connections", "40")
        command(node, "quota", "set", "topic:team-a*", "--stored-bytes", "10GB")
        listed = command(node, "quota", "list")
        assert "topic:team-a*" in listed
        assert "default" in listed
        rows = json.loads(command(node, "--format", "json", "quota", "list"))
        assert {one["subject_kind"] for one in rows} == {"user", "default", "topic"}
        shown = command(node, "quota", "show", "user:alice")
        assert "the default quota" in shown
        assert "unlimited" in shown
        own = command(node, "quota", "show", "user:alice", user="alice", password=PASSWORD)
        assert "bytes_in" in own
        refusal = command(
            node,
            *("quota", "set", "user:alice", "--requests", "unlimited"),
            user="alice",
            password=PASSWORD,
            status=DENIED_EXIT,
        )
        assert "may not quota.alter" in refusal
        command(node, "quota", "set", "user:alice", "--bytes-in", "default")
        assert "bytes_in" not in command(node, "quota", "list")
        command(node, "quota", "delete", "user:alice")
        command(node, "quota", "delete", "user:alice", status=3)
        assert "none of user:NAME" in command(
            node, "quota", "set", "alice", "--requests", "1", status=2
        )
        assert "say what is limited" in command(node, "quota", "set", "default", status=2)


def test_every_door_says_when_to_come_again_and_counts_it(tmp_path: Path) -> None:
    node = SecuredNode(tmp_path)

    async def calls() -> grpc.aio.AioRpcError:
        record = pb.NewRecord(value=b"x" * 1_000)
        asked = pb.PublishRequest(topic="of-alice", partition=0, record=record)
        metadata = (("authorization", basic("alice")),)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{node.grpc}") as channel:
            stub: Any = BrokerStub(channel)
            for _ in range(50):
                many = [stub.Publish(asked, metadata=metadata) for _ in range(8)]
                for one in await asyncio.gather(*many, return_exceptions=True):
                    if isinstance(one, grpc.aio.AioRpcError):
                        return one
        raise AssertionError("nothing was refused")

    with node.running():
        asyncio.run(prepared(node))
        command(node, "quota", "set", "user:alice", "--requests", "2")
        found: list[tuple[int, dict[str, str], dict[str, Any]]] = []

        async def flood() -> None:
            loop = asyncio.get_running_loop()
            tries = [
                loop.run_in_executor(None, posted, node.http, "alice", "of-alice")
                for _ in range(24)
            ]
            found.extend(await asyncio.gather(*tries))

        deadline = time.monotonic() + 60
        while not any(one[0] == 429 for one in found):
            assert time.monotonic() < deadline
            asyncio.run(flood())
        status, headers, body = next(one for one in found if one[0] == 429)
        assert status == 429
        assert int(headers["Retry-After"]) >= 1
        assert body["code"] == "QUOTA_EXCEEDED"
        assert body["retry_after"] > 1.0
        told = refused(asyncio.run(calls()))
        assert told.status is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert told.retry_after_s is not None
        asked = urllib_request.Request(f"http://127.0.0.1:{node.http}/metrics")
        admin = base64.b64encode(f"admin:{ADMIN}".encode()).decode()
        asked.add_header("Authorization", f"Basic {admin}")
        with urllib_request.urlopen(asked, timeout=60) as answer:
            metrics = answer.read().decode()
        lines = dict(
            line.rsplit(" ", 1)
            for line in metrics.splitlines()
            if line.startswith(("angarium_throttled", "angarium_quota"))
        )
        assert float(lines['angarium_quota_refusals_total{kind="requests"}']) >= 2
        assert float(lines['angarium_throttled_seconds_total{kind="requests"}']) > 0


def test_who_is_over_its_quota_slows_nobody_on_the_node_nor_behind_the_gateway(
    tmp_path: Path,
) -> None:
    """Alice floods through the gateway and over the wire; bob asks through the same gateway."""
    node = SecuredNode(tmp_path)

    async def scene() -> dict[str, Any]:
        admin = await admin_of(node)
        limits = {QuotaKind.BYTES_IN: 20_000, QuotaKind.REQUESTS: 200}
        await admin.set_quota(QuotaSubject.USER, "alice", limits)
        loop = asyncio.get_running_loop()
        alices: list[int] = []
        bobs: list[float] = []
        wire: list[float] = []
        ends = loop.time() + FLOOD_S

        async def alice() -> None:
            while loop.time() < ends:
                status, *_ = await loop.run_in_executor(
                    None, posted, node.gateway, "alice", "of-alice"
                )
                alices.append(status)

        async def bob() -> None:
            while loop.time() < ends:
                began = loop.time()
                status, *_ = await loop.run_in_executor(None, posted, node.gateway, "bob", "of-bob")
                assert status == 200
                bobs.append(loop.time() - began)

        async with (
            Client(node.address, user="alice", password=PASSWORD) as flooding,
            Client(node.address, user="bob", password=PASSWORD) as beside,
        ):

            async def flood() -> None:
                while loop.time() < ends:
                    await asyncio.gather(
                        *(flooding.publish("of-alice", bytes(1_000)) for _ in range(10)),
                        return_exceptions=True,
                    )

            async def bob_on_the_wire() -> None:
                while loop.time() < ends:
                    began = loop.time()
                    await beside.publish("of-bob", b"x")
                    wire.append(loop.time() - began)
                    await asyncio.sleep(0.02)

            # The first of each logs in alone.
            for user in ("alice", "bob"):
                await loop.run_in_executor(None, posted, node.gateway, user, f"of-{user}")
            async with asyncio.timeout(120), asyncio.TaskGroup() as tasks:
                for _ in range(3):
                    tasks.create_task(alice())
                tasks.create_task(bob())
                tasks.create_task(flood())
                tasks.create_task(bob_on_the_wire())
        took_s = loop.time() - (ends - FLOOD_S)
        stored = (await admin.describe_topic("of-alice")).partitions[0].end_offset
        await admin.close()
        return {
            "alices": alices,
            "bobs": sorted(bobs),
            "wire": sorted(wire),
            "stored": stored,
            "took_s": took_s,
        }

    with node.running():
        asyncio.run(prepared(node))
        with node.with_gateway():
            found = asyncio.run(scene())
    bobs, wire = found["bobs"], found["wire"]
    print(
        f"bob through the gateway: {len(bobs)} publishes, p50 {bobs[len(bobs) // 2] * 1e3:.0f} ms, "
        f"longest {bobs[-1] * 1e3:.0f} ms; on the wire: p50 {wire[len(wire) // 2] * 1e3:.0f} ms, "
        f"longest {wire[-1] * 1e3:.0f} ms; alice: {len(found['alices'])} answers, "
        f"{found['alices'].count(429)} of them 429; {found['stored']} of her records stored "
        f"in {found['took_s']:.1f} s"
    )
    # 20 records of 1 kB a second, what comes in a second for nothing, and what each of her
    # connections had on the way.
    assert 0 < found["stored"] <= 20 * (found["took_s"] + 2) + 60
    assert set(found["alices"]) <= {200, 429}
    assert len(bobs) >= FLOOD_S
    # She waits for up to a second for each; he does not wait for her.
    assert bobs[len(bobs) // 2] < 0.5 * slowness()
    assert wire[len(wire) // 2] < 0.5 * slowness()
