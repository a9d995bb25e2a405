"""Nodes that ask who somebody is: what one of them changes counts on all, and ends streams."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest
from tests.on_a_loop import on_a_loop

from angarium.api import ConsumeRequest, Interest, TopicConfig
from angarium.api.access import ADMIN, Effect, Grant, Principal, Proof, ResourceKind, SubjectKind
from angarium.client import Client
from angarium.errors import (
    AlreadyExists,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    PreconditionFailed,
    Unauthenticated,
)
from angarium.ids import Micros
from angarium.testing.broker import InProcessBroker, in_process_broker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from angarium.service.access import Access

PASSWORD = "a good password"
SOON_S = 60.0
"""How long anything may take on a busy machine that takes two seconds on an idle one."""

SECURED = Principal(name="root", proof=Proof.PASSWORD)


@asynccontextmanager
async def secured(folder: Path, *, nodes: int = 3) -> AsyncIterator[InProcessBroker]:
    """A cluster with authentication, an administrator `root` and a topic `orders`."""
    async with in_process_broker(
        folder, nodes=nodes, tick_ms=200, is_authentication_required=True
    ) as broker:
        access = there(broker.accesses[0])
        await access.calls.create_user("root", password=PASSWORD, roles=(ADMIN,))
        await broker.have_heard_of("root")
        await access.broker_for(SECURED).create_topic("orders", partitions=1, config=TopicConfig())
        yield broker


def there(access: Access | None) -> Access:
    assert access is not None
    return access


async def eventually(what: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(SOON_S):
        while not await what():  # noqa: ASYNC110 - it asks again
            await asyncio.sleep(0.02)


def publishing(name: str) -> Grant:
    return Grant(actions=("topic.publish", "topic.create"), kind=ResourceKind.TOPIC, name=name)


@on_a_loop
async def test_a_client_may_what_its_grants_say_on_every_node(tmp_path: Path) -> None:
    async with (
        secured(tmp_path) as broker,
        Client(broker.addresses[0], user="root", password=PASSWORD) as root,
    ):
        await root.create_user("alice", password=PASSWORD)
        await broker.have_heard_of("alice")
        with pytest.raises(AlreadyExists):
            await root.create_user("alice")
        granted = await root.create_grant(SubjectKind.USER, "alice", publishing("team-a"))
        assert (await root.whoami()).roles == (ADMIN,)
        decision = await root.can(
            "alice", "topic.publish", kind=ResourceKind.TOPIC, name="team-a.x"
        )
        assert decision.grant == publishing("team-a")
        async with Client(broker.addresses[2], user="alice", password=PASSWORD) as alice:
            await alice.publish("team-a.x", b"mine")
            with pytest.raises(NotFound, match="there is no topic 'orders'"):
                await alice.publish("orders", b"not mine")
            with pytest.raises(PermissionDenied):
                await alice.fetch("team-a.x", 0, 0)
            assert [one.name for one in await alice.list_topics()] == ["team-a.x"]
            assert await alice.list_groups() == ()
            assert [one.name for one in await alice.list_users()] == ["alice"]
            with pytest.raises(PermissionDenied):
                await alice.create_grant(SubjectKind.USER, "alice", publishing(""))

            await root.delete_grant(granted.id)

            async def is_refused() -> bool:
                try:
                    await alice.publish("team-a.x", b"any more?")
                except NotFound:
                    return True
                return False

            await eventually(is_refused)


@on_a_loop
async def test_nobody_is_served_without_a_proof(tmp_path: Path) -> None:
    async with secured(tmp_path, nodes=1) as broker:
        with pytest.raises(Unauthenticated, match="wants to know who asks"):
            await Client(*broker.addresses).connect()
        with pytest.raises(Unauthenticated, match="is wrong"):
            await Client(*broker.addresses, user="root", password="guessed").connect()


@on_a_loop
async def test_streams_end_on_all_nodes_when_somebody_is_locked_out(tmp_path: Path) -> None:
    async with secured(tmp_path) as broker:
        access = there(broker.accesses[0])
        await access.calls.create_user("bob", password=PASSWORD, roles=["subscriber"])
        await broker.have_heard_of("bob")
        ended: dict[str, tuple[float, BaseException]] = {}

        async def read(name: str, address: str) -> None:
            with suppress(Unauthenticated):  # who closes may dial again, and is not let in
                await read_until_the_end(name, address)

        async def read_until_the_end(name: str, address: str) -> None:
            async with Client(address, user="bob", password=PASSWORD) as client:
                try:
                    if name.startswith("group"):
                        async with client.group("g").consume("orders") as consumed:
                            started.append(name)
                            async for _ in consumed:
                                pass
                    else:
                        async with client.subscribe("orders") as records:
                            started.append(name)
                            async for _ in records:
                                pass
                except (Unauthenticated, PermissionDenied) as error:
                    ended[name] = (time.monotonic(), error)

        started: list[str] = []
        async with asyncio.timeout(2 * SOON_S), asyncio.TaskGroup() as readers:
            for at, address in enumerate(broker.addresses):
                readers.create_task(read(f"subscriber {at}", address))
                readers.create_task(read(f"group {at}", address))
            while len(started) < 6:  # noqa: ASYNC110 - they are polled
                await asyncio.sleep(0.02)
            # Until the groups are attached everywhere; what is not open cannot be ended.
            await asyncio.sleep(0.5)
            assert not ended
            locked_at = time.monotonic()
            await access.calls.alter_user("bob", is_locked=True)
        took = {name: round(at - locked_at, 2) for name, (at, _) in ended.items()}
        print("ended after", took)
        assert len(ended) == 6
        # Who has dialled again meanwhile is told what everybody is: a lock does not show.
        told = [str(error) for _, error in ended.values()]
        assert all("locked" in one or "wrong" in one for one in told), told
        assert any("locked" in one for one in told), told


@on_a_loop
async def test_streams_in_the_process_end_with_the_reason(tmp_path: Path) -> None:
    async with secured(tmp_path, nodes=1) as broker:
        access = there(broker.accesses[0])
        await access.calls.create_user("bob", roles=["subscriber"])
        reader = access.broker_for(Principal(name="bob", proof=Proof.PASSWORD))
        subscription = await reader.subscribe([Interest(topic="orders", partition=0)])
        consumption = await reader.consume(ConsumeRequest(group="g", topics=("orders",)))
        begun = await reader.begin_consume(ConsumeRequest(group="h", topics=("orders",)))
        now = there(broker.accesses[0]).service.node.now()
        short = Principal(name="bob", proof=Proof.PASSWORD, until=Micros(now + 1_500_000))
        expiring = await access.broker_for(short).subscribe([Interest(topic="orders", partition=0)])
        async with asyncio.timeout(SOON_S):
            with pytest.raises(Unauthenticated, match="expired"):
                await anext(aiter(expiring))
        await access.calls.alter_user("bob", roles=["publisher"])
        async with asyncio.timeout(SOON_S):
            for stream in (subscription, consumption, begun):
                with pytest.raises(PermissionDenied, match="any more"):
                    await anext(aiter(stream))
        for one in (subscription, consumption, begun, expiring):
            await one.close()
        assert not len(access._open)


@on_a_loop
async def test_what_was_dropped_does_not_end_the_rest(tmp_path: Path) -> None:
    async with secured(tmp_path, nodes=1) as broker:
        access = there(broker.accesses[0])
        await access.broker_for(SECURED).create_topic("other", partitions=1, config=TopicConfig())
        await access.calls.create_user("bob", roles=["subscriber"])
        reader = access.broker_for(Principal(name="bob", proof=Proof.PASSWORD))
        subscription = await reader.subscribe([Interest(topic="orders", partition=0)])
        await subscription.add([Interest(topic="other", partition=0)])
        await subscription.drop("other", 0)
        banned = Grant(actions=("*",), kind=ResourceKind.TOPIC, name="other", effect=Effect.DENY)
        await access.calls.create_grant(SubjectKind.USER, "bob", banned)
        with pytest.raises(NotFound):
            await subscription.add([Interest(topic="other", partition=0)])
        assert len(access._open) == 1, "it goes on with what it may still read"
        await subscription.close()


@on_a_loop
async def test_a_hundred_changes_of_grants_refuse_no_publish_that_is_allowed(
    tmp_path: Path,
) -> None:
    async with secured(tmp_path, nodes=1) as broker:
        access = there(broker.accesses[0])
        await access.calls.create_user("alice", password=PASSWORD, roles=["publisher"])
        published = 0
        is_over = False

        async def publish() -> None:
            nonlocal published
            async with Client(*broker.addresses, user="alice", password=PASSWORD) as client:
                while not is_over:
                    await client.publish("orders", b"x")
                    published += 1

        async with asyncio.timeout(4 * SOON_S), asyncio.TaskGroup() as tasks:
            publisher = tasks.create_task(publish())
            for number in range(50):
                grant = Grant(
                    actions=("topic.read",), kind=ResourceKind.TOPIC, name=f"other-{number}"
                )
                made = await access.calls.create_grant(SubjectKind.USER, "alice", grant)
                await access.calls.delete_grant(made.id)
                before = published
                while published == before and not publisher.done():  # noqa: ASYNC110
                    await asyncio.sleep(0)
            is_over = True
        assert published >= 50


@on_a_loop
async def test_a_cluster_below_the_level_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with in_process_broker(tmp_path) as broker:
        access = there(broker.accesses[0])
        monkeypatch.setattr("angarium.service.access.user_calls.ACCESS_LEVEL", 99)
        for wish in (
            access.calls.create_user("alice"),
            access.calls.create_role("role"),
            access.calls.delete_token("alice", "ci"),
        ):
            with pytest.raises(PreconditionFailed, match="raise-level"):
                await wish


@on_a_loop
async def test_tokens_are_narrower_than_their_owner_and_can_be_revoked(tmp_path: Path) -> None:
    async with (
        secured(tmp_path, nodes=1) as broker,
        Client(*broker.addresses, user="root", password=PASSWORD) as root,
    ):
        with pytest.raises(InvalidArgument, match="expired already"):
            await root.create_token("root", "late", until=Micros(1))
        reading = Grant(actions=("topic.read",), kind=ResourceKind.TOPIC, name="orders")
        issued = await root.create_token("root", "ci", grants=[reading])
        async with Client(*broker.addresses, token=issued.secret) as narrowed:
            caller = await narrowed.whoami()
            assert (caller.principal.name, caller.principal.token) == ("root", "ci")
            await narrowed.fetch("orders", 0, 0)
            with pytest.raises(PermissionDenied):
                await narrowed.publish("orders", b"x")
            with pytest.raises((PermissionDenied, NotFound)):
                await narrowed.create_token("root", "more")
            await root.delete_token("root", "ci")

            async def is_out() -> bool:
                try:
                    await narrowed.fetch("orders", 0, 0)
                except Unauthenticated:
                    return True
                return False

            await eventually(is_out)
