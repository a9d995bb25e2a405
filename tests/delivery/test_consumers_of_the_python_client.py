"""Consumers of the Python client against real nodes, in this process and in others."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from tests.delivery.on_nodes import on_nodes

from angarium import Client, ClientSettings, GroupConfig, SyncClient
from angarium.cli.main import main
from angarium.errors import GroupFenced, NotFound, PreconditionFailed

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.client import Consumer
    from angarium.testing.broker import BrokerThread, InProcessBroker

PATIENT = ClientSettings(request_timeout_s=30.0, publish_timeout_s=30.0)


async def filled(client: Client, count: int, *, partitions: int = 1, keys: int = 0) -> None:
    """A topic "work" with numbered records, waiting to be consumed."""
    await client.create_topic("work", partitions=partitions)
    names = [b"k%d" % (n % keys) for n in range(count)] if keys else None
    await client.publish_batch("work", [b"%d" % n for n in range(count)], keys=names)


async def until(condition: Any, *, within_s: float = 60.0) -> None:
    async with asyncio.timeout(within_s):
        while not await condition():  # noqa: ASYNC110 (nobody there to set an event)
            await asyncio.sleep(0.02)


# --- sharing -------------------------------------------------------------------------------------


@on_nodes(1)
async def test_members_share_and_groups_do_not(broker: InProcessBroker) -> None:
    async with Client(*broker.addresses) as client:
        await filled(client, 1_000, partitions=2)
        seen: defaultdict[str, list[int]] = defaultdict(list)

        async def consume(group: str, member: str) -> None:
            async with client.group(group).consume("work", member=member, credit=20) as records:
                async for record in records:
                    seen[group].append(int(record.value or b""))
                    seen[f"{group}/{member}"].append(record.partition)
                    await asyncio.sleep(0)
                    record.ack_nowait()

        tasks = [
            asyncio.create_task(consume(group, member))
            for group in ("one", "two")
            for member in ("anna", "ben")
        ]

        async def is_done() -> bool:
            return len(seen["one"]) == len(seen["two"]) == 1_000

        await until(is_done)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for group in ("one", "two"):
            assert sorted(seen[group]) == list(range(1_000))
            assert seen[f"{group}/anna"]
            assert seen[f"{group}/ben"]


@on_nodes(1)
async def test_a_stream_keeps_order_over_failures_of_a_record(broker: InProcessBroker) -> None:
    async with Client(*broker.addresses) as client:
        await filled(client, 2_000)
        config = GroupConfig(backoff_min_ms=5, backoff_max_ms=5)
        done: list[int] = []
        group = client.group("g", kind="stream", config=config)
        async with group.consume("work", credit=200) as records, asyncio.timeout(60):
            async for record in records:
                number = int(record.value or b"")
                if number % 97 == 0 and record.attempt < 2:
                    record.nack_nowait(reason="once more")
                    continue
                done.append(number)
                record.ack_nowait()
                if number == 1_999:
                    break
            await records.flush()
        assert done == list(range(2_000))
        assert (await client.describe_group("g")).lag == 0


@on_nodes(1)
async def test_a_key_keeps_its_order_among_many_workers(broker: InProcessBroker) -> None:
    async with Client(*broker.addresses) as client:
        await filled(client, 300, keys=10)
        done: defaultdict[bytes | None, list[int]] = defaultdict(list)
        config = GroupConfig(backoff_min_ms=1, backoff_max_ms=2)

        async def consume() -> None:
            async with client.group("g", kind="key", config=config).consume("work") as records:
                async for record in records:
                    await asyncio.sleep(0.001)
                    number = int(record.value or b"")
                    if number % 31 == 0 and record.attempt == 1:
                        record.nack_nowait()
                        continue
                    done[record.key].append(number)
                    record.ack_nowait()

        tasks = [asyncio.create_task(consume()) for _ in range(3)]

        async def is_done() -> bool:
            return sum(map(len, done.values())) == 300

        await until(is_done)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert all(numbers == sorted(numbers) for numbers in done.values())


# --- leases --------------------------------------------------------------------------------------


def test_a_handler_that_computes_keeps_its_records(angarium_broker: BrokerThread) -> None:
    async def story() -> None:
        async with Client(*angarium_broker.addresses) as client:
            await filled(client, 50)
            config = GroupConfig(ack_timeout_ms=3_000)
            async with client.group("g", config=config).consume("work") as records:
                iterator = records.__aiter__()
                first = await anext(iterator)
                end = time.monotonic() + 6.5  # more than two leases, and the loop stands still
                while time.monotonic() < end:
                    sum(range(1_000))
                await first.ack()
                for _ in range(49):
                    record = await anext(iterator)
                    assert record.attempt == 1
                    record.ack_nowait()
                await records.flush()

    asyncio.run(story())


@on_nodes(1)
async def test_what_a_lost_consumer_had_goes_to_others(broker: InProcessBroker) -> None:
    async with Client(*broker.addresses) as one, Client(*broker.addresses) as other:
        await filled(one, 100)
        config = GroupConfig(backoff_min_ms=1, backoff_max_ms=1)
        first = one.group("g", config=config).consume("work", credit=60)
        batch = await first.next_batch()
        assert batch is not None
        await batch.ack(offsets=batch.offsets()[:10])
        assert await first.vanish() > 0
        seen = set()
        async with other.group("g").consume("work") as second, asyncio.timeout(60):
            async for record in second:
                seen.add(int(record.value or b""))
                record.ack_nowait()
                if len(seen) == 90:
                    break
        assert seen == set(range(10, 100))


# --- looking after groups ------------------------------------------------------------------------


@on_nodes(1)
async def test_a_group_is_moved_paused_and_forgotten(broker: InProcessBroker) -> None:
    async with Client(*broker.addresses) as client:
        await filled(client, 100)
        group = client.group("g")
        with pytest.raises(NotFound):
            await group.describe()
        async with group.consume("work") as records:
            in_hand = await records.next_batch()
            assert in_hand is not None
            assert [one.name for one in (await group.describe()).members] == [records.member]
            with pytest.raises(PreconditionFailed):
                await group.delete()
            (moved,) = await group.seek(70, dry_run=True)
            assert (moved.old_floor, moved.new_floor) == (0, 70)
            assert (await group.describe()).lag == 100
            await group.pause()
            await group.seek(70)
            with pytest.raises(GroupFenced):
                await in_hand.ack()
            assert (await group.describe()).paused
            await group.resume()
            again = await records.next_batch()
            assert again is not None
            assert again.offsets()[0] == 70
            await again.ack()
        altered = await group.alter(GroupConfig(max_attempts=2))
        assert altered.config.max_attempts == 2
        assert [one.name for one in await client.list_groups()] == ["g"]
        await group.delete()
        assert await client.list_groups() == ()


def test_the_command_line_consumes_and_looks_after_groups(
    angarium_broker: BrokerThread, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str, status: int = 0) -> str:
        servers = ",".join(angarium_broker.addresses)
        assert main([*words, "--servers", servers]) == status
        return capsys.readouterr().out

    run("pub", "jobs", "wash", "brush", "feed")
    said = run("sub", "jobs", "--group", "grooms", "--max", "2", "--format", "raw")
    assert set(said.split()) < {"wash", "brush", "feed"}
    described = json.loads(run("group", "describe", "grooms", "--format", "json"))
    assert described["lag"] == 1
    run("group", "seek", "grooms", "earliest")
    described = json.loads(run("group", "describe", "grooms", "--format", "json"))
    assert described["lag"] == 3
    run("group", "pause", "grooms")
    assert "paused" in run("group", "list")
    run("group", "delete", "grooms", "--yes")
    run("group", "describe", "grooms", status=3)


# --- failures ------------------------------------------------------------------------------------


@on_nodes(3)
async def test_consumers_go_on_while_nodes_go_away(broker: InProcessBroker) -> None:
    async with Client(*broker.addresses, settings=PATIENT) as client:
        await filled(client, 6_000, partitions=3)
        seen: list[int] = []

        async def consume(consumer: Consumer) -> None:
            async for record in consumer:
                await asyncio.sleep(0.001 if len(seen) < 3_000 else 0)
                seen.append(int(record.value or b""))
                record.ack_nowait()

        consumers = [client.group("g").consume("work", credit=100) for _ in range(2)]
        for consumer in consumers:
            await consumer.begin()
        tasks = [asyncio.create_task(consume(consumer)) for consumer in consumers]
        for at in range(3):
            before = len(seen)

            async def has_moved(before: int = before) -> bool:
                return len(seen) > before + 300 or len(seen) > 5_000

            await until(has_moved)
            await broker.stop_node(at)
            await asyncio.sleep(0.3)
            await broker.start_node(at)

        async def is_settled() -> bool:
            for consumer in consumers:
                with suppress(Exception):
                    await consumer.flush()
            return (await client.describe_group("g")).lag == 0

        await until(is_settled, within_s=60)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for consumer in consumers:
            await consumer.close()
        assert set(seen) == set(range(6_000))
        # At least once: what was in hand when a node went may come again, and little else.
        # A busy machine has more elections than nodes went away.
        assert len(seen) < 6_000 + 6 * 200


# --- apps ----------------------------------------------------------------------------------------

APP = """
import os
import time
from angarium import App, GroupRecord

