"""A topic that has lost the leaders of some partitions is read as far as it has others."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from tests.component.client.fake_broker import LOCALHOST, fake_cluster
from tests.component.client.harness import settings, taken
from tests.on_a_loop import eventually

from angarium.api import Interest
from angarium.client import Client, SyncClient
from angarium.client.contract.subscribing import RemoteSubscription
from angarium.client.reading.starts import LATEST
from angarium.client.routes import Routes
from angarium.errors import AngariumError, DeadlineExceeded, NotFound, NotLeader, Unreachable
from angarium.node.timekeeping import wall_clock
from angarium.wire import Hello, Role, dial

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.component.client.fake_broker import Cluster
    from tests.component.wire.running import Runner

    from angarium.wire import Connection

GONE = "t[1] has 0 of 3 replicas: it cannot take records until 2 are there"


@asynccontextmanager
async def without_a_home(
    *, lost: tuple[int, ...] = (1,), trouble: str = GONE, request_timeout_s: float = 20.0
) -> AsyncIterator[tuple[Cluster, Client, list[AngariumError]]]:
    """A topic of three partitions with a record in each, of which some have no leader."""
    told: list[AngariumError] = []
    async with fake_cluster() as cluster:
        cluster.add_topic("t", partitions=3)
        chosen = settings(request_timeout_s=request_timeout_s)
        async with Client(*cluster.addresses, settings=chosen, on_wait=told.append) as client:
            for number in range(3):
                await client.publish_batch("t", [b"old"], partition=number)
            for number in lost:
                leave(cluster, number, trouble=trouble)
            yield cluster, client, told


def leave(cluster: Cluster, number: int, *, trouble: str = GONE) -> None:
    partition = cluster.topics["t"].partitions[number]
    partition.leader, partition.trouble = None, trouble


@pytest.mark.parametrize("start", ["live", "latest", "earliest"])
def test_the_others_are_read_and_it_joins_once_it_is_led(run: Runner, start: str) -> None:
    async def main() -> None:
        async with (
            without_a_home() as (cluster, client, told),
            asyncio.timeout(60),
            client.subscribe("t", start=start) as records,
        ):
            assert records.waiting_for.keys() == {("t", 1)}
            assert GONE in str(records.waiting_for["t", 1])
            assert records.partitions == [("t", 0), ("t", 2)]
            for number in (0, 2):
                await client.publish_batch("t", [b"new"], partition=number)
            # It is a time by which it finds out what is new, once it can.
            cluster.topics["t"].partitions[1]._times_from = wall_clock()
            old = [] if start != "earliest" else [(0, b"old"), (2, b"old")]
            got = await taken(records, len(old) + 2)
            assert sorted((one.partition, one.value) for one in got) == sorted(
                [*old, (0, b"new"), (2, b"new")]
            )
            cluster.topics["t"].partitions[1].leader = 1
            await client.publish_batch("t", [b"new"], partition=1)
            expected = [b"new"] if start != "earliest" else [b"old", b"new"]
            got = await taken(records, len(expected))
            assert [(one.partition, one.value) for one in got] == [(1, one) for one in expected]
            await eventually(lambda: not records.waiting_for)
            (why,) = told
            assert str(why).startswith("t[1] cannot be read yet")
            assert GONE in str(why)

    run(main())


def test_a_partition_that_is_lost_later_is_waited_for_and_goes_on_where_it_was(
    run: Runner,
) -> None:
    async def main() -> None:
        async with (
            without_a_home(lost=()) as (cluster, client, told),
            client.subscribe("t", start="earliest") as records,
        ):
            assert len(await taken(records, 3)) == 3
            assert not records.waiting_for
            leave(cluster, 1)
            await cluster.end("t", 1, NotLeader(GONE))
            await eventually(lambda: records.waiting_for.keys() == {("t", 1)})
            await client.publish_batch("t", [b"new"], partition=0)
            (one,) = await taken(records, 1)
            assert (one.partition, one.value) == (0, b"new")
            cluster.topics["t"].partitions[1].leader = 1
            await client.publish_batch("t", [b"new"], partition=1)
            (one,) = await taken(records, 1)
            assert (one.partition, one.value, one.offset) == (1, b"new", 1)
            await eventually(lambda: not records.waiting_for)
            assert len(told) == 1

    run(main())


def test_an_election_that_lasts_is_not_waited_for_without_an_end(run: Runner) -> None:
    async def main() -> None:
        lasting = without_a_home(trouble="", request_timeout_s=4.0)
        async with lasting as (_, client, _), client.subscribe("t") as records:
            assert records.waiting_for.keys() == {("t", 1)}

    run(main())


def test_where_nothing_can_be_read_it_is_refused_with_the_reason(run: Runner) -> None:
    async def main() -> None:
        gone = without_a_home(lost=(0, 1, 2), request_timeout_s=2.0)
        async with gone as (cluster, client, _):
            with pytest.raises(NotLeader, match="0 of 3 replicas"):
                await client.subscribe("t").begin()
            with pytest.raises(NotFound):
                await client.subscribe("nothing").begin()
            await cluster.nodes[0].stop()
            with pytest.raises((Unreachable, DeadlineExceeded)):
                await client.subscribe("t").begin()

    run(main())


def test_the_client_without_asyncio_does_the_same(run: Runner) -> None:
    def read(address: str) -> list[tuple[int, bytes | None]]:
        with SyncClient(address, settings=settings()) as client:
            records = client.subscribe("t", start="earliest")
            assert records.waiting_for.keys() == {("t", 1)}
            each = iter(records)
            got = [next(each) for _ in range(2)]
            records.close()
            return sorted((one.partition, one.value) for one in got)

    async def main() -> None:
        async with without_a_home() as (cluster, _, _):
            got = await asyncio.to_thread(read, cluster.addresses[0])
            assert got == [(0, b"old"), (2, b"old")]

    run(main())


def test_over_the_contract_a_partition_may_end_alone_where_that_is_allowed(run: Runner) -> None:
    async def main() -> None:
        async with without_a_home(lost=()) as (cluster, client, _):
            for alone in (True, False):
                connection = await dial(
                    host=LOCALHOST, port=cluster.nodes[0].port, hello=Hello(role=Role.CLIENT)
                )
                subscription = RemoteSubscription(
                    connection,
                    [
                        Interest(topic="t", partition=number, start=LATEST, may_fail_alone=alone)
                        for number in range(2)
                    ],
                )
                await eventually(lambda: bool(cluster.partition("t", 1).listeners))
                await cluster.end("t", 1, NotLeader(GONE))
                each = aiter(subscription)
                if alone:
                    ended = await anext(each)
                    assert (ended.partition, ended.batches) == (1, ())
                    assert isinstance(ended.failure, NotLeader)
                    await client.publish_batch("t", [b"new"], partition=0)
                    assert (await anext(each)).partition == 0
                else:
                    with pytest.raises(NotLeader):
                        await anext(each)
                await subscription.close()
                await connection.close(timeout_s=1.0)

    run(main())


@pytest.mark.parametrize("is_silent", [True, False], ids=["silent", "refusing"])
def test_a_node_that_cannot_be_dialled_delays_its_own_partitions_alone(
    run: Runner, monkeypatch: pytest.MonkeyPatch, *, is_silent: bool
) -> None:
    found = Routes.reading_connection

    async def dialled(routes: Routes, topic: str, partition: int) -> Connection:
        if partition == 1:
            if is_silent:
                await asyncio.Event().wait()
            raise Unreachable("planted")
        return await found(routes, topic, partition)

    async def main() -> None:
        async with without_a_home(lost=(), request_timeout_s=4.0) as (cluster, client, _):
            monkeypatch.setattr(Routes, "reading_connection", dialled)
            records = client.subscribe("t", start="earliest")
            beginning = asyncio.ensure_future(records.begin())
            for number in (0, 2):
                listeners = cluster.partition("t", number).listeners
                await eventually(lambda listeners=listeners: bool(listeners))  # type: ignore[misc]
            if not is_silent:
                await beginning
                assert records.waiting_for.keys() == {("t", 1)}
                got = await taken(records, 2)
                assert sorted(one.partition for one in got) == [0, 2]
                monkeypatch.undo()
                (one,) = await taken(records, 1)
                assert (one.partition, one.value) == (1, b"old")
                await eventually(lambda: not records.waiting_for)
            beginning.cancel()
            await asyncio.wait([beginning])
            await records.close()

    run(main())


def test_over_the_contract_a_dropped_partition_is_forgotten(run: Runner) -> None:
    async def main() -> None:
        async with without_a_home(lost=()) as (cluster, _, _):
            connection = await dial(
                host=LOCALHOST, port=cluster.nodes[0].port, hello=Hello(role=Role.CLIENT)
            )
            want = Interest(topic="t", partition=0, start=LATEST, may_fail_alone=True)
            subscription = RemoteSubscription(connection, [want])
            await subscription.drop("t", 0)
            assert not subscription._alone
            await subscription.close()
            connection.abort()

    run(main())
