"""The loads, the same for every peer. Each is checked: what was acknowledged is read back by id.

Whoever publishes counts acknowledgements; nobody counts what was merely sent. Records that are
missing, came twice or were never sent end the run: a rate of lost records is no rate.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.bench.stamps import Stamps, numbers, record_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from benchmarks.peers.port import PeerClient, Reader, Setting

SIZE: Final = 100
BATCH: Final = 2_000
BATCH_WORKERS: Final = 8

READ_SECONDS_MAX: Final = 120.0
"""Who has not seen everything by then will not, or cannot keep up by far."""

WARM_UP_S: Final = 0.2
"""At a rate, what is due before this is checked and not timed, as `angarium bench` does it."""

LATE_SECONDS_MAX: Final = 10.0
"""A worker that is so late at a rate publishes no more."""


class Published(NamedTuple):
    """Records per second, acknowledged and then read by a new reader."""

    acknowledged_per_s: float
    read_per_s: float


class Delays(NamedTuple):
    """From the moment at which records were due to that at which they were delivered."""

    p50_ms: float
    p99_ms: float


class Shapes:
    """The loads on one peer under one promise. Every method returns its one figure."""

    def __init__(self, setting: Setting, *, seconds: float) -> None:
        self._setting = setting
        self._seconds = seconds
        self._stamps = Stamps(SIZE)
        self._topics = 0

    async def batched(self) -> Published:
        """Let a few workers hand over many at a time, then read it all."""

        async def call(client: PeerClient, topic: str, first: int) -> int:
            values = self._stamps.records(first, BATCH, time.monotonic_ns())
            await client.publish_all(topic, values)
            return BATCH

        return await self._published(call, workers=BATCH_WORKERS, connections=1)

    async def awaiting(self, workers: int, *, connections: int) -> float:
        """Let each worker wait for its acknowledgement; return acknowledged per second."""
        published = await self._published(self._one, workers=workers, connections=connections)
        return published.acknowledged_per_s

    async def one_by_one_p50_ms(self) -> float:
        """Publish one at a time; return the median time to its acknowledgement."""
        times: list[float] = []

        async def call(client: PeerClient, topic: str, first: int) -> int:
            began = time.perf_counter()
            count = await self._one(client, topic, first)
            times.append(time.perf_counter() - began)
            return count

        await self._published(call, workers=1, connections=1)
        return statistics.median(times) * 1e3

    async def end_to_end(self, *, topics: int, rate: float, workers: int = 0) -> Delays:
        """Publish at a rate, by a worker for each topic or by more; return the times to delivery.

        A record counts from the moment it was due: a slow answer does not hide those it delayed.
        Whoever cannot keep up is not waited for without end, and its delays say so.
        """
        workers = max(workers, topics)
        count = int(rate * (WARM_UP_S + self._seconds)) // workers
        async with AsyncExitStack() as stack:
            client, names = await stack.enter_async_context(self._opened(topics))
            reading = await self._setting.client(is_alone=True)
            stack.push_async_callback(reading.close)
            reader = await reading.reader(names)
            stack.push_async_callback(reader.close)
            start = time.monotonic_ns() + 200_000_000
            timed = start + int(WARM_UP_S * 1e9)
            sent: list[int] = []

            async def publish(number: int) -> None:
                for turn in range(count):
                    due = start + int((turn * workers + number) / rate * 1e9)
                    early_s = (due - time.monotonic_ns()) / 1e9
                    if early_s < -LATE_SECONDS_MAX:
                        return
                    await asyncio.sleep(max(0.0, early_s))
                    id_ = record_id(number, turn)
                    value = self._stamps.records(id_, 1, due)[0]
                    await client.publish(names[number % topics], value)
                    sent.append(id_)

            delays: list[float] = []
            seen: list[bytes] = []

            async def receive() -> None:
                while True:
                    some = await reader.some()
                    now = time.monotonic_ns()
                    stamped = numbers(self._stamps.columns(some)[1])
                    delays.extend((now - due) / 1e6 for due in stamped if due >= timed)
                    seen.extend(some)

            receiving = asyncio.create_task(receive())
            async with asyncio.timeout(READ_SECONDS_MAX):
                await asyncio.gather(*map(publish, range(workers)))
                while len(seen) < len(sent) and not receiving.done():  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
            receiving.cancel()
            with suppress(asyncio.CancelledError):
                await receiving
            self._check(seen, sent)
        delays.sort()
        return Delays(statistics.median(delays), delays[len(delays) * 99 // 100])

    # --- the parts --------------------------------------------------------------------------

    async def _one(self, client: PeerClient, topic: str, first: int) -> int:
        await client.publish(topic, self._stamps.records(first, 1, time.monotonic_ns())[0])
        return 1

    async def _published(
        self,
        call: Callable[[PeerClient, str, int], Awaitable[int]],
        *,
        workers: int,
        connections: int,
    ) -> Published:
        is_alone = workers == connections
        async with self._opened(is_alone=is_alone) as (first, [topic]):
            further = [
                await self._setting.client(is_alone=is_alone) for _ in range(connections - 1)
            ]
            clients = [first, *further]
            # A client's first publish also connects, asks for the leader, and the like.
            opening = [record_id(workers + number, 0) for number in range(connections)]
            await asyncio.gather(
                *(self._one(one, topic, id_) for one, id_ in zip(clients, opening, strict=True))
            )
            started = time.perf_counter()
            end = started + self._seconds

            async def work(number: int) -> int:
                count = 0
                while time.perf_counter() < end:
                    client = clients[number % connections]
                    count += await call(client, topic, record_id(number, count))
                return count

            counts = await asyncio.gather(*map(work, range(workers)))
            published_s = time.perf_counter() - started
            await asyncio.gather(*(one.close() for one in further))
            acknowledged = [
                record_id(number, turn)
                for number, count in enumerate(counts)
                for turn in range(count)
            ]
            started = time.perf_counter()
            reader = await first.reader([topic])
            try:
                read = await _read(reader, len(acknowledged) + len(opening))
                read_s = time.perf_counter() - started
            finally:
                await reader.close()  # or a thread of its client may read for ever
            self._check(read, acknowledged + opening)
            return Published(len(acknowledged) / published_s, len(read) / read_s)

    @asynccontextmanager
    async def _opened(
        self, topics: int = 1, *, is_alone: bool = False
    ) -> AsyncIterator[tuple[PeerClient, list[str]]]:
        """Make topics, and connect to them."""
        self._topics += 1
        names = [f"round-{os.getpid()}-{self._topics}-{number}" for number in range(topics)]
        for name in names:
            await self._setting.make_topic(name)
        client = await self._setting.client(is_alone=is_alone)
        try:
            yield client, names
        finally:
            await client.close()
            for name in names:
                await self._setting.drop_topic(name)

    def _check(self, read: Sequence[bytes], expected: Sequence[int]) -> None:
        got = sorted(numbers(self._stamps.columns(read)[0]))
        if got != sorted(expected):
            missing, strange = len(set(expected) - set(got)), len(set(got) - set(expected))
            raise SystemExit(
                f"{self._setting.key}: of {len(expected)} acknowledged records {missing} are"
                f" missing, {strange} were never sent, {len(got) - len(set(got))} came twice"
            )


async def _read(reader: Reader, count: int) -> list[bytes]:
    read: list[bytes] = []
    try:
        async with asyncio.timeout(READ_SECONDS_MAX):
            while len(read) < count:
                read += await reader.some()
    except TimeoutError:
        late = f"within {READ_SECONDS_MAX:g} s {len(read)} came of {count} acknowledged records"
        raise SystemExit(late) from None
    return read