app = App()

@app.subscriber("work", group="g", concurrency=4)
def handle(record: GroupRecord) -> None:
    time.sleep(0.02)
    os.write(1, record.value + b"\\n")  # at once and whole: four threads write
"""


def test_an_app_drains_when_it_is_told_to_stop(
    angarium_broker: BrokerThread, tmp_path: Path
) -> None:
    (tmp_path / "stable.py").write_text(APP, encoding="utf-8")
    with SyncClient(*angarium_broker.addresses) as client:
        client.publish_batch("work", [b"%d" % n for n in range(2_000)])
        program = subprocess.Popen(
            [sys.executable, "-m", "angarium", "run", "stable:app"],
            cwd=tmp_path,
            env={**os.environ, "ANGARIUM_SERVERS": ",".join(angarium_broker.addresses)},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert program.stdout is not None
            done = [int(program.stdout.readline()) for _ in range(50)]
            program.send_signal(signal.SIGTERM)
            # From the stream itself: what it has read ahead is not seen by `communicate`.
            rest = program.stdout.read()
            program.wait(timeout=120)
        finally:
            program.kill()
            program.wait()
        assert program.returncode == 0
        done += map(int, rest.split())
        assert len(done) < 2_000
        assert len(set(done)) == len(done)
        # What it was done with is settled, and nothing else.
        info = client.describe_group("g")
        assert info.lag == 2_000 - len(done)
        assert sum(one.pending for one in info.positions) == 0
