"""Quotas on real nodes: set once, kept on all; who is over one waits, is refused, and comes again.

Times are bounds that a busy machine keeps: what is slowed down takes at least as long as its limit
says, and who has no quota is not slowed down however long others wait.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from tests.busy_machine import slowness
from tests.component.service.access.test_who_may_on_real_nodes import (
    PASSWORD,
    SOON_S,
    eventually,
    secured,
    there,
)
from tests.on_a_loop import on_a_loop

from angarium.api import FetchRequest, TopicConfig
from angarium.api.access import Principal, Proof
from angarium.api.quotas import UNLIMITED, QuotaKind, QuotaSubject
from angarium.client import Client, ClientSettings
from angarium.errors import (
    AngariumError,
    InvalidArgument,
    LimitExceeded,
    NotFound,
    PermissionDenied,
    QuotaExceeded,
    StoredQuotaExceeded,
    Unreachable,
)
from angarium.ids import Offset
from angarium.modes import DeliveryMode
from angarium.testing.broker import in_process_broker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from angarium.testing.broker import InProcessBroker

KIB = bytes(1_024)
ALICE = Principal(name="alice", proof=Proof.PASSWORD)
IMPATIENT = ClientSettings(waits_for_quota=False)


@asynccontextmanager
async def cluster(
    folder: Path, *, nodes: int = 1, users: tuple[str, ...] = ("alice",)
) -> AsyncIterator[tuple[InProcessBroker, Client]]:
    """A cluster with users who may publish and read, and its administrator's client."""
    async with (
        secured(folder, nodes=nodes) as broker,
        Client(broker.addresses[0], user="root", password=PASSWORD) as root,
    ):
        for name in users:
            await root.create_user(name, password=PASSWORD, roles=["publisher", "subscriber"])
            await broker.have_heard_of(name)
        yield broker, root


async def is_limited(broker: InProcessBroker, kind: QuotaKind, name: str = "alice") -> None:
    """Wait until every node has heard of a quota."""

    async def everywhere() -> bool:
        who = Principal(name=name, proof=Proof.PASSWORD)
        return all(kind in there(one).limits_of(who) for one in broker.accesses if one)

    await eventually(everywhere)


