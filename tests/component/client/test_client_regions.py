"""A client that knows where it is: whom it asks, where it publishes, and what it does when its
region is lost."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.component.client.fake_broker import fake_cluster
from tests.component.client.fake_faults import drop_after
from tests.component.client.fake_partition import Partition
from tests.component.client.harness import settings, taken
from tests.on_a_loop import eventually

from angarium.api import TopicConfig
from angarium.client import Client
from angarium.client.region import REGION_VARIABLE
from angarium.errors import HomeLost, LayoutChanged, OutcomeUnknown
from angarium.wire.operations import Operation, PublishHeader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from tests.component.client.fake_broker import Cluster, Node
    from tests.component.wire.running import Runner

    from angarium.wire import Request

REGIONS = ("eu", "us", "ap")


@asynccontextmanager
async def three_regions(
    *, region: str | None, partitions: int = 6, config: Any = None, **changes: Any
) -> AsyncIterator[tuple[Cluster, Client]]:
    """A node in each of three regions, the topic "t" homed there, and a client."""
    chosen = {"placement": "homed", "regions": REGIONS} if config is None else config
    async with fake_cluster(3) as cluster:
        cluster.regions = {1: "eu", 2: "us", 3: "ap"}
        cluster.add_topic("t", partitions=partitions, config=TopicConfig(**chosen))
        wanted = settings(region=region, **changes)
        async with Client(cluster.addresses[0], settings=wanted) as client:
            yield cluster, client


def counts(cluster: Cluster) -> list[int]:
    return [len(one.values()) for one in cluster.topics["t"].partitions]


def lose(cluster: Cluster, *partitions: int) -> None:
    for number in partitions:
        cluster.topics["t"].partitions[number].leader = None
        cluster.topics["t"].partitions[number].trouble = "its region is gone"


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await condition():  # noqa: ASYNC110 (what it asks is elsewhere)
            await asyncio.sleep(0.05)


def test_records_stay_in_the_region(run: Runner) -> None:
    async def main() -> None:
        async with three_regions(region="us") as (cluster, client):
            for number in range(20):
                await client.publish("t", b"", key=str(number))
                await client.publish("t", b"")
            await client.publish_batch("t", [b""] * 20, keys=[str(n) for n in range(20)])
            found = counts(cluster)
            assert sum(found) == 60
            assert min(found[1], found[4]) > 0
            assert not any(found[at] for at in (0, 2, 3, 5))
            await client.publish("t", b"", partition=0)
            assert counts(cluster)[0] == 1, "whoever names a partition gets it"

    run(main())


def test_the_environment_names_the_region(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REGION_VARIABLE, "ap")

    async def main() -> None:
        async with three_regions(region=None) as (cluster, client):
            await client.publish("t", b"")
            assert sum(counts(cluster)[at] for at in (2, 5)) == 1
        async with three_regions(region="eu") as (cluster, client):
            await client.publish("t", b"")
            assert sum(counts(cluster)[at] for at in (0, 3)) == 1, "settings win"

    run(main())


def test_the_nearest_region_is_measured(run: Runner) -> None:
    async def main() -> None:
        async with fake_cluster(3) as cluster:
            cluster.regions = {1: "eu", 2: "us", 3: "ap"}
            cluster.distances_s = {1: 0.2, 2: 0.2}
            config = TopicConfig(placement="homed", regions=REGIONS)
            cluster.add_topic("t", partitions=3, config=config)
            wanted = settings(region="auto")
            async with Client(cluster.addresses[0], settings=wanted) as client:
                await client.publish("t", b"")
                assert counts(cluster) == [0, 0, 1]

    run(main())


def test_nodes_of_the_region_are_asked_and_read_from(run: Runner) -> None:
    async def main() -> None:
        async with three_regions(region="us", partitions=3) as (cluster, client):
            asked = [node.requests.count(Operation.LIST_TOPICS) for node in cluster.nodes]
            for _ in range(5):
                await client.list_topics()
            now = [node.requests.count(Operation.LIST_TOPICS) for node in cluster.nodes]
            assert [b - a for a, b in zip(asked, now, strict=True)] == [0, 5, 0]
            # Node 1 leads partition 0; the one in this region has a replica of it.
            await client.publish("t", b"x", partition=0)
            assert [one.value for one in await client.fetch("t", 0)] == [b"x"]
            fetches = [node.requests.count(Operation.FETCH) for node in cluster.nodes]
            assert fetches == [0, 1, 0]
            async with client.subscribe("t", start="earliest") as records:
                assert (await taken(records, 1))[0].value == b"x"
            # Its node dies: reading goes on elsewhere.
            await cluster.node(2).stop()
            assert [one.value for one in await client.fetch("t", 0)] == [b"x"]

    run(main())


def test_a_lost_home_has_stand_ins_and_is_come_back_to(run: Runner) -> None:
    async def main() -> None:
        async with three_regions(region="us") as (cluster, client):
            await client.publish("t", b"1", key="k")
            home = next(at for at, found in enumerate(counts(cluster)) if found)
            lose(cluster, 1, 4)
            receipts = [await client.publish("t", b"2", key="k") for _ in range(5)]
            assert {one.partition for one in receipts} == {home + 1}, "the next region's"
            await client.publish_batch("t", [b"3"] * 10, keys=["k"] * 10)
            assert counts(cluster)[home + 1] == 15
            for number, leader in ((1, 2), (4, 2)):
                cluster.topics["t"].partitions[number].leader = leader

            async def is_home() -> bool:
                return (await client.publish("t", b"4", key="k")).partition == home

            await until(is_home)

    run(main())


def test_what_waits_is_handed_over_once(run: Runner) -> None:
    async def main() -> None:
        async with three_regions(region="us", partitions=3) as (cluster, client):
            await client.publish("t", b"first")
            partition = cluster.topics["t"].partitions[1]
            partition.leader = None  # an election, as far as anybody knows
            waiting = [asyncio.create_task(client.publish("t", str(n).encode())) for n in range(30)]
            await asyncio.sleep(0.1)
            assert not any(one.done() for one in waiting)
            lose(cluster, 1)
            async with asyncio.timeout(30):
                receipts = await asyncio.gather(*waiting)
            assert {one.partition for one in receipts} == {2}
            stored = cluster.topics["t"].partitions[2].values()
            assert sorted(one or b"" for one in stored) == sorted(
                str(n).encode() for n in range(30)
            )

    run(main())


def test_records_of_a_key_keep_their_order_when_they_are_handed_over(run: Runner) -> None:
    async def main() -> None:
        async with three_regions(region="us", partitions=3) as (cluster, client):
            await client.publish("t", b"first", key="k")
            cluster.topics["t"].partitions[1].leader = None  # an election, for all anybody knows
            asked = asyncio.Event()

            async def answer_late(node: Node, request: Request) -> bool:
                asked.set()
                await asyncio.sleep(0.5)
                return False

            cluster.plan(Operation.PUBLISH, answer_late)
            earlier = asyncio.create_task(client.publish("t", b"earlier", key="k"))
            await asked.wait()
            lose(cluster, 1)
            await client._publisher.sending.metadata.refresh("t")
            later = asyncio.create_task(client.publish("t", b"later", key="k"))
            many = asyncio.create_task(client.publish_batch("t", [b"many"], keys=["k"]))
            async with asyncio.timeout(30):
                assert [(await one).partition for one in (earlier, later)] == [2, 2]
                assert [one.partition for one in await many] == [2]
            assert cluster.topics["t"].partitions[2].values() == [b"earlier", b"later", b"many"]
            # Nothing is left that has to go before: straight there.
            await client.publish("t", b"last", key="k")
            assert cluster.topics["t"].partitions[2].values()[-1] == b"last"

    run(main())


def test_what_names_its_partition_waits_there_when_others_are_handed_over(run: Runner) -> None:
    async def main() -> None:
        changes = {"publish_timeout_s": 4.0, "attempt_timeout_s": 30.0}
        async with three_regions(region="us", partitions=3, **changes) as (cluster, client):
            await client.publish("t", b"first")
            cluster.topics["t"].partitions[1].leader = None
            held, is_lost = cluster.node(2).requests, asyncio.Event()

            async def hold(node: Node, request: Request) -> bool:
                await is_lost.wait()
                return False

            cluster.plan(Operation.PUBLISH, hold, hold, hold, hold)
            too_late = asyncio.create_task(client.publish("t", b"too late", partition=1))
            given_up_at = asyncio.get_running_loop().time() + 4.0
            await asyncio.sleep(2.0)
            named = asyncio.create_task(client.publish("t", b"named", partition=1))
            free = asyncio.create_task(client.publish("t", b"free"))
            behind = asyncio.create_task(client.publish("t", b"behind", partition=1))
            await eventually(lambda: held.count(Operation.PUBLISH) == 4)
            await asyncio.sleep(given_up_at + 0.1 - asyncio.get_running_loop().time())
            lose(cluster, 1)
            await client._publisher.sending.metadata.refresh("t")
            is_lost.set()
            with pytest.raises(OutcomeUnknown):
                await too_late
            assert (await free).partition == 2
            cluster.topics["t"].partitions[1].leader = 2
            assert [(await one).partition for one in (named, behind)] == [1, 1]
            assert cluster.topics["t"].partitions[1].values()[-2:] == [b"named", b"behind"]

    run(main())


def test_a_batch_that_may_be_stored_is_sent_nowhere_else(run: Runner) -> None:
    async def main() -> None:
        changes = {"publish_timeout_s": 2.0, "attempt_timeout_s": 0.2}
        async with three_regions(region="us", partitions=3, **changes) as (cluster, client):
            await client.publish("t", b"first")

            async def store_and_be_lost(node: Node, request: Request) -> bool:
                lose(cluster, 1)
                return await drop_after(node, request)

            cluster.plan(Operation.PUBLISH, store_and_be_lost)
            unknown = asyncio.create_task(client.publish("t", b"unknown"))
            await eventually(lambda: len(cluster.topics["t"].partitions[1].values()) == 2)
            later = await client.publish("t", b"later")
            assert later.partition == 2
            with pytest.raises(OutcomeUnknown):
                await unknown
            everything = [v or b"" for one in cluster.topics["t"].partitions for v in one.values()]
            assert sorted(everything) == [b"first", b"later", b"unknown"]

    run(main())


def test_what_a_fence_refused_at_home_is_stored_once_elsewhere(run: Runner) -> None:
    async def main() -> None:
        async with three_regions(region="us", partitions=3) as (cluster, client):
            topic = cluster.topics["t"]
            await client.publish("t", b"first", key="k")
            is_lost, is_stored = asyncio.Event(), asyncio.Event()

            async def hold(node: Node, request: Request) -> bool:
                await is_lost.wait()
                return False

            async def meet_a_fence(node: Node, request: Request) -> bool:
                await is_lost.wait()
                raise LayoutChanged("dealt by layout 0")

            async def store_once_in_doubt(node: Node, request: Request) -> bool:
                if request.read(PublishHeader).partition != 2 or is_stored.is_set():
                    return False
                is_stored.set()
                await drop_after(node, request)
                # The home is back, and the layout in force.
                topic.partitions.append(Partition(leader=1))
                topic.layouts, topic.layout = (3, 4), 1
                topic.partitions[1].leader = 2
                for one in topic.partitions[:3]:
                    one.fenced = 1
                return True

            topic.partitions[1].leader = None
            plan = [hold, meet_a_fence, *[store_once_in_doubt] * 100]
            cluster.plan(Operation.PUBLISH, *plan)
            named = asyncio.create_task(client.publish("t", b"named", partition=1))
            await eventually(lambda: cluster.node(2).requests.count(Operation.PUBLISH) == 2)
            keyed = asyncio.create_task(client.publish("t", b"keyed", key="k"))
            behind = asyncio.create_task(client.publish("t", b"behind", partition=1))
            await eventually(lambda: cluster.node(2).requests.count(Operation.PUBLISH) == 3)
            lose(cluster, 1)
            await client._publisher.sending.metadata.refresh("t")
            is_lost.set()
            async with asyncio.timeout(60):
                await asyncio.gather(named, keyed, behind)
            found = [v or b"" for one in topic.partitions for v in one.values()]
            assert sorted(found) == [b"behind", b"first", b"keyed", b"named"]

    run(main())


def test_a_topic_may_refuse_what_has_no_home(run: Runner) -> None:
    async def main() -> None:
        config = {"placement": "homed", "regions": REGIONS, "home_lost": "refuse"}
        async with three_regions(region="us", partitions=3, config=config) as (cluster, client):
            await client.publish("t", b"1")
            lose(cluster, 1)
            with pytest.raises(HomeLost, match="home_lost=next"):
                await client.publish("t", b"2")
            assert counts(cluster) == [0, 1, 0]
            cluster.topics["t"].partitions[1].leader = 2

            async def is_taken() -> bool:
                try:
                    await client.publish("t", b"3")
                except HomeLost:
                    return False
                return True

            await until(is_taken)

    run(main())


def test_keys_in_global_order_wait_for_their_partition(run: Runner) -> None:
    async def main() -> None:
        config = {"placement": "homed", "regions": REGIONS, "key_order": "global"}
        async with three_regions(region="us", partitions=3, config=config) as (cluster, client):
            homes = {(await client.publish("t", b"", key=str(n))).partition for n in range(30)}
            assert homes == {0, 1, 2}
            lose(cluster, 1)
            key = next(
                str(n)
                for n in range(30)
                if client._publisher._topics["t"].layout.of_key(str(n).encode()) == 1
            )
            waiting = asyncio.create_task(client.publish("t", b"waits", key=key))
            assert (await client.publish("t", b"goes")).partition == 2
            assert not waiting.done()
            cluster.topics["t"].partitions[1].leader = 2
            assert (await waiting).partition == 1

    run(main())
