"""Nodes that record who did what: what is in the topic, and that it hangs together."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.component.service.audit.audited_cluster import (
    PASSWORD,
    ROOT,
    SOON_S,
    audit_records,
    audited,
    checked,
    client_of,
    stored,
    there,
    until,
)
from tests.on_a_loop import on_a_loop

from angarium.api import GroupConfig, TopicConfig
from angarium.api.access import Action, Grant, Principal, Proof, ResourceKind, SubjectKind
from angarium.api.audit import AUDIT_TOPIC, AuditEvent, AuditOutcome
from angarium.errors import (
    AlreadyExists,
    AngariumError,
    AuditUnwritable,
    NotFound,
    NotLeader,
    PermissionDenied,
    Unauthenticated,
)
from angarium.modes import DeliveryMode
from angarium.security.audit.tallies import KINDS_MAX, RECORDS_MAX
from angarium.service.audit import AuditChoices
from angarium.service.audit.audit import ENDED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from angarium.api.audit import AuditRecord
    from angarium.service.access import Access
    from angarium.testing.broker import InProcessBroker


@on_a_loop
async def test_actions_and_denials_are_recorded_with_who_where_and_why(tmp_path: Path) -> None:
    async with (
        audited(tmp_path) as broker,
        client_of(broker) as root,
    ):
        await root.create_topic("orders")
        await root.create_user("alice", password="alices password", roles=["monitor"])
        with pytest.raises(AlreadyExists):
            await root.create_user("alice")
        await broker.have_heard_of("alice")
        async with client_of(broker, 2, user="alice", password="alices password") as alice:
            with pytest.raises(PermissionDenied):
                await alice.publish("orders", b"x")
        records = await until(
            broker, lambda found: any(one.event is AuditEvent.DENIAL for one in found)
        )
        actions = [one for one in records if one.event is AuditEvent.ACTION]
        made, user, again, failed = actions
        assert (made.who, made.proof, made.door, made.address) == (
            "root",
            "password",
            "wire",
            "127.0.0.1",
        )
        assert (made.what, made.action, made.resource) == ("create_topic", "topic.create", "orders")
        assert made.rule == "allow * on topic prefix '' (of the role 'admin')"
        assert made.outcome is AuditOutcome.ALLOWED
        assert (user.what, user.kind, user.resource) == ("create_user", "user", "alice")
        assert user.details == '{"password":"set","roles":["monitor"]}'
        assert (again.what, again.outcome) == ("create_user", AuditOutcome.ALLOWED)
        assert (failed.what, failed.outcome) == ("create_user", AuditOutcome.FAILED)
        assert failed.details.startswith("ALREADY_EXISTS")
        denial = next(one for one in records if one.event is AuditEvent.DENIAL)
        assert (denial.who, denial.what, denial.action) == ("alice", "publish", "topic.publish")
        assert denial.rule == "no grant allows topic.publish on topic 'orders'"
        assert (denial.node, denial.door) == (3, "wire")
        text = repr(records)
        assert "alices password" not in text
        report = await checked(broker)
        assert report.is_sound, report.findings
        assert {one.writer.split("-")[0] for one in report.writers} >= {"1", "3"}


@on_a_loop
async def test_nobody_but_who_has_the_action_reads_and_nobody_writes(tmp_path: Path) -> None:
    async with (
        audited(tmp_path, nodes=1) as broker,
        client_of(broker) as root,
    ):
        await root.create_topic("orders")
        for name, roles in (("reader", ["subscriber"]), ("eyes", ["auditor"])):
            await root.create_user(name, password=f"{name} password", roles=roles)
        everything = Grant(actions=("*",), kind=ResourceKind.TOPIC, name="angarium")
        await root.create_grant(SubjectKind.USER, "reader", everything)
        async with client_of(broker, 0, user="reader", password="reader password") as reader:
            with pytest.raises(PermissionDenied):
                await reader.fetch(AUDIT_TOPIC, 0, 0)
            assert (await reader.describe_topic(AUDIT_TOPIC)).name == AUDIT_TOPIC
        async with client_of(broker, 0, user="eyes", password="eyes password") as eyes:
            assert await eyes.fetch(AUDIT_TOPIC, 0, 0)
        assert await root.fetch(AUDIT_TOPIC, 0, 0)

        async def stage() -> None:
            async with root.transaction("forgery") as transaction:
                await transaction.publish(AUDIT_TOPIC, b"{}")

        letters = GroupConfig(dead_letter_topic=AUDIT_TOPIC)

        async def consume() -> None:
            async for _ in root.group("forgers", config=letters).consume("orders"):
                return

        forged = {"angarium-dlq-topic": AUDIT_TOPIC, "angarium-dlq-partition": "0"}
        await root.publish("orders", b"{}", headers=forged | {"angarium-dlq-offset": "0"})
        changes: tuple[Callable[[], Awaitable[object]], ...] = (
            *(partial(root.publish, AUDIT_TOPIC, b"{}", mode=mode) for mode in DeliveryMode),
            partial(root.alter_topic, AUDIT_TOPIC, partitions=2),
            partial(root.alter_topic, AUDIT_TOPIC, config=TopicConfig(retention_ms=1_000)),
            partial(root.delete_topic, AUDIT_TOPIC),
            stage,
            partial(root.alter_group, "forgers", config=letters),
            consume,
            root.dead_letters("orders").redrive,  # a letter says itself where it came from
        )
        for change in changes:
            with pytest.raises(PermissionDenied):
                await change()
        with pytest.raises(AngariumError):
            await root.create_topic(AUDIT_TOPIC)
        report = await checked(broker)
        assert report.is_sound, report.findings


@on_a_loop
async def test_logins_that_fail_are_recorded_without_what_was_typed(tmp_path: Path) -> None:
    async with audited(tmp_path, nodes=1) as broker:
        for name, password in (("root", "guessed"), ("my secret", "guessed"), ("root", "again")):
            with pytest.raises(Unauthenticated):
                await client_of(broker, 0, user=name, password=password).connect()
        records = await until(
            broker, lambda found: sum(one.event is AuditEvent.LOGIN for one in found) >= 2
        )
        logins = [one for one in records if one.event is AuditEvent.LOGIN]
        assert [(one.who, one.proof, one.door) for one in logins] == [
            ("root", "password", "wire"),
            ("", "password", "wire"),
        ]
        assert "my secret" not in repr(records)
        assert "guessed" not in repr(records)


@on_a_loop
async def test_a_topic_that_a_publish_makes_is_an_action(tmp_path: Path) -> None:
    async with (
        audited(tmp_path, nodes=1) as broker,
        client_of(broker) as root,
    ):
        await root.publish("made.on.the.way", b"x")
        made = [one for one in await audit_records(broker) if one.what == "create_topic"]
        # Once, or once for each time that a client had to repeat it before the topic was there.
        assert {one.resource for one in made} == {"made.on.the.way"}
        with pytest.raises(NotFound):
            await root.delete_topic("nothing")


@on_a_loop
async def test_actions_are_recorded_once_and_in_order_while_leaders_change(tmp_path: Path) -> None:
    async with audited(tmp_path) as broker:
        root = there(broker.accesses[0]).broker_for(ROOT)
        await root.create_topic("orders", partitions=1, config=TopicConfig())
        await until_replicated(broker)
        names = [f"role-{number}" for number in range(24)]
        for number, name in enumerate(names):
            if number % 8 == 0:
                await hand_over(broker)
            async with asyncio.timeout(SOON_S):
                while True:
                    try:
                        await root.create_role(name)
                        break
                    except (AuditUnwritable, NotLeader):
                        continue
                    except AlreadyExists:
                        break
        records = await audit_records(broker)
        made = [
            one.resource
            for one in records
            if one.what == "create_role" and one.outcome is AuditOutcome.ALLOWED
        ]
        assert list(dict.fromkeys(made)) == names
        report = await checked(broker)
        assert report.is_sound, report.findings


@on_a_loop
async def test_a_node_that_was_restarted_writes_as_another_one(tmp_path: Path) -> None:
    async with audited(tmp_path) as broker:
        await there(broker.accesses[0]).broker_for(ROOT).create_role("one")
        await until_replicated(broker)
        for at in (0, 1):
            await there(broker.accesses[at]).broker_for(ROOT).create_role(f"before {at}")
            await broker.stop_node(at)
            await broker.start_node(at)
            await acted(there(broker.accesses[at]), f"after {at}")
        report = await checked(broker)
        assert report.is_sound, report.findings
        nodes = [one.writer.split("-")[0] for one in report.writers]
        assert sorted(nodes) == ["1", "1", "2", "2"]
        assert [one.has_ended for one in report.writers].count(True) == 2


@on_a_loop
async def test_ten_thousand_denials_are_few_records_whose_counts_are_right(tmp_path: Path) -> None:
    async with audited(tmp_path, nodes=1) as broker:
        access = there(broker.accesses[0])
        await access.calls.create_user("eve", password=PASSWORD)
        eve = access.broker_for(Principal(name="eve", proof=Proof.PASSWORD))
        for number in range(10_000):
            with pytest.raises(NotFound):
                eve.check(Action.TOPIC_READ, ResourceKind.TOPIC, f"topic-{number % 5_000}")
        assert access.audit is not None
        assert access.audit.writer.waiting <= KINDS_MAX + 1
        records = await until(broker, lambda found: denials_in(found) == 10_000)
        denials = [one for one in records if one.event is AuditEvent.DENIAL]
        assert len(denials) <= RECORDS_MAX
        assert {one.who for one in denials} == {"eve"}
        assert access.audit.writer.dropped_total == 0
        assert (await checked(broker)).is_sound


@on_a_loop
async def test_hostile_names_are_bounded_and_escaped(tmp_path: Path) -> None:
    async with audited(tmp_path, nodes=1) as broker:
        access = there(broker.accesses[0])
        await access.calls.create_user("eve", password=PASSWORD)
        eve = access.broker_for(Principal(name="eve", proof=Proof.PASSWORD))
        for name in ("a\n\x1b[2Jb", "x" * 1_000_000, "\ud800", "\u202e"):
            with pytest.raises(NotFound):
                await eve.describe_topic(name)
        records = await until(broker, lambda found: denials_in(found) == 4)
        names = [one.resource for one in records if one.event is AuditEvent.DENIAL]
        assert names[0] == "a\\n\\x1b[2Jb"
        assert names[1] == "x" * 256 + "… (1000000 characters)"
        assert names[2:] == ["\\ud800", "\\u202e"]
        assert all(len(one.value or b"") < 8_192 for one in await stored(broker))


@on_a_loop
async def test_who_reads_and_publishes_is_recorded_by_setting_and_per_call(tmp_path: Path) -> None:
    choices = AuditChoices(is_data_recorded=True)
    async with (
        audited(tmp_path, nodes=1, choices=choices) as broker,
        client_of(broker) as root,
    ):
        await root.create_topic("orders", partitions=1)
        await asyncio.gather(*(root.publish("orders", b"x") for _ in range(1_000)))
        await root.fetch("orders", 0, 0)
        async with root.subscribe("orders", start="earliest") as records:
            await anext(aiter(records))
        async with root.group("workers").consume("orders") as consumed:
            async for one in consumed:
                await one.ack()
                break
        wanted = {"publish", "fetch", "subscribe", "consume"}
        found = await until(
            broker,
            lambda all_of: wanted <= {one.what for one in all_of if one.event is AuditEvent.ACCESS},
        )
        accesses = [one for one in found if one.event is AuditEvent.ACCESS]
        assert sum(one.count for one in accesses) < 50, "a record costs nothing"
        assert {one.who for one in accesses} == {"root"}
        consumed_as = {(one.action, one.resource) for one in accesses if one.what == "consume"}
        assert consumed_as == {("group.consume", "workers"), ("topic.read", "orders")}
        assert (await checked(broker)).is_sound


@on_a_loop
async def test_a_stream_that_a_change_ends_is_recorded_from_where_it_was_opened(
    tmp_path: Path,
) -> None:
    async with (
        audited(tmp_path, nodes=1) as broker,
        client_of(broker) as root,
    ):
        await root.create_topic("orders", partitions=1)
        await root.create_user("bob", password="bobs password", roles=["subscriber"])
        async with client_of(broker, 0, user="bob", password="bobs password") as bob:
            async with bob.subscribe("orders") as records:
                reading = asyncio.ensure_future(anext(aiter(records)))
                await asyncio.sleep(0.2)
                await root.alter_user("bob", roles=["monitor"])
                with pytest.raises(PermissionDenied):
                    await reading
            found = await until(broker, lambda some: any(one.what == ENDED for one in some))
        ended = next(one for one in found if one.what == ENDED and one.resource)
        assert (ended.who, ended.resource, ended.door) == ("bob", "orders", "wire")
        assert "may not topic.read on topic 'orders' any more" in ended.rule


@on_a_loop
async def test_nodes_that_come_in_are_recorded(tmp_path: Path) -> None:
    async with audited(tmp_path, nodes=2) as broker:
        records = await until(
            broker, lambda found: any(one.event is AuditEvent.NODE for one in found)
        )
        joined = next(one for one in records if one.event is AuditEvent.NODE)
        assert (joined.what, joined.resource, joined.door) == ("join", "2", "wire")
        assert joined.details.startswith("wire=127.0.0.1:")


def denials_in(records: list[AuditRecord]) -> int:
    return sum(one.count for one in records if one.event is AuditEvent.DENIAL)


async def acted(access: Access, name: str) -> None:
    """Make a role as soon as that is possible again."""
    async with asyncio.timeout(SOON_S):
        while True:
            try:
                await access.broker_for(ROOT).create_role(name)
                return
            except AngariumError as error:
                if not error.retriable and not isinstance(error, PermissionDenied):
                    raise
                await asyncio.sleep(0.05)


async def until_replicated(broker: InProcessBroker) -> None:
    """Return when the topic has a replica on every node."""
    service = broker.services[0]
    assert service is not None
    async with asyncio.timeout(SOON_S):
        while True:
            info = await service.describe_topic(AUDIT_TOPIC)
            if len(info.partitions[0].replicas) == len(broker.nodes):
                return
            await asyncio.sleep(0.05)


async def hand_over(broker: InProcessBroker) -> None:
    """Let another node lead the topic."""
    service = broker.services[0]
    assert service is not None
    before = None
    async with asyncio.timeout(SOON_S):
        while True:
            (partition,) = (await service.describe_topic(AUDIT_TOPIC)).partitions
            before = before or partition.leader
            if partition.leader is not None and partition.leader != before:
                return
            if partition.leader is not None:
                others = [one for one in partition.replicas if one != before]
                with suppress(AngariumError):
                    await service.transfer_leader(AUDIT_TOPIC, 0, others[0])
            await asyncio.sleep(0.2)
