"""Publishers at several doors, while the grants around theirs change."""

from __future__ import annotations

import asyncio
import base64
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import grpc.aio
from tests.doors.matrix.http_client import HttpConnection

from angarium.api.access import Effect, Grant, Match, ResourceKind, SubjectKind
from angarium.client import Client, ClientSettings
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.doors.matrix.world import SecuredCluster

    from angarium.bench.cluster import BenchNode

TOPIC: Final = "orders"
USER: Final = "alice"
PASSWORD: Final = "alices good password"
PATIENT: Final = ClientSettings(request_timeout_s=120.0, attempt_timeout_s=30.0)
"""The machine of the tests may have ten others on it."""


@dataclass
class Load:
    """What was published while grants changed."""

    changes: int = 0
    published: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    seconds: float = 0.0


async def loaded(cluster: SecuredCluster, *, changes: int) -> Load:
    """Change grants so often while somebody publishes who may all the time."""
    load = Load()
    is_over = asyncio.Event()
    node = cluster.nodes[-1]
    async with cluster.admin(cluster.nodes[0].wire) as admin:
        await admin.create_topic(TOPIC)
        await admin.create_user(USER, password=PASSWORD)
        allowing = Grant(
            actions=("topic.publish",), kind=ResourceKind.TOPIC, name=TOPIC, match=Match.EXACT
        )
        await admin.create_grant(SubjectKind.USER, USER, allowing)
        await cluster.have_heard()
        began = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for door, publishing in DOORS.items():
                load.published[door] = 0
                tasks.create_task(_publish(load, door, publishing, node, is_over))
            try:
                await _change(admin, load, changes)
            finally:
                is_over.set()
        load.seconds = time.monotonic() - began
    return load


async def _change(admin: Client, load: Load, changes: int) -> None:
    """Give and take grants, bans among them, to and from the publisher itself."""
    while load.changes < changes:
        number = load.changes
        effect = Effect.DENY if number % 4 else Effect.ALLOW
        other = Grant(
            actions=("*",), kind=ResourceKind.TOPIC, name=f"other-{number}", effect=effect
        )
        made = await admin.create_grant(SubjectKind.USER, USER, other)
        await _until_published(load)
        await admin.delete_grant(made.id)
        await _until_published(load)
        load.changes += 2


async def _until_published(load: Load) -> None:
    """Wait until every door has published under the change."""
    before = dict(load.published)

    def is_waiting() -> bool:
        return not load.failed and any(load.published[one] <= before[one] for one in before)

    async with asyncio.timeout(300):
        while is_waiting():  # noqa: ASYNC110 - others count
            await asyncio.sleep(0.005)


async def _publish(
    load: Load,
    door: str,
    publishing: Callable[[BenchNode, Callable[[], bool], Callable[[str], None]], Awaitable[None]],
    node: BenchNode,
    is_over: asyncio.Event,
) -> None:
    def note(failure: str) -> None:
        if failure:
            load.failed.append(f"{door}: {failure}")
        else:
            load.published[door] += 1

    try:
        await publishing(node, is_over.is_set, note)
    except Exception as error:
        note(repr(error))


async def _by_wire(
    node: BenchNode, is_over: Callable[[], bool], note: Callable[[str], None]
) -> None:
    async with Client(node.wire, user=USER, password=PASSWORD, settings=PATIENT) as client:
        while not is_over():
            await client.publish(TOPIC, b"x")
            note("")


async def _by_grpc(
    node: BenchNode, is_over: Callable[[], bool], note: Callable[[str], None]
) -> None:
    async with grpc.aio.insecure_channel(node.grpc) as channel:
        stub: Any = BrokerStub(channel)
        request = pb.PublishRequest(topic=TOPIC, record=pb.NewRecord(value=b"x"))
        while not is_over():
            await stub.Publish(request, metadata=(("authorization", _header()),), timeout=120)
            note("")


async def _by_rest(
    node: BenchNode, is_over: Callable[[], bool], note: Callable[[str], None]
) -> None:
    connection = HttpConnection(node.http)
    headers = {"Authorization": _header()}
    while not is_over():
        target = f"/v1/topics/{TOPIC}/records"
        answer = await connection.ask("POST", target, {"value": "x"}, headers=headers)
        note("" if answer.status == 200 else answer.body.decode())
    await connection.close()


def _header() -> str:
    return "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


DOORS: Final = {"wire": _by_wire, "gRPC": _by_grpc, "REST": _by_rest}
