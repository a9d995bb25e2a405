"""Quotas on topics and partitions on real nodes: every way to create is counted, on every node."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from tests.component.service.access.test_who_may_on_real_nodes import (
    PASSWORD,
    secured,
    there,
)
from tests.on_a_loop import on_a_loop

from angarium.api import GroupConfig, TopicConfig
from angarium.api.access import ADMIN, Grant, Principal, Proof, ResourceKind, SubjectKind
from angarium.api.quotas import QuotaKind, QuotaSubject
from angarium.client import Client
from angarium.errors import (
    InvalidArgument,
    NotFound,
    PreconditionFailed,
    RoleHeld,
    TopicQuotaExceeded,
    Unauthenticated,
)
from angarium.machine.catalog.quotas import PARTITIONS_BY_DEFAULT, TOPICS_BY_DEFAULT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from angarium.api.quotas import CountedLimit
    from angarium.testing.broker import InProcessBroker

RIGHTS = ("topic.create", "topic.alter", "topic.delete", "topic.publish", "topic.read")
ONE = TopicConfig()


@asynccontextmanager
async def cluster(folder: Path, *, nodes: int = 1) -> AsyncIterator[tuple[InProcessBroker, Client]]:
    """A cluster with two users who may do everything to topics below `team-a` alone."""
    async with (
        secured(folder, nodes=nodes) as broker,
        Client(broker.addresses[0], user="root", password=PASSWORD) as root,
    ):
        for name in ("alice", "bob"):
            await root.create_user(name, password=PASSWORD)
            for kind, actions in (
                (ResourceKind.TOPIC, RIGHTS),
                (ResourceKind.GROUP, ("group.consume", "group.alter")),
                (ResourceKind.TRANSACTION, ("transaction.write",)),
                (ResourceKind.PRODUCER, ("producer.write",)),
            ):
                grant = Grant(actions=actions, kind=kind, name="team-a")
                await root.create_grant(SubjectKind.USER, name, grant)
            await broker.have_heard_of(name)
        yield broker, root


def login(broker: InProcessBroker, name: str, *, node: int = 0) -> Client:
    return Client(broker.addresses[node], user=name, password=PASSWORD)


async def count(client: Client, name: str) -> dict[QuotaKind, CountedLimit]:
    shown = await client.describe_quota(QuotaSubject.USER, name)
    return {one.kind: one for one in shown.counts}


@on_a_loop
async def test_a_limit_is_set_shown_enforced_and_given_back(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (broker, root), login(broker, "alice") as alice:
        before = await count(root, "alice")
        assert before[QuotaKind.TOPICS].limit == TOPICS_BY_DEFAULT
        assert before[QuotaKind.PARTITIONS].limit == PARTITIONS_BY_DEFAULT
        assert before[QuotaKind.TOPICS].why == "the built-in default"
        limits = {QuotaKind.TOPICS: 2, QuotaKind.PARTITIONS: 5}
        assert (await root.set_quota(QuotaSubject.USER, "alice", limits)).limits == limits
        await alice.create_topic("team-a.one", partitions=2)
        await alice.create_topic("team-a.two", partitions=2)
        await alice.create_topic("team-a.two", partitions=2)
        with pytest.raises(TopicQuotaExceeded, match="'alice' has created 2 topics") as refused:
            await alice.create_topic("team-a.three")
        assert refused.value.limit == "topics"
        assert not refused.value.retriable
        throttled = there(broker.accesses[0]).throttled
        assert throttled.refused[QuotaKind.TOPICS] == 1
        with pytest.raises(TopicQuotaExceeded, match="4 partitions that still exist, and 2 more"):
            await alice.alter_topic("team-a.one", partitions=4)
        await alice.alter_topic("team-a.one", partitions=3)
        used = await count(alice, "alice")
        assert (used[QuotaKind.TOPICS].used, used[QuotaKind.PARTITIONS].used) == (2, 5)
        assert used[QuotaKind.TOPICS].limit == 2
        await alice.delete_topic("team-a.one")
        await alice.create_topic("team-a.three", partitions=3)
        await root.set_quota(QuotaSubject.USER, "alice", {QuotaKind.TOPICS: 1})
        with pytest.raises(TopicQuotaExceeded):
            await alice.create_topic("team-a.four")
        assert len(await alice.list_topics()) == 2, "what exists stays"


@on_a_loop
async def test_two_nodes_that_create_at_once_do_not_exceed_a_limit_together(
    tmp_path: Path,
) -> None:
    async with (
        cluster(tmp_path, nodes=3) as (broker, root),
        login(broker, "alice", node=1) as one,
        login(broker, "alice", node=2) as other,
    ):
        await root.set_quota(QuotaSubject.USER, "alice", {QuotaKind.TOPICS: 5})
        wishes = [
            client.create_topic(f"team-a.{at}-{number}")
            for number in range(6)
            for at, client in enumerate((one, other))
        ]
        outcomes = await asyncio.gather(*wishes, return_exceptions=True)
        refusals = [each for each in outcomes if isinstance(each, BaseException)]
        assert len(outcomes) - len(refusals) == 5
        assert all(isinstance(each, TopicQuotaExceeded) for each in refusals), refusals
        assert len(await one.list_topics()) == 5
        assert (await count(root, "alice"))[QuotaKind.TOPICS].used == 5


@on_a_loop
async def test_publishes_and_transactions_that_create_a_topic_are_counted(tmp_path: Path) -> None:
    async with (
        cluster(tmp_path, nodes=3) as (broker, root),
        login(broker, "alice", node=1) as alice,
        login(broker, "bob", node=2) as bob,
    ):
        await root.set_quota(QuotaSubject.USER, "alice", {QuotaKind.TOPICS: 2})
        await alice.publish("team-a.published", b"x")
        async with alice.transaction("team-a.series") as transaction:
            await transaction.publish("team-a.staged", b"x")
        with pytest.raises(TopicQuotaExceeded):
            await alice.publish("team-a.third", b"x")
        used = await count(root, "alice")
        assert (used[QuotaKind.TOPICS].used, used[QuotaKind.PARTITIONS].used) == (2, 2)
        await bob.publish("team-a.third", b"x")
        await alice.publish("team-a.third", b"not hers, and there")
        await alice.alter_topic("team-a.third", partitions=3)
        used = await count(root, "alice")
        assert (used[QuotaKind.TOPICS].used, used[QuotaKind.PARTITIONS].used) == (2, 4)


@on_a_loop
async def test_a_dead_letter_topic_counts_for_the_principal_that_names_it(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (broker, root), login(broker, "alice") as alice:
        await root.set_quota(QuotaSubject.USER, "alice", {QuotaKind.TOPICS: 2})
        await alice.publish("team-a.orders", b"x")
        named = GroupConfig(dead_letter_topic="team-a.letters", max_attempts=1)
        async with alice.group("team-a.group", config=named).consume("team-a.orders"):
            pass
        assert (await count(root, "alice"))[QuotaKind.TOPICS].used == 2
        third = GroupConfig(dead_letter_topic="team-a.more-letters", max_attempts=1)
        with pytest.raises(TopicQuotaExceeded):
            async with alice.group("team-a.other", config=third).consume("team-a.orders"):
                pass
        with pytest.raises(TopicQuotaExceeded):
            await alice.alter_group("team-a.group", third)
        group = await root.describe_group("team-a.group")
        assert group.config.dead_letter_topic == "team-a.letters"


@on_a_loop
async def test_administrators_have_no_limit_unless_a_quota_says_so(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (_, root):
        await root.set_quota(QuotaSubject.DEFAULT, "", {QuotaKind.TOPICS: 1})
        for number in range(3):
            await root.create_topic(f"of-root-{number}")
        shown = await count(root, "root")
        assert shown[QuotaKind.TOPICS].limit is None
        assert shown[QuotaKind.TOPICS].used == 4, "with the one of the test"
        await root.set_quota(QuotaSubject.ROLE, ADMIN, {QuotaKind.TOPICS: 3})
        with pytest.raises(TopicQuotaExceeded, match="quota of role 'admin'"):
            await root.create_topic("one-more")
        with pytest.raises(InvalidArgument, match="not topics"):
            await root.set_quota(QuotaSubject.TOPIC, "team-a", {QuotaKind.TOPICS: 3})


@on_a_loop
async def test_a_user_that_is_created_anew_has_nothing_of_the_former_one(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (broker, root):
        await root.create_role("builder")
        everything = Grant(actions=("*",), kind=ResourceKind.TOPIC, name="team-a")
        await root.create_grant(SubjectKind.ROLE, "builder", everything)
        await root.alter_user("alice", roles=["builder"])
        await root.set_quota(QuotaSubject.USER, "alice", {QuotaKind.TOPICS: 1})
        token = await root.create_token("alice", "ci")
        async with login(broker, "alice") as alice:
            await alice.create_topic("team-a.one")
        await root.delete_user("alice")
        await root.create_user("alice", password=PASSWORD)
        await broker.have_heard_of("alice")
        shown = await count(root, "alice")
        assert shown[QuotaKind.TOPICS].used == 0
        assert shown[QuotaKind.TOPICS].limit == TOPICS_BY_DEFAULT
        assert (await root.describe_user("alice")).roles == ()
        assert await root.list_tokens("alice") == ()
        assert not [one for one in await root.list_grants() if one.subject == "alice"]
        with pytest.raises(Unauthenticated):
            await Client(broker.addresses[0], token=token.secret).connect()


@on_a_loop
async def test_a_role_that_is_held_is_deleted_by_force_alone_and_taken_away(
    tmp_path: Path,
) -> None:
    async with cluster(tmp_path, nodes=3) as (broker, root), login(broker, "alice", node=2) as it:
        await root.create_role("reader")
        reading = Grant(actions=("topic.read",), kind=ResourceKind.TOPIC, name="orders")
        await root.create_grant(SubjectKind.ROLE, "reader", reading)
        await root.alter_user("alice", roles=["reader"])
        with pytest.raises(RoleHeld, match="held by 'alice'; take it from them first") as refused:
            await root.delete_role("reader")
        assert isinstance(refused.value, PreconditionFailed)
        await root.delete_role("reader", force=True)
        assert (await root.describe_user("alice")).roles == ()
        await root.create_role("reader")
        await root.create_grant(SubjectKind.ROLE, "reader", reading)
        with pytest.raises(NotFound):
            await it.fetch("orders", 0, 0)
        await root.delete_role("reader")
        with pytest.raises(NotFound):
            await root.delete_role("reader", force=True)
        with pytest.raises(InvalidArgument, match="built in"):
            await root.delete_role("publisher", force=True)


@on_a_loop
async def test_unused_join_tokens_go_with_the_user_that_issued_them(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (broker, root):
        await root.create_user("carol", password=PASSWORD, roles=[ADMIN])
        await broker.have_heard_of("carol")
        async with login(broker, "carol") as carol:
            issued = await carol.create_join_token()
        kept = await root.create_join_token()
        assert {one.id for one in await root.list_join_tokens()} == {issued.info.id, kept.info.id}
        await root.delete_user("carol")
        assert {one.id for one in await root.list_join_tokens()} == {kept.info.id}


@on_a_loop
async def test_nothing_is_counted_where_all_principals_are_the_same(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (broker, _):
        access = there(broker.accesses[0])
        node = Principal(name="node", proof=Proof.NODE)
        assert access.maker_of(node) is None
        with pytest.raises(NotFound):
            await access.for_nodes().reserve("passed-on", 0, 1)
