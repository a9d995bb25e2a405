"""Load on a cluster with everything written down, and the verdict on it.

async with Load(cluster, topic="orders", partitions=2) as load:
    ...faults...
    verdict = await load.conclude()
assert not verdict.violations
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Self

from angarium.batch import Batch
from angarium.ids import Offset, RaftGroupId
from angarium.modes import DeliveryMode
from angarium.testing.checkers import violations
from angarium.testing.cluster.producers import Producer
from angarium.testing.cluster.subscribers import HighWaterReader, Subscriber
from angarium.testing.cluster.waiting import eventually
from angarium.testing.history import FinalLog, History, LogRecord, Result

if TYPE_CHECKING:
    from angarium.ids import NodeId
    from angarium.testing.checkers import Violation
    from angarium.testing.cluster.cluster import ProcessCluster
    from angarium.testing.cluster.contact import Contact
    from angarium.testing.history import Publish

WINDOW_MICROS: Final = 100_000
"""Availability is the share of such windows in which at least one publish was acknowledged."""

SETTLE_SECONDS_MAX: Final = 60.0
"""How long after the last fault everything may take to agree again."""


@dataclass(slots=True)
class Verdict:
    """What a run came to."""

    violations: list[Violation]
    acknowledged: int
    """Records whose publish was acknowledged."""
    stored: int
    """Records in the log."""
    unknown: int
    """Batches whose producer never learned what became of them."""
    lost_early: int
    """Records answered in EVENTUAL mode that are not in the log."""
    lost_age_micros: int
    """How long before the end of their leader the oldest of these was answered."""
    resumed: int
    """How often a subscriber had to go on at another node."""
    incidents: list[str] = field(default_factory=list)


class Load:
    """Producers, subscribers and readers on one topic."""

    def __init__(
        self,
        cluster: ProcessCluster,
        *,
        topic: str,
        partitions: int = 1,
        producers: int = 4,
        subscribers: int = 1,
        mode: DeliveryMode = DeliveryMode.CONSISTENT,
        pause_s: float = 0.02,
    ) -> None:
        """Prepare; `pause_s` is how long a producer rests after each answer."""
        self.history = History()
        self.topic = topic
        self._cluster = cluster
        self._mode = mode
        # A history knows groups; which numbers they have is nobody's business outside the nodes.
        self.groups = {partition: RaftGroupId(partition + 1) for partition in range(partitions)}
        self.producers = [
            self._producer(number, number % partitions, mode, pause_s)
            for number in range(producers)
        ]
        self.subscribers = [
            Subscriber(cluster, self.history, topic=topic, groups=self.groups, seed=number)
            for number in range(subscribers)
        ]
        self._reader = HighWaterReader(
            cluster, self.history, topic=topic, groups=self.groups, seed=0
        )
        self._publishing: list[asyncio.Task[None]] = []
        self._reading: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._publishing = [asyncio.create_task(one.run()) for one in self.producers]
        self._reading = [asyncio.create_task(one.run()) for one in self.subscribers]
        self._reading.append(asyncio.create_task(self._reader.run()))
        await self.acknowledged_after(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop([*self._publishing, *self._reading])

    # --- while it runs ----------------------------------------------------------------------

    async def acknowledged_after(
        self,
        moment: int,
        *,
        partition: int | None = None,
        above_term: int = 0,
        within_s: float = 60.0,
    ) -> int:
        """Wait for a publish begun after `moment` to be acknowledged; return when it was.

        Only one in `partition` counts, and one by a leader of a term above `above_term`.
        """
        group = None if partition is None else self.groups[partition]
        publishes = self.history.publishes

        async def answered() -> int:
            # They are written down in the order in which they began.
            first = bisect_left(publishes, moment, key=lambda one: one.invoked)
            answers = [
                one.completed
                for one in publishes[first:]
                if one.completed is not None
                and one.result is Result.OK
                and one.term > above_term
                and group in (None, one.group)
            ]
            return min(answers, default=0)

        what = f"a {self._mode.name} ack after {moment}"
        return await eventually(answered, within_s=within_s, what=what)

    def term_now(self, partition: int) -> int:
        """Return the term of a partition's latest answer."""
        group = self.groups[partition]
        return max((one.term for one in self.history.publishes if one.group == group), default=0)

    def longest_gap_s(self, start: int, end: int, *, partition: int) -> float:
        """Return the longest time between two acks of a partition, in seconds."""
        moments = [start, *sorted(self._answers(start, end, partition)), end]
        return max(after - before for before, after in pairwise(moments)) / 1_000_000

    def availability(self, start: int, end: int, *, partition: int) -> float:
        """Return the share of 100 ms windows in `[start, end)` with an ack of a partition."""
        windows = max(1, (end - start) // WINDOW_MICROS)
        answers = self._answers(start, start + windows * WINDOW_MICROS, partition)
        return len({(one - start) // WINDOW_MICROS for one in answers}) / windows

    def _answers(self, start: int, end: int, partition: int) -> list[int]:
        group = self.groups[partition]
        return [
            one.completed
            for one in self.history.publishes
            if one.group == group
            and one.result is Result.OK
            and one.completed is not None
            and start <= one.completed < end
        ]

    def acknowledged_records(self, start: int, end: int) -> int:
        """Return how many records were acknowledged in `[start, end)`."""
        return sum(
            len(one.values)
            for one in self.history.publishes
            if one.result is Result.OK and start <= (one.completed or 0) < end
        )

    # --- the end ----------------------------------------------------------------------------

    async def conclude(self) -> Verdict:
        """Stop publishing, let everything settle, read every replica's log, and judge."""
        for producer in self.producers:
            producer.active = False
        async with asyncio.timeout(SETTLE_SECONDS_MAX):
            await asyncio.gather(*self._publishing)
        await self._cluster.settled(topics=[self.topic], within_s=SETTLE_SECONDS_MAX)
        terms = await self._probe()
        ends = {partition: await self._agreed_end(partition) for partition in self.groups}
        for subscriber in self.subscribers:
            await eventually(
                lambda one=subscriber: one.reach(ends),  # type: ignore[misc]
                within_s=SETTLE_SECONDS_MAX,
                what=f"a subscriber is handed everything up to {ends}; it has {subscriber.next}",
            )
        await self._stop(self._reading)
        for partition in self.groups:
            await self._read_final_logs(partition, ends[partition])
        self._note_ended_tenures(terms)
        return self._verdict()

    async def _probe(self) -> dict[RaftGroupId, int]:
        """Have every partition acknowledge once more; return the terms they are in now."""
        terms = {}
        for partition, group in self.groups.items():
            prober = self._producer(1_000 + partition, partition, DeliveryMode.CONSISTENT, 0.0)
            async with asyncio.timeout(SETTLE_SECONDS_MAX):
                terms[group] = (await prober.publish()).term
        return terms

    async def _agreed_end(self, partition: int) -> int:
        """Wait until all replicas of a partition end at the same offset, and return it."""

        async def agreed() -> int | None:
            ends = set()
            for node in await self._replicas(partition):
                info = await self._cluster.contact(node).describe(self.topic)
                ends.add(info.partitions[partition].end_offset)
            return ends.pop() if len(ends) == 1 else None

        what = f"all replicas of {self.topic} partition {partition} end alike"
        end = await eventually(agreed, within_s=SETTLE_SECONDS_MAX, what=what)
        assert end is not None
        return end

    async def _replicas(self, partition: int) -> tuple[NodeId, ...]:
        info = await (await self._cluster.someone()).describe(self.topic)
        return info.partitions[partition].replicas

    async def _read_final_logs(self, partition: int, agreed_end: int) -> None:
        for node in await self._replicas(partition):
            contact = self._cluster.contact(node)

            # A node that has just started describes what others have, until its own replica may be
            # read; and that hears a moment later that the last records are committed.
            async def has_all(node: NodeId = node, contact: Contact = contact) -> bool:
                read = await contact.fetch(self.topic, partition, Offset(0))
                return read.node == node and read.end_offset >= agreed_end

            what = f"node {node} itself has {self.topic} partition {partition} up to {agreed_end}"
            await eventually(has_all, within_s=SETTLE_SECONDS_MAX, what=what)
            records: list[LogRecord] = []
            result = await contact.fetch(self.topic, partition, Offset(0))
            start, end, offset = result.start_offset, result.end_offset, result.start_offset
            while offset < end:
                result = await contact.fetch(self.topic, partition, offset)
                for data in result.batches:
                    batch = Batch.parse(data)
                    records += _records(batch, offset)
                    offset = batch.next_offset
            self.history.final.append(
                FinalLog(node, self.groups[partition], start, end, tuple(records))
            )

    def _note_ended_tenures(self, terms: dict[RaftGroupId, int]) -> None:
        # Who answered may have forwarded, so it is the term that names the leader: whoever led
        # in an earlier term than the present one has been lost or deposed.
        for one in self.history.publishes:
            if one.node is not None and one.term < terms[one.group]:
                self.history.ended_tenures.add((one.group, one.node, one.term))

    def _verdict(self) -> Verdict:
        history = self.history
        found = violations(history)
        lost = list(self._lost())
        ends = self._last_answers()
        ages = [ends[one.group, one.term] - (one.completed or 0) for one in lost]
        return Verdict(
            violations=found,
            acknowledged=sum(
                len(one.values) for one in history.publishes if one.result is Result.OK
            ),
            stored=sum({log.group: len(log.records) for log in history.final}.values()),
            unknown=sum(one.result is Result.INFO and not one.stored for one in history.publishes),
            lost_early=sum(len(one.values) for one in lost),
            lost_age_micros=max(ages, default=0),
            resumed=sum(one.resumed for one in self.subscribers),
            incidents=list(history.incidents),
        )

    def _lost(self) -> list[Publish]:
        held = {
            log.group: {record.offset: record.value for record in log.records}
            for log in self.history.final
        }
        return [
            one
            for one in self.history.publishes
            if one.result is Result.OK
            and any(
                held[one.group].get(offset) != value
                for offset, value in enumerate(one.values, one.base_offset)
            )
        ]

    def _last_answers(self) -> dict[tuple[RaftGroupId, int], int]:
        """Return, for each leader, when its last answer came: it was lost soon after."""
        last: dict[tuple[RaftGroupId, int], int] = {}
        for one in self.history.publishes:
            if one.result is Result.OK and one.completed is not None:
                key = (one.group, one.term)
                last[key] = max(last.get(key, 0), one.completed)
        return last

    # --- small parts ------------------------------------------------------------------------

    def _producer(
        self, number: int, partition: int, mode: DeliveryMode, pause_s: float
    ) -> Producer:
        return Producer(
            self._cluster,
            self.history,
            number=number,
            topic=self.topic,
            partition=partition,
            group=self.groups[partition],
            mode=mode,
            pause_s=pause_s,
        )

    async def _stop(self, tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _records(batch: Batch, start: int) -> list[LogRecord]:
    return [
        LogRecord(
            record.offset,
            record.value or b"",
            batch.producer_id,
            batch.epoch,
            batch.first_sequence + position,
        )
        for position, record in enumerate(batch)
        if record.offset >= start
    ]
