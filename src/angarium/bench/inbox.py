"""What came back: ids in the order of their arrival, and how long each record was under way."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections import defaultdict
from itertools import repeat
from operator import sub
from typing import TYPE_CHECKING

from angarium.bench.stamps import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.bench.drivers.port import Subscriber
    from angarium.bench.load import Window
    from angarium.bench.stamps import Stamps
    from angarium.ids import TopicPartition


class Inbox:
    """Takes everything a subscriber receives. Sixteen bytes are kept per record."""

    def __init__(self, stamps: Stamps) -> None:
        self.count = 0
        """Records received, probes included."""
        self.ids: defaultdict[TopicPartition, list[bytes]] = defaultdict(list)
        """By partition, columns of ids in the order of their arrival."""
        self._stamps = stamps
        self._arrivals: list[tuple[int, bytes]] = []

    async def take_from(self, subscriber: Subscriber) -> None:
        """Receive until the subscriber is closed."""
        while (received := await subscriber.receive()) is not None:
            self.put(received.partition, received.values)

    def put(self, partition: TopicPartition, values: Sequence[bytes | None]) -> None:
        """Take records of a partition that have just come."""
        now = time.monotonic_ns()
        ids, sent = self._stamps.columns(values)
        self.ids[partition].append(ids)
        self._arrivals.append((now, sent))
        self.count += len(values)

    async def until(self, count: int, *, timeout_s: float) -> bool:
        """Wait until so many records are here, for as long as more keep coming."""
        before, quiet_since = -1, time.monotonic()
        while self.count < count:
            if self.count != before:
                before, quiet_since = self.count, time.monotonic()
            elif time.monotonic() - quiet_since > timeout_s:
                return False
            await asyncio.sleep(0.01)
        return True

    def column(self, partition: TopicPartition) -> array[int]:
        """Return all ids that came from a partition, in order."""
        return numbers(b"".join(self.ids[partition]))

    def received_in(self, window: Window) -> int:
        """Return how many records arrived while the window was open."""
        return sum(
            len(sent) // 8 for now, sent in self._arrivals if window.start <= now < window.end
        )

    def rate(self) -> float:
        """Return the records per second from the first arrival to the last."""
        if len(self._arrivals) < 2:
            return 0.0
        first, last = self._arrivals[0][0], self._arrivals[-1][0]
        return self.count / max((last - first) / 1e9, 1e-9)

    def latencies(self, window: Window) -> array[int]:
        """Return the time from due to received of records that were due in the window, in ns."""
        found = array("q")
        for now, sent in self._arrivals:
            times = numbers(sent)
            if min(times) >= window.start:
                found.extend(map(sub, repeat(now), times))
            else:
                found.extend(now - time for time in times if time >= window.start)
        return found
