"""Opening everything, taking the right away, and looking at the clock."""

from __future__ import annotations

import asyncio
import base64
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from tests.doors.revoking.open_things import (
    BUSY,
    CONNECTIONS,
    CUT,
    LONG_S,
    OPEN,
    PUBLISHERS,
    QUIET,
    READERS,
    Ended,
    Somebody,
)

from angarium.api.access import Grant, ResourceKind, SubjectKind
from angarium.app.gateway import GatewayPart
from angarium.client.login import Login

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from tests.doors.matrix.world import SecuredCluster

    from angarium.client import Client

    Thing: TypeAlias = Callable[[Somebody], AsyncIterator[Ended]]

PASSWORD: Final = "bobs good password"
HOST: Final = "127.0.0.1"

GRANT: Final = "the grant taken back"
LOCK: Final = "the user locked"
TOKEN: Final = "the token revoked"
OTHER: Final = "another password"
WAYS: Final = (GRANT, LOCK, TOKEN, OTHER)
"""How somebody loses a right."""


@dataclass(frozen=True)
class Cut:
    """How one thing ended."""

    what: str
    way: str
    code: str
    since_asked_s: float
    """Since the change was asked for; the hash of a new password is made in this time."""
    since_answered_s: float
    """Since it was answered; 0 if it ended before that."""


async def prepare(admin: Client) -> None:
    """Make the topics: in one of them nothing happens."""
    for topic in (QUIET, BUSY):
        await admin.create_topic(topic)
        await admin.publish(topic, b"first")


async def measured(cluster: SecuredCluster, way: str, number: int) -> list[Cut]:
    """Open everything as a new user, take its right away in one `way`, and return how each ended.

    The change is asked of the first node, and everything is open at the last one.
    """
    name, node = f"bob-{WAYS.index(way)}-{number}", cluster.nodes[-1]
    gateway = GatewayPart((node.wire,), host=HOST, port=0)
    port = await gateway.start()
    admin = cluster.admin(cluster.nodes[0].wire)
    try:
        is_token = way == TOKEN
        await admin.create_user(name, password=None if is_token else PASSWORD)
        member = Grant(actions=("group.consume",), kind=ResourceKind.GROUP)
        grant = Grant(actions=("topic.read", "topic.publish"), kind=ResourceKind.TOPIC)
        await admin.create_grant(SubjectKind.USER, name, member)
        given = await admin.create_grant(SubjectKind.USER, name, grant)
        secret = (await admin.create_token(name, "t")).secret if is_token else ""
        await cluster.have_heard()
        encoded = base64.b64encode(f"{name}:{PASSWORD}".encode()).decode()
        who = Somebody(
            login=Login(token=secret) if is_token else Login(user=name, password=PASSWORD),
            header=f"Bearer {secret}" if is_token else f"Basic {encoded}",
            wire=node.wire,
            grpc=node.grpc,
            http=node.http,
            gateway=f"{HOST}:{port}",
        )
        things = {**READERS, **PUBLISHERS, **(CONNECTIONS if way != GRANT else {})}
        return await _cut(things, who, way, lambda: _revoked(admin, way, name, given.id))
    finally:
        await admin.close()
        await gateway.stop()


async def _revoked(admin: Client, way: str, name: str, grant: int) -> None:
    if way == GRANT:
        await admin.delete_grant(grant)
    elif way == LOCK:
        await admin.alter_user(name, is_locked=True)
    elif way == TOKEN:
        await admin.delete_token(name, "t")
    else:
        await admin.alter_user(name, password="bobs other password")


async def _cut(
    things: dict[str, Thing], who: Somebody, way: str, revoke: Callable[[], Awaitable[None]]
) -> list[Cut]:
    opened = {what: thing(who) for what, thing in things.items()}
    for what, one in opened.items():
        async with asyncio.timeout(LONG_S):
            assert await anext(one) == OPEN, what

    async def end(one: AsyncIterator[Ended]) -> Ended:
        ended = await anext(one)
        async for _ in one:
            pass  # until it has hung up
        return ended

    async with asyncio.timeout(LONG_S):
        waiting = {what: asyncio.ensure_future(end(one)) for what, one in opened.items()}
        # Long enough to see that nothing ends by itself; what waits for records waits now.
        await asyncio.sleep(1.0)
        early = {what: one.result() for what, one in waiting.items() if one.done()}
        assert not early, early
        asked_at = time.monotonic()
        await revoke()
        answered_at = time.monotonic()
        await asyncio.wait(waiting.values())
    found = []
    for what, task in waiting.items():
        code, at = task.result()
        found.append(Cut(what, way, code, at - asked_at, max(0.0, at - answered_at)))
    wrong = [one for one in found if one.code not in CUT]
    assert not wrong, wrong
    return found
