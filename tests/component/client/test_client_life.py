"""A client's life: finding a cluster, losing it, being cancelled, and closing in good order."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest
from tests.component.client.fake_broker import fake_cluster
from tests.component.client.fake_faults import never_answer
from tests.component.client.harness import settings, talking
from tests.on_a_loop import eventually

from angarium.client import Client
from angarium.errors import InvalidArgument, OutcomeUnknown
from angarium.wire import Unreachable, WrongCluster
from angarium.wire.operations import Operation

if TYPE_CHECKING:
    from tests.component.wire.running import Runner

NOBODY = "127.0.0.1:1"


def test_one_address_that_answers_is_enough_and_the_others_are_found(run: Runner) -> None:
    async def main() -> None:
        async with fake_cluster(3) as cluster:
            cluster.add_topic("t", partitions=3)
            servers = (NOBODY, f" {cluster.addresses[1]} , {NOBODY}")
            async with Client(*servers, settings=settings()) as client:
                for partition in range(3):
                    await client.publish("t", b"", partition=partition)
                assert [node.requests.count(Operation.PUBLISH) for node in cluster.nodes] == [1] * 3

    run(main())


def test_the_environment_may_say_where_the_cluster_is(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster:
            monkeypatch.setenv("ANGARIUM_SERVERS", f"{NOBODY},{cluster.addresses[0]}")
            async with Client(settings=settings()) as client:
                assert await client.is_healthy()

    run(main())


def test_when_nobody_answers_that_is_said_in_time(run: Runner) -> None:
    async def main() -> None:
        client = Client(NOBODY, settings=settings(request_timeout_s=2.0, publish_timeout_s=2.0))
        started = time.monotonic()
        with pytest.raises(Unreachable, match=f"no node can be reached at {NOBODY}; the last"):
            await client.connect()
        with pytest.raises(Unreachable):
            await client.publish("t", b"")
        assert not await client.is_healthy(timeout_s=0.1)
        assert time.monotonic() - started < 15
        await client.close()

    run(main())


def test_a_client_is_healthy_as_long_as_somebody_answers(run: Runner) -> None:
    async def main() -> None:
        async with talking(nodes=2) as (cluster, client):
            assert await client.is_healthy()
            await cluster.node(1).stop()
            assert await client.is_healthy()
            await cluster.node(2).stop()
            assert not await client.is_healthy(timeout_s=0.2)
            await cluster.node(2).start()
            assert await client.is_healthy()

    run(main())


def test_close_publishes_what_waits(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            cluster.latency_s = 0.01
            for number in range(500):
                client.publish_nowait("t", b"%d" % number)
            await client.close()
            assert len(cluster.topics["t"].partitions[0].values()) == 500
            for use in (client.publish("t", b""), client.list_topics(), client.flush()):
                with pytest.raises(Unreachable, match="closed"):
                    await use
            with pytest.raises(Unreachable):
                client.subscribe("t")
            await client.close()

    run(main())


def test_close_does_not_wait_for_ever(run: Runner) -> None:
    async def main() -> None:
        async with talking(close_timeout_s=0.1) as (cluster, client):
            await client.publish("t", b"")
            cluster.plan(Operation.PUBLISH, *[never_answer] * 10)
            waiting = asyncio.create_task(client.publish("t", b"x"))
            await eventually(lambda: client.buffered_bytes)
            await client.close()
            with pytest.raises((OutcomeUnknown, Unreachable)):
                await waiting

    run(main())


def test_closing_tells_everybody_who_waits_and_cancels_nobody(run: Runner) -> None:
    async def main() -> None:
        async with talking(close_timeout_s=0.1, buffered_bytes_max=1_000) as (cluster, client):
            await client.publish("t", b"")
            for operation in (Operation.PUBLISH, Operation.DESCRIBE_TOPIC):
                cluster.plan(operation, *[never_answer] * 10)
            waiting: list[asyncio.Task[object]] = [
                asyncio.create_task(client.publish("t", bytes(900))) for _ in range(5)
            ]
            waiting.append(asyncio.create_task(client.publish("another", b"")))
            waiting.append(asyncio.create_task(client.describe_topic("t")))
            await eventually(lambda: client.buffered_bytes > 1_000)
            await client.close()
            for job in waiting:
                with pytest.raises((OutcomeUnknown, Unreachable)):
                    await job

    run(main())


def test_idle_topics_beyond_the_bound_are_forgotten_without_harm(run: Runner) -> None:
    async def main() -> None:
        async with talking(topics_max=3) as (cluster, client):
            names = [f"topic-{number}" for number in range(8)]
            for name in names:
                cluster.add_topic(name)
            for turn in range(3):
                for name in names:
                    assert (await client.publish(name, b"%d" % turn)).offset == turn
            for name in names:
                assert cluster.topics[name].partitions[0].values() == [b"0", b"1", b"2"]
            assert len(client._publisher._topics) <= 3

    run(main())


def test_closing_ends_subscriptions(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (_, client):
            records = client.subscribe("t")
            await records.begin()
            waiting = asyncio.create_task(records.next_batch())
            await asyncio.sleep(0)
            await client.close()
            assert await waiting is None

    run(main())


def test_a_cancelled_publish_holds_up_nobody(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            await client.publish("t", b"0")
            cluster.latency_s = 0.02
            jobs = [asyncio.create_task(client.publish("t", b"%d" % at)) for at in range(20)]
            await eventually(lambda: client.buffered_bytes)
            for job in jobs[::2]:
                job.cancel()
            await asyncio.wait(jobs)
            assert all(job.result().offset is not None for job in jobs[1::2])
            await client.flush()
            assert client.buffered_bytes == 0

    run(main())


def test_a_cancelled_wait_for_room_gives_its_place_up(run: Runner) -> None:
    async def main() -> None:
        async with talking(buffered_bytes_max=1_000) as (cluster, client):
            await client.publish("t", b"")
            cluster.latency_s = 0.05
            jobs = [asyncio.create_task(client.publish("t", bytes(900))) for _ in range(8)]
            await eventually(lambda: client.buffered_bytes > 1_000)
            for job in jobs[3:6]:
                job.cancel()
            done, _ = await asyncio.wait(jobs)
            assert sum(job.cancelled() for job in done) == 3
            await client.flush()
            assert client.buffered_bytes == 0

    run(main())


def test_a_node_of_another_cluster_is_refused(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            client._reach.pool.cluster = "another"
            cluster.nodes[0].cut()
            with pytest.raises(WrongCluster):
                await client.list_topics()

    run(main())


@pytest.mark.parametrize("text", ["", "a:b", "a:0", "a:70000", ":7400", "a:1:2", "[::1", "[]:1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        Client(text or " ")


def test_addresses_are_understood_in_all_their_forms() -> None:
    from angarium.client.addresses import bootstrap_addresses, parsed_address

    assert parsed_address("node1") == ("node1", 7400)
    assert parsed_address("[::1]:9") == ("::1", 9)
    assert str(parsed_address("[::1]")) == "[::1]:7400"
    assert [str(one) for one in bootstrap_addresses(["a:1,b", "a:1"])] == ["a:1", "b:7400"]
    assert [str(one) for one in bootstrap_addresses([])] == ["127.0.0.1:7400"]


def test_a_client_that_is_closed_while_it_asks_who_it_is_leaves_nothing_behind(
    run: Runner,
) -> None:
    async def main() -> None:
        async with talking(close_timeout_s=0.05) as (cluster, client):
            cluster.plan(Operation.OPEN_PRODUCER, *[never_answer] * 9)
            publishing = asyncio.create_task(client.publish("t", b""))
            await eventually(lambda: Operation.OPEN_PRODUCER in cluster.nodes[0].requests)
            await client.close()
            with pytest.raises(Unreachable):
                await publishing
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())


def test_a_client_that_is_cut_off_while_it_asks_who_it_is_leaves_nothing_behind(
    run: Runner,
) -> None:
    async def main() -> None:
        async with talking(close_timeout_s=0.05, request_timeout_s=0.1) as (cluster, client):
            cluster.plan(Operation.OPEN_PRODUCER, *[never_answer] * 9)
            publishing = asyncio.create_task(client.publish("t", b""))
            await eventually(lambda: Operation.OPEN_PRODUCER in cluster.nodes[0].requests)
            publishing.cancel()
            await asyncio.wait([publishing])
            await cluster.nodes[0].stop()
            await client.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())


def test_a_client_that_is_closed_while_it_opens_a_series_leaves_nothing_behind(
    run: Runner,
) -> None:
    async def main() -> None:
        async with talking(close_timeout_s=0.05, producer="p") as (_, client):
            # This cluster knows no series: whoever asks is refused, or hears nothing in time.
            publishing = asyncio.create_task(client.publish_once("t", b"", sequence=1))
            await asyncio.sleep(0.01)
            publishing.cancel()
            await asyncio.wait([publishing])
            await client.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())
