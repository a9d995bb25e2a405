"""One measurement from its topics to its report."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Final

from angarium.api import TopicConfig
from angarium.bench.catch_up import seconds_to_read, seconds_to_receive
from angarium.bench.consuming import Consuming
from angarium.bench.inbox import Inbox
from angarium.bench.latency import latency
from angarium.bench.load import Window, Worker, probe
from angarium.bench.plan import Plan, Protocol, Scenario
from angarium.bench.report import SYNC_POLICIES, GroupFigures, NodeUsage, Report
from angarium.bench.resources import own_usage, usage
from angarium.bench.stamps import Stamps
from angarium.bench.verify import verdict
from angarium.bench.ways import check_targets, driver_of
from angarium.client import Client
from angarium.errors import AngariumError, NotFound
from angarium.ids import TopicPartition
from angarium.modes import DeliveryMode
from angarium.wire import DeadlineExceeded

if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence

    from angarium.api import TopicInfo
    from angarium.bench.drivers.port import Driver, Publisher
    from angarium.bench.latency import Latency
    from angarium.bench.load import Work
    from angarium.bench.resources import Usage, Watched
    from angarium.bench.verify import Verdict

READY_SECONDS_MAX: Final = 30.0
"""Partitions that have no leader by then are given up."""

QUIET_SECONDS_MAX: Final = 10.0
"""Records that have not come when nothing came for so long count as lost."""


async def measure(plan: Plan, servers: str, watched: Sequence[Watched] = ()) -> Report:
    """Carry out `plan` on the cluster at `servers`; its topics are made and removed again.

    `watched` are the nodes' processes, if they run on this machine.
    """
    async with Client(*servers.split(",")) as client, AsyncExitStack() as stack:
        status = await client.cluster_status()
        await check_targets(plan)
        topics = await _made_topics(plan, client, stack)
        partitions = [
            TopicPartition(topic.name, one.number) for topic in topics for one in topic.partitions
        ]
        driver = driver_of(plan, servers, topics, status.nodes)
        stack.push_async_callback(driver.close)
        run = _Run(plan, client, driver, partitions, watched)
        if plan.scenario.has_group:
            run.consuming = Consuming(plan, client, driver, partitions, run.inbox)
            stack.push_async_callback(run.consuming.close)
        await run.publish()
        if plan.scenario is Scenario.CATCH_UP:
            await run.read()
        if plan.scenario.has_group:
            await run.settle()
        await run.check()
        replicas = min(len(one.replicas) for topic in topics for one in topic.partitions)
        return run.report(nodes=len(status.nodes), replicas=replicas)


class _Run:
    """The phases of a measurement, and what they found."""

    def __init__(
        self,
        plan: Plan,
        client: Client,
        driver: Driver,
        partitions: Sequence[TopicPartition],
        watched: Sequence[Watched],
    ) -> None:
        self._plan = plan
        self._client = client
        self._driver = driver
        self._partitions = partitions
        self._watched = watched
        self._stamps = Stamps(plan.size)
        self.inbox = Inbox(self._stamps)
        self.consuming: Consuming | None = None
        self._group: GroupFigures | None = None
        self._end_to_end: Latency | None = None
        self._works: list[Work] = []
        self._window = Window(0, 0)
        self._before: list[Usage | None] = []
        self._after: list[Usage | None] = []
        self._client_usage = (0.0, 0)
        self._committed: int | None = None
        """How many records were committed in the window, where that is another question."""
        self._reading: tuple[float, float | None] | None = None
        """How long it took to read everything, as batches and as records."""

    async def publish(self) -> None:
        """Let the workers run; in the scenario live, receive at the same time."""
        async with AsyncExitStack() as stack:
            if self._plan.scenario is Scenario.LIVE:
                await self._receive(stack)
            publishers = [await self._publisher(stack) for _ in range(self._plan.connections)]
            await self._open_ways(publishers)
            workers = [
                Worker(
                    number,
                    publishers[number % len(publishers)],
                    plan=self._plan,
                    partitions=self._partitions,
                    stamps=self._stamps,
                )
                for number in range(self._plan.workers)
            ]
            self._works = [worker.work for worker in workers]
            begin = time.monotonic_ns()
            self._window = Window.of(self._plan)
            async with asyncio.TaskGroup() as load:
                load.create_task(self._watch())
                if self.consuming is not None:
                    load.create_task(self.consuming.run(self._window))
                for worker in workers:
                    load.create_task(worker.run(self._window, begin))
            if self._plan.scenario is Scenario.LIVE:
                await self.inbox.until(self._expected, timeout_s=self._patience_s)

    async def read(self) -> None:
        """Read everything from its beginning; by the Python client as batches and as records."""
        topics = sorted({partition.topic for partition in self._partitions})
        count = self._expected
        is_wire = self._plan.protocol is Protocol.WIRE and self._plan.sub_target is None
        self._before = [usage(one) for one in self._watched]
        own = own_usage()
        if is_wire:
            took = await seconds_to_read(self._client, topics, count, as_records=False)
        else:
            took = await seconds_to_receive(self._driver, self._partitions, count)
        self._client_usage = _since(own)
        self._after = [usage(one) for one in self._watched]
        as_records = None
        if is_wire:
            as_records = await seconds_to_read(self._client, topics, count, as_records=True)
        self._reading = (took, as_records)

    async def settle(self) -> None:
        """Let the group work off what is left."""
        assert self.consuming is not None
        ended = time.monotonic_ns()
        if self._plan.scenario is Scenario.ISOLATION:
            # What is stuck comes afterwards; the question is how the others fared meanwhile.
            self._end_to_end = latency(self.inbox.latencies(self._window))
        if self._plan.scenario is Scenario.DISK:
            await self.consuming.begin()
        unsettled = await self.consuming.finish(quiet_s=QUIET_SECONDS_MAX)
        self._end_to_end = self._end_to_end or latency(self.inbox.latencies(self._window))
        self._group = GroupFigures(
            consumers=self._plan.consumers,
            consumed_per_s=round(self.inbox.rate(), 1),
            drain_s=round((time.monotonic_ns() - ended) / 1e9, 3),
            unsettled=unsettled,
            in_hand_at_crash=self.consuming.in_hand,
        )

    async def check(self) -> None:
        """Make sure that everything is in the inbox: what was only stored is read back."""
        if self._plan.scenario is Scenario.LIVE or self._plan.scenario.has_group:
            return
        async with AsyncExitStack() as stack:
            await self._receive(stack)
            await self.inbox.until(self._expected, timeout_s=QUIET_SECONDS_MAX)

    def report(self, *, nodes: int, replicas: int) -> Report:
        """Return what was found."""
        plan = self._plan
        found = verdict(
            [self.inbox.column(partition) for partition in self._partitions],
            self._works,
            batch=plan.batch,
        )
        mode = plan.mode.name.lower()
        may_lose = plan.mode is DeliveryMode.PERFORMANCE
        records, seconds = self._records_and_seconds()
        is_live = plan.scenario is Scenario.LIVE
        return Report(
            scenario=plan.scenario,
            protocol=plan.protocol,
            mode=mode,
            sync=SYNC_POLICIES[mode],
            nodes=nodes,
            replicas=replicas,
            topics=plan.topics,
            partitions=len(self._partitions),
            workers=plan.workers,
            connections=plan.connections,
            batch=plan.batch,
            size=plan.size,
            rate=plan.rate,
            seconds=round(seconds, 3),
            records=records,
            records_per_s=round(records / seconds, 1),
            mb_per_s=round(records * plan.size / seconds / 1e6, 2),
            committed_per_s=None
            if self._committed is None
            else round(self._committed / seconds, 1),
            received_per_s=round(self.inbox.received_in(self._window) / seconds, 1)
            if is_live
            else None,
            as_records_per_s=self._as_records_per_s(records),
            publish=None if self._reading else latency(self._publish_latencies()),
            end_to_end=latency(self.inbox.latencies(self._window)) if is_live else self._end_to_end,
            client_cpu_s=round(self._client_usage[0], 3),
            client_wakeups=self._client_usage[1],
            usage=tuple(map(_used, self._before, self._after)),
            failures=dict(Counter(code for work in self._works for code in work.failed.values())),
            verdict=found,
            is_right=self._is_right(found) and (may_lose or not found.lost),
            group=self._group,
        )

    def _is_right(self, found: Verdict) -> bool:
        if self._group is None:
            return found.is_clean
        # A queue has no order, and what was in hand in a crash may come twice.
        is_repeated = found.repeated > self._group.in_hand_at_crash
        return not (found.invented or is_repeated or self._group.unsettled)

    # --- phases -----------------------------------------------------------------------------

    async def _publisher(self, stack: AsyncExitStack) -> Publisher:
        publisher = await self._driver.publisher()
        stack.push_async_callback(publisher.close)
        return publisher

    async def _receive(self, stack: AsyncExitStack) -> None:
        # What is stored is received from its beginning, for the topics are new.
        from_start = self._plan.mode is not DeliveryMode.PERFORMANCE
        subscriber = await self._driver.subscriber(self._partitions, from_start=from_start)
        receiving = asyncio.create_task(self.inbox.take_from(subscriber))

        async def stop() -> None:
            await subscriber.close()
            receiving.cancel()
            with suppress(asyncio.CancelledError):
                await receiving

        stack.push_async_callback(stop)

    async def _open_ways(self, publishers: Sequence[Publisher]) -> None:
        """Publish through every publisher to every partition until the subscriber hears of each."""
        for publisher in publishers:
            await probe(publisher, self._partitions, self._stamps)
        if self._plan.scenario is not Scenario.LIVE:
            return
        deadline = time.monotonic() + READY_SECONDS_MAX
        while len(self.inbox.ids) < len(self._partitions):
            # In PERFORMANCE mode the leader may not have heard of the subscriber yet.
            await asyncio.sleep(0.05)
            if self._plan.mode is DeliveryMode.PERFORMANCE:
                await probe(publishers[0], self._partitions, self._stamps)
            if time.monotonic() > deadline:
                raise DeadlineExceeded("a record that was published did not come back")

    async def _watch(self) -> None:
        """Look at the nodes when the window opens and when it closes."""
        await _sleep_until(self._window.start)
        self._before = [usage(one) for one in self._watched]
        own = own_usage()
        is_eventual = self._plan.mode is DeliveryMode.EVENTUAL
        committed = await self._end_of_log() if is_eventual else 0
        await _sleep_until(self._window.end)
        if is_eventual:
            self._committed = await self._end_of_log() - committed
        self._after = [usage(one) for one in self._watched]
        self._client_usage = _since(own)

    async def _end_of_log(self) -> int:
        """Return how many records are committed, in all partitions together."""
        ends = (self._client.find_offset(*partition, "latest") for partition in self._partitions)
        return sum(await asyncio.gather(*ends))

    # --- sums -------------------------------------------------------------------------------

    @property
    def _patience_s(self) -> float:
        return 1.0 if self._plan.mode is DeliveryMode.PERFORMANCE else QUIET_SECONDS_MAX

    @property
    def _expected(self) -> int:
        """How many records have to come back at least: the acknowledged ones and the probes."""
        calls = sum(work.calls - len(work.failed) for work in self._works)
        return calls * self._plan.batch + len(self._partitions) * self._plan.connections

    def _records_and_seconds(self) -> tuple[int, float]:
        if self._reading is not None:
            return self._expected, self._reading[0]
        calls = sum(work.acknowledged_in_window for work in self._works)
        return calls * self._plan.batch, self._window.seconds

    def _as_records_per_s(self, records: int) -> float | None:
        if self._reading is None or self._reading[1] is None:
            return None
        return round(records / self._reading[1], 1)

    def _publish_latencies(self) -> list[int]:
        columns: list[array[int]] = [work.latencies for work in self._works]
        return [one for column in columns for one in column]


# --- topics and ways -----------------------------------------------------------------------------


async def _made_topics(plan: Plan, client: Client, stack: AsyncExitStack) -> list[TopicInfo]:
    """Make the topics, have them removed in the end, and wait until every partition is led."""
    names = [f"bench-{secrets.token_hex(4)}-{number}" for number in range(plan.topics)]
    config = TopicConfig(replication=plan.replication, mode=plan.mode)
    for name in names:
        await client.create_topic(name, partitions=plan.partitions, config=config)
        stack.push_async_callback(_remove_topic, client, name)
    deadline = time.monotonic() + READY_SECONDS_MAX
    found = []
    for name in names:
        while not _is_led(topic := await client.describe_topic(name)):
            if time.monotonic() > deadline:
                raise DeadlineExceeded(f"topic {name} has partitions without a leader")
            await asyncio.sleep(0.02)
        found.append(topic)
    return found


async def _remove_topic(client: Client, name: str) -> None:
    with suppress(AngariumError):
        await client.delete_topic(name)


def _is_led(topic: TopicInfo) -> bool:
    return all(one.leader is not None for one in topic.partitions)


async def _sleep_until(moment: int) -> None:
    await asyncio.sleep(max(0.0, (moment - time.monotonic_ns()) / 1e9))


def _since(before: tuple[float, int]) -> tuple[float, int]:
    now = own_usage()
    return now[0] - before[0], now[1] - before[1]


def _used(before: Usage | None, after: Usage | None) -> NodeUsage:
    if before is None or after is None:
        raise NotFound("a node's process ended while it was measured")
    disk = after.disk_bytes
    return NodeUsage(
        cpu_s=round(after.cpu_s - before.cpu_s, 3),
        wakeups=after.wakeups - before.wakeups,
        memory_mb=round(after.memory_bytes / 1e6, 1),
        disk_mb=None if disk is None else round(disk / 1e6, 1),
    )