@on_a_loop
async def test_quotas_are_set_listed_shown_and_deleted(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (broker, root):
        made = await root.set_quota(QuotaSubject.DEFAULT, "", {QuotaKind.REQUESTS: 1_000})
        assert made.limits == {QuotaKind.REQUESTS: 1_000}
        await root.set_quota(QuotaSubject.ROLE, "publisher", {QuotaKind.BYTES_IN: 10_000})
        await root.set_quota(
            QuotaSubject.USER, "alice", {QuotaKind.CONNECTIONS: 5, QuotaKind.PUBLISHES: UNLIMITED}
        )
        await root.set_quota(QuotaSubject.TOPIC, "team-a*", {QuotaKind.STORED_BYTES: 1 << 40})
        listed = await root.list_quotas()
        assert [(one.subject_kind.value, one.subject) for one in listed] == [
            *(("user", "alice"), ("role", "publisher")),
            *(("default", ""), ("topic", "team-a")),
        ]
        shown = await root.describe_quota(QuotaSubject.USER, "alice")
        counts = {one.kind: (one.limit, one.why) for one in shown.counts}
        assert counts[QuotaKind.BYTES_IN] == (10_000, "the quota of role 'publisher'")
        assert counts[QuotaKind.REQUESTS] == (1_000, "the default quota")
        assert counts[QuotaKind.PUBLISHES] == (None, "")
        assert counts[QuotaKind.CONNECTIONS] == (5, "the quota of user 'alice'")
        changed = await root.set_quota(
            QuotaSubject.USER, "alice", {}, cleared=[QuotaKind.CONNECTIONS]
        )
        assert changed.limits == {QuotaKind.PUBLISHES: UNLIMITED}
        async with Client(broker.addresses[0], user="alice", password=PASSWORD) as alice:
            # About oneself everybody may ask, and about nobody else.
            assert (await alice.describe_quota(QuotaSubject.USER, "alice")).counts
            with pytest.raises(NotFound):
                await alice.describe_quota(QuotaSubject.USER, "root")
            for asked in (
                alice.list_quotas(),
                alice.describe_quota(QuotaSubject.DEFAULT, ""),
                alice.set_quota(QuotaSubject.USER, "alice", {QuotaKind.REQUESTS: 9}),
                alice.delete_quota(QuotaSubject.DEFAULT, ""),
            ):
                with pytest.raises(PermissionDenied):
                    await asked
        await root.delete_quota(QuotaSubject.DEFAULT, "")
        with pytest.raises(NotFound):
            await root.delete_quota(QuotaSubject.DEFAULT, "")
        with pytest.raises(NotFound, match="no role"):
            await root.set_quota(QuotaSubject.ROLE, "nobody", {QuotaKind.REQUESTS: 1})
        with pytest.raises(NotFound, match="no user"):
            await root.set_quota(QuotaSubject.USER, "nobody", {QuotaKind.REQUESTS: 1})
        for subject, kind, amount in (
            (QuotaSubject.USER, QuotaKind.STORED_BYTES, 1),
            (QuotaSubject.TOPIC, QuotaKind.REQUESTS, 1),
            (QuotaSubject.USER, QuotaKind.REQUESTS, 0),
        ):
            with pytest.raises(InvalidArgument):
                await root.set_quota(subject, "alice", {kind: amount})


@on_a_loop
async def test_who_publishes_too_much_is_slowed_down_to_its_quota_and_others_are_not(
    tmp_path: Path,
) -> None:
    async with cluster(tmp_path, users=("alice", "bob")) as (broker, root):
        await root.create_topic("bobs", partitions=1, config=TopicConfig())
        await root.set_quota(QuotaSubject.USER, "alice", {QuotaKind.BYTES_IN: 100 * 1_024})
        await is_limited(broker, QuotaKind.BYTES_IN)
        loop = asyncio.get_running_loop()
        settings = ClientSettings(batch_bytes=8 * 1_024)
        async with (
            Client(*broker.addresses, user="alice", password=PASSWORD, settings=settings) as alice,
            Client(*broker.addresses, user="bob", password=PASSWORD) as bob,
        ):
            began = loop.time()
            flood = asyncio.gather(*(alice.publish("orders", KIB) for _ in range(400)))
            waits = []
            while not flood.done():
                asked = loop.time()
                await bob.publish("bobs", b"x")
                waits.append(loop.time() - asked)
                await asyncio.sleep(0.01)
            await flood
            took_s = loop.time() - began
            # 400 KiB at 100 a second, with what comes in the first second for nothing.
            assert took_s >= 2.5
            slower = [one for one in waits if one > 0.8 * slowness()]
            assert len(slower) <= len(waits) // 20, "somebody else was slowed down with her"
            assert len(await bob.fetch("orders", 0, 0, bytes_max=16 << 20)) == 400
        throttled = there(broker.accesses[0]).throttled
        assert throttled.seconds[QuotaKind.BYTES_IN] > 0.5


@on_a_loop
async def test_what_would_wait_too_long_is_refused_with_the_time_to_come_again(
    tmp_path: Path,
) -> None:
    async with cluster(tmp_path) as (broker, root):
        await root.set_quota(QuotaSubject.USER, "alice", {QuotaKind.BYTES_IN: 1_024})
        await is_limited(broker, QuotaKind.BYTES_IN)
        async with (
            Client(*broker.addresses, user="alice", password=PASSWORD, settings=IMPATIENT) as alice,
            Client(*broker.addresses, user="alice", password=PASSWORD) as patient,
        ):
            loop = asyncio.get_running_loop()

            async def publish_too_much() -> None:
                while True:  # four seconds' worth; a busy machine may take as long for a call
                    await alice.publish("orders", bytes(4 * 1_024))
                    await alice.publish("orders", b"x")

            with pytest.raises(QuotaExceeded, match="bytes_in: 'alice' has used up") as refused:
                await publish_too_much()
            told_at = loop.time()
            assert 1.0 < refused.value.retry_after < 10.0
            await patient.publish("orders", b"waited for")
            assert loop.time() >= told_at + refused.value.retry_after - 1.0
            throttled = there(broker.accesses[0]).throttled
            assert throttled.refused[QuotaKind.BYTES_IN] >= 1


@on_a_loop
async def test_records_and_requests_are_limited_too_and_a_change_counts_at_once(
    tmp_path: Path,
) -> None:
    async with cluster(tmp_path) as (broker, root):
        await root.set_quota(QuotaSubject.USER, "alice", {QuotaKind.PUBLISHES: 50})
        await is_limited(broker, QuotaKind.PUBLISHES)
        loop = asyncio.get_running_loop()
        async with Client(*broker.addresses, user="alice", password=PASSWORD) as alice:
            began = loop.time()
            for _ in range(3):
                await asyncio.gather(*(alice.publish("orders", b"x") for _ in range(50)))
            await alice.publish("orders", b"x")
            assert loop.time() - began >= 1.5
            await root.set_quota(
                QuotaSubject.USER, "alice", {QuotaKind.REQUESTS: 10}, cleared=[QuotaKind.PUBLISHES]
            )
            began = loop.time()
            for _ in range(40):
                await alice.list_topics()
            assert loop.time() - began >= 2.0
            await root.delete_quota(QuotaSubject.USER, "alice")
            for _ in range(5):
                await alice.list_topics()
            assert there(broker.accesses[0]).limits_of(ALICE) == {}
            began = loop.time()
            for _ in range(40):
                await alice.list_topics()
            assert loop.time() - began < SOON_S


@on_a_loop
async def test_readers_are_slowed_down_and_streams_are_not_ended(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (broker, root):
        for _ in range(300):
            root.publish_nowait("orders", KIB)
        await root.flush()
        await root.set_quota(QuotaSubject.USER, "alice", {QuotaKind.BYTES_OUT: 100 * 1_024})
        await is_limited(broker, QuotaKind.BYTES_OUT)
        loop = asyncio.get_running_loop()
        async with Client(*broker.addresses, user="alice", password=PASSWORD) as alice:
            began = loop.time()
            seen = 0
            async with asyncio.timeout(SOON_S), alice.subscribe("orders", start="earliest") as sub:
                async for _ in sub:
                    seen += 1
                    if seen == 300:
                        break
            first_s = loop.time() - began
            began = loop.time()
            group = alice.group("readers", start="earliest")
            seen = 0
            async with asyncio.timeout(SOON_S), group.consume("orders") as consumer:
                async for record in consumer:
                    await record.ack()
                    seen += 1
                    if seen == 300:
                        break
            # One delivery of each may overdraw, and is paid for by the next.
            assert first_s + loop.time() - began >= 1.0
            assert seen == 300
        throttled = there(broker.accesses[0]).throttled
        assert throttled.seconds[QuotaKind.BYTES_OUT] > 0


@on_a_loop
async def test_connections_are_counted_and_refused_beyond_the_quota(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (broker, root):
        clients = [Client(*broker.addresses, user="alice", password=PASSWORD) for _ in range(3)]
        try:
            await clients[0].connect()
            await root.set_quota(QuotaSubject.USER, "alice", {QuotaKind.CONNECTIONS: 2})
            await is_limited(broker, QuotaKind.CONNECTIONS)
            await clients[1].connect()
            with pytest.raises((QuotaExceeded, Unreachable), match="has used up 2"):
                await clients[2].connect()
            await clients[0].close()

            async def comes_in() -> bool:
                try:
                    await clients[2].connect()
                except (LimitExceeded, Unreachable):
                    return False
                return True

            await eventually(comes_in)
        finally:
            for one in clients:
                await one.close()

        async def has_left() -> bool:
            return there(broker.accesses[0]).presences.by_key().get("user:alice") is None

        await eventually(has_left)


@on_a_loop
async def test_topics_under_a_prefix_hold_so_much_and_no_more(tmp_path: Path) -> None:
    """Without authentication, too: it is about topics, not about anybody."""
    async with (
        in_process_broker(tmp_path, nodes=1, tick_ms=200) as broker,
        Client(*broker.addresses) as client,
    ):
        for name in ("team-a.x", "team-a.y", "team-ab", "passing.team-a"):
            await client.create_topic(name, partitions=1, config=TopicConfig())
        await client.set_quota(QuotaSubject.TOPIC, "team-a", {QuotaKind.STORED_BYTES: 20_000})

        async def fill() -> None:
            for _ in range(100):
                await client.publish("team-a.x", KIB)

        with pytest.raises(StoredQuotaExceeded, match="the topics under 'team-a' hold") as refused:
            await fill()
        assert not refused.value.retriable
        stored = there(broker.accesses[0]).stored
        held = stored.held("team-a")
        assert 10_000 < held <= 20_000
        with pytest.raises(StoredQuotaExceeded):
            await client.publish("team-a.y", bytes(20_000 - held + 1))
        await client.publish("team-ab", bytes(50_000))
        await client.publish("team-a.x", KIB, mode=DeliveryMode.PERFORMANCE)
        (counted,) = (await client.describe_quota(QuotaSubject.TOPIC, "team-a")).counts
        assert (counted.limit, counted.kind) == (20_000, QuotaKind.STORED_BYTES)
        assert counted.used >= held

        # Deleting makes room; that is noticed within a few seconds.
        await client.delete_topic("team-a.x")

        async def has_room() -> bool:
            try:
                await client.publish("team-a.y", KIB)
            except StoredQuotaExceeded:
                return False
            return True

        await eventually(has_room)
        await client.set_quota(QuotaSubject.TOPIC, "team-a", {QuotaKind.STORED_BYTES: 1 << 30})
        await client.publish("team-a.y", bytes(50_000))


@on_a_loop
async def test_sizes_are_counted_where_they_are_and_refused_at_every_node(tmp_path: Path) -> None:
    """One copy of each partition, whichever node has it; and by staging nobody gets around it."""
    async with (
        in_process_broker(tmp_path, nodes=3, tick_ms=200) as broker,
        Client(*broker.addresses) as client,
    ):
        config = TopicConfig(replication=1)
        await client.create_topic("big", partitions=3, config=config)
        for number in range(30):
            await client.publish("big", bytes(10_000), partition=number % 3)
        await client.set_quota(QuotaSubject.TOPIC, "big", {QuotaKind.STORED_BYTES: 250_000})

        async def is_known() -> bool:
            held = [there(one).stored.held("big") for one in broker.accesses]
            return all(300_000 <= one < 330_000 for one in held)

        await eventually(is_known)
        for address in broker.addresses:
            async with Client(address) as other:
                with pytest.raises(StoredQuotaExceeded):
                    await other.publish("big", b"x", partition=1)
                with pytest.raises(StoredQuotaExceeded):
                    async with other.transaction("moves") as transaction:
                        await transaction.publish("big", b"x")


@on_a_loop
async def test_shares_follow_use_over_the_nodes_of_a_cluster(tmp_path: Path) -> None:
    async with cluster(tmp_path, nodes=3) as (broker, root):
        await root.set_quota(QuotaSubject.USER, "alice", {QuotaKind.REQUESTS: 60})
        await is_limited(broker, QuotaKind.REQUESTS)
        accesses = [there(one) for one in broker.accesses]
        async with Client(broker.addresses[0], user="alice", password=PASSWORD) as alice:

            def shares() -> list[float]:
                tolls = [one.tolls.find("user:alice") for one in accesses]
                found = [0.0 if one is None else one.share(QuotaKind.REQUESTS) for one in tolls]
                return [one or 0.0 for one in found]

            async def is_followed() -> bool:
                for _ in range(5):
                    await alice.list_topics()
                return max(shares()) > 50

            await eventually(is_followed)
            shown = await root.describe_quota(QuotaSubject.USER, "alice")
            assert {one.kind: one for one in shown.counts}[QuotaKind.REQUESTS].used > 0

            async def is_equal() -> bool:
                return all(abs(one - 20) < 1 for one in shares() if one)

            await eventually(is_equal)


@on_a_loop
async def test_a_fetch_over_the_quota_is_refused_and_nodes_are_never_counted(
    tmp_path: Path,
) -> None:
    async with cluster(tmp_path, nodes=2) as (broker, root):
        await root.publish("orders", bytes(100_000))
        await root.set_quota(QuotaSubject.DEFAULT, "", {QuotaKind.BYTES_OUT: 10_000})
        await is_limited(broker, QuotaKind.BYTES_OUT)
        access = there(broker.accesses[0])
        alice, nodes = access.broker_for(ALICE), access.for_nodes()
        wanted = FetchRequest(topic="orders", partition=0, offset=Offset(0))
        assert (await alice.fetch(wanted)).batches
        with pytest.raises(QuotaExceeded) as refused:
            await alice.fetch(wanted)
        assert refused.value.limit == "bytes_out"
        for _ in range(5):
            assert (await nodes.fetch(wanted)).batches
        assert nodes.toll is None
        with pytest.raises(AngariumError):
            await alice.set_quota(QuotaSubject.DEFAULT, "", {QuotaKind.BYTES_OUT: 1})
