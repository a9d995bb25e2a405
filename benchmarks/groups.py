"""Consumer groups beside a NATS pull consumer with acknowledgements, in one run.

    python -m benchmarks.groups [--records 60000] [--rounds 3] [--nodes 3]

Three nodes each, three replicas, files on the same disk, 100-byte records, one consumer in one
process. Rounds alternate, so that whatever else the machine does hits both; medians are printed.
Every record's id is checked: each was delivered, none twice, and all are settled at the end. NATS
acknowledges before it fsyncs; a group's position of ours is on the disks of a majority.

Needs the extra `peers`.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import nats
import uvloop
from benchmarks.peers.nats_jetstream import NatsCluster, made_stream
from nats.js.api import AckPolicy, ConsumerConfig

from angarium import Client
from angarium.bench.cluster import BenchCluster

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from angarium.client import Consumer

SIZE: Final = 100
FETCH: Final = 1_000
KEYS: Final = 1_000
"""Keys of the records that a key group consumes: as many are on loan at a time, at the most."""

TASKS: Final = 256
"""How many wait for their acknowledgements at a time, where these are awaited."""

BASELINES: Final = {"awaited": "nats-py pull, awaited", "": "nats-py pull, acks"}
"""What a line is compared with: whoever waits with whoever waits."""


def values_of(count: int) -> list[bytes]:
    """Return records that can be told apart."""
    return [b"%d" % number + b"." * (SIZE - len(str(number))) for number in range(count)]


def checked(seen: list[int], count: int) -> None:
    """Complain unless every record came once."""
    if sorted(seen) != list(range(count)):
        missing = count - len(set(seen))
        raise SystemExit(f"{missing} records are missing, {len(seen) - len(set(seen))} came twice")


class Ours:
    """Groups over a topic that is filled once."""

    def __init__(self, client: Client, count: int) -> None:
        self._client = client
        self._count = count
        self._round = 0

    async def fill(self) -> None:
        """Store the records that every round consumes."""
        values = values_of(self._count)
        keys = [b"%d" % (number % KEYS) for number in range(self._count)]
        for topic in ("work", "keyed"):
            await self._client.create_topic(topic)
            for first in range(0, self._count, 2_000):
                some = slice(first, first + 2_000)
                await self._client.publish_batch(
                    topic, values[some], keys=keys[some] if topic == "keyed" else None
                )

    async def stream_by_batch(self) -> float:
        """A stream group whose deliveries are acknowledged whole."""

        async def consume(consumer: Consumer, seen: list[int]) -> None:
            async for batch in consumer.batches():
                seen += map(_number, batch.values())
                batch.ack_nowait()
                if len(seen) >= self._count:
                    return

        return await self._timed("stream", consume, credit=10_000)

    async def stream_by_record(self) -> float:
        """A stream group whose records are acknowledged one by one."""
        return await self._timed("stream", self._one_by_one, credit=10_000)

    async def queue_by_record(self) -> float:
        """A queue group whose records are acknowledged one by one."""
        return await self._timed("queue", self._one_by_one, credit=10_000)

    async def key_by_record(self) -> float:
        """A key group over many keys, whose records are acknowledged one by one."""
        return await self._timed("key", self._one_by_one, credit=10_000, topic="keyed")

    async def queue_awaited(self) -> float:
        """A queue group with 256 tasks, each of which waits until its record is settled."""

        async def consume(consumer: Consumer, seen: list[int]) -> None:
            records = consumer.__aiter__()
            taking = asyncio.Lock()

            async def work() -> None:
                while len(seen) < self._count:
                    async with taking:
                        if len(seen) >= self._count:
                            return
                        record = await anext(records)
                        seen.append(_number(record.value))
                    await record.ack()

            await asyncio.gather(*(work() for _ in range(TASKS)))

        return await self._timed("queue", consume, credit=2_000)

    async def _one_by_one(self, consumer: Consumer, seen: list[int]) -> None:
        async for record in consumer:
            seen.append(_number(record.value))
            record.ack_nowait()
            if len(seen) == self._count:
                return

    async def _timed(
        self,
        kind: str,
        consume: Callable[[Consumer, list[int]], Awaitable[None]],
        *,
        credit: int,
        topic: str = "work",
    ) -> float:
        self._round += 1
        name = f"{kind}-{self._round}"
        seen: list[int] = []
        async with self._client.group(name, kind=kind).consume(topic, credit=credit) as consumer:
            started = time.perf_counter()
            await consume(consumer, seen)
            await consumer.flush()
            elapsed = time.perf_counter() - started
        checked(seen, self._count)
        lag = (await self._client.describe_group(name)).lag
        if lag:
            raise SystemExit(f"{lag} records were acknowledged and are not settled")
        return self._count / elapsed


class Nats:
    """A pull consumer over a stream that is filled once."""

    def __init__(self, client: Any, count: int) -> None:
        self._client = client
        self._count = count
        self._round = 0

    async def fill(self) -> None:
        """Store the records that every round consumes."""
        self._stream = await made_stream(self._client, "work")
        for value in values_of(self._count):
            await self._stream.publish_async("work", value)
        await self._stream.publish_async_completed()

    async def pull(self) -> float:
        """Fetch and acknowledge one by one, as nats-py does: without waiting for an answer."""
        return await self._pulled(is_awaited=False)

    async def pull_awaited(self) -> float:
        """The same, but each of 256 at a time waits until the server has taken it."""
        return await self._pulled(is_awaited=True)

    async def _pulled(self, *, is_awaited: bool) -> float:
        self._round += 1
        config = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, max_ack_pending=10_000, ack_wait=60)
        durable = f"round-{self._round}"
        reader = await self._stream.pull_subscribe("work", durable, config=config)
        seen: list[int] = []
        started = time.perf_counter()
        while len(seen) < self._count:
            fetch = min(TASKS if is_awaited else FETCH, self._count - len(seen))
            messages = await reader.fetch(fetch, timeout=10)
            seen += [_number(message.data) for message in messages]
            if is_awaited:
                await asyncio.gather(*(message.ack_sync(timeout=10) for message in messages))
            else:
                for message in messages:
                    await message.ack()
        await self._client.flush()
        elapsed = time.perf_counter() - started
        checked(seen, self._count)
        return self._count / elapsed


async def main(options: argparse.Namespace) -> None:
    """Measure, and print a table."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="groups-")))
        cluster = await stack.enter_async_context(
            BenchCluster(folder / "ours", nodes=options.nodes)
        )
        peer = NatsCluster(folder / "nats", sync_always=False)
        stack.push_async_callback(asyncio.to_thread, peer.stop)
        await peer.start()
        client = await stack.enter_async_context(Client(cluster.servers))
        connection = await nats.connect(peer.servers)
        stack.push_async_callback(connection.close)
        ours, theirs = Ours(client, options.records), Nats(connection, options.records)
        await ours.fill()
        await theirs.fill()
        rounds: dict[str, list[float]] = {}
        for _ in range(options.rounds):
            for name, measure in (
                ("nats-py pull, acks", theirs.pull),
                ("nats-py pull, awaited", theirs.pull_awaited),
                ("stream group, batches", ours.stream_by_batch),
                ("stream group, records", ours.stream_by_record),
                ("queue group, records", ours.queue_by_record),
                ("key group, records", ours.key_by_record),
                ("queue group, awaited", ours.queue_awaited),
            ):
                rounds.setdefault(name, []).append(await measure())
    print(f"{'consumed and acknowledged':<28} {'records/s':>10} {'lowest':>10} {'ratio':>7}")
    for name, found in rounds.items():
        median = statistics.median(found)
        waits = "awaited" if name.endswith("awaited") else ""
        baseline = statistics.median(rounds[BASELINES[waits]])
        print(f"{name:<28} {median:>10,.0f} {min(found):>10,.0f} {median / baseline:>7.2f}")


def _number(value: bytes | None) -> int:
    return int((value or b"").partition(b".")[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=3)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(parser.parse_args()))
