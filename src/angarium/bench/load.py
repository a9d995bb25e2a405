"""The workers: each publishes, waits for its acknowledgement, and publishes again.

A worker's calls are numbered. Call `c` of worker `w` carries the records `c * batch` up to
`(c + 1) * batch` to partition `(w + c) % partitions`, so that what was attempted is known from one
number per worker, and only calls that failed have to be written down.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from angarium.bench.stamps import PROBE, record_id
from angarium.errors import AngariumError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.bench.drivers.port import Publisher
    from angarium.bench.plan import Plan
    from angarium.bench.stamps import Stamps
    from angarium.ids import TopicPartition

FAILURE_PAUSE_S: Final = 0.05
"""How long a worker waits after a call that failed, so as not to storm a cluster in trouble."""


@dataclass(frozen=True, slots=True)
class Window:
    """The time that counts, in ns of the monotonic clock."""

    start: int
    end: int

    @classmethod
    def of(cls, plan: Plan) -> Window:
        """Return the window that begins after the warm-up from now."""
        start = time.monotonic_ns() + int(plan.warmup_s * 1e9)
        return cls(start, start + int(plan.duration_s * 1e9))

    @property
    def seconds(self) -> float:
        """How long it is."""
        return (self.end - self.start) / 1e9


@dataclass(slots=True)
class Work:
    """What one worker did."""

    worker: int
    calls: int = 0
    """Calls made: numbers 0 to `calls` were attempted."""
    failed: dict[int, str] = field(default_factory=dict)
    """Calls that were not acknowledged, and the code of the error."""
    acknowledged_in_window: int = 0
    """Calls acknowledged while the window was open."""
    latencies: array[int] = field(default_factory=lambda: array("q"))
    """Of calls due in the window, from when they were due to the acknowledgement, in ns."""


def partition_of(worker: int, call: int, partitions: int) -> int:
    """Return the number of the partition that a call's records go to."""
    return (worker + call) % partitions


class Worker:
    """One of many that publish at the same time."""

    def __init__(
        self,
        number: int,
        publisher: Publisher,
        *,
        plan: Plan,
        partitions: Sequence[TopicPartition],
        stamps: Stamps,
    ) -> None:
        self.work = Work(number)
        self._publisher = publisher
        self._plan = plan
        self._partitions = partitions
        self._stamps = stamps

    async def run(self, window: Window, begin: int) -> None:
        """Publish from `begin` until the window ends; the last call is waited for."""
        interval = self._interval()
        due = begin + interval * self.work.worker // self._plan.workers
        while True:
            if interval:
                due += interval
                now = time.monotonic_ns()
                if due > now:
                    await asyncio.sleep((due - now) / 1e9)
            else:
                due = time.monotonic_ns()
            if due >= window.end:
                return
            await self._call(due, window)

    def _interval(self) -> int:
        """Return the ns from one of this worker's calls to the next; 0 without a rate."""
        plan = self._plan
        return 0 if plan.rate is None else int(plan.batch * plan.workers / plan.rate * 1e9)

    async def _call(self, due: int, window: Window) -> None:
        work, batch = self.work, self._plan.batch
        call = work.calls
        work.calls += 1
        partition = self._partitions[partition_of(work.worker, call, len(self._partitions))]
        # The stamp is the moment at which the record was due: delivery is measured from there.
        values = self._stamps.records(record_id(work.worker, call * batch), batch, due)
        try:
            await self._publisher.publish(partition, values)
        except AngariumError as error:
            work.failed[call] = error.code
            await asyncio.sleep(FAILURE_PAUSE_S)
            return
        now = time.monotonic_ns()
        if window.start <= now < window.end:
            work.acknowledged_in_window += 1
        if due >= window.start:
            work.latencies.append(now - due)


async def probe(publisher: Publisher, partitions: Sequence[TopicPartition], stamps: Stamps) -> None:
    """Publish a record to every partition, outside the load, so that every way is known."""
    for number, partition in enumerate(partitions):
        values = stamps.records(record_id(PROBE, number), 1, time.monotonic_ns())
        await publisher.publish(partition, values)
