"""Subscribers that write down what they are handed, and readers that ask where the log ends."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from angarium.api import Start, StartAt
from angarium.batch import Batch, split
from angarium.errors import AngariumError
from angarium.ids import NodeId, Offset
from angarium.testing.cluster.waiting import now_micros
from angarium.testing.history import Fetch, HighWater
from angarium.wire.operations import Delivered, Ended, Operation, Told, Want, Wants

if TYPE_CHECKING:
    from collections.abc import Mapping

    from angarium.ids import RaftGroupId
    from angarium.testing.cluster.cluster import ProcessCluster
    from angarium.testing.history import History
    from angarium.wire import Frame, Stream


class Subscriber:
    """Follows all partitions of a topic from their beginning, on whichever node answers.

    When its node goes away it goes on at another one, from the offset after the last it was
    handed: no record may be missing, and none may come twice.
    """

    def __init__(
        self,
        cluster: ProcessCluster,
        history: History,
        *,
        topic: str,
        groups: Mapping[int, RaftGroupId],
        seed: int,
        node: NodeId | None = None,
    ) -> None:
        """Follow the partitions in `groups`, on `node` alone if one is given."""
        self.next: dict[int, int] = dict.fromkeys(groups, 0)
        """By partition, the offset that comes next."""
        self.resumed = 0
        """How often it went on at another node."""
        self.live = 0
        """Records handed over from memory, in PERFORMANCE mode."""
        self._cluster = cluster
        self._history = history
        self._topic = topic
        self._groups = groups
        self._only = node
        self._rng = random.Random(seed)

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            node = self._only or self._rng.choice(self._cluster.running or self._cluster.ids)
            try:
                await self._follow(node)
            except AngariumError:
                self.resumed += 1
            await asyncio.sleep(self._rng.uniform(0.01, 0.05))

    async def reach(self, ends: Mapping[int, int]) -> bool:
        """Tell whether everything below `ends` has been handed over."""
        return all(self.next[partition] >= end for partition, end in ends.items())

    async def _follow(self, node: NodeId) -> None:
        connection = await self._cluster.contact(node).connection(timeout_s=1.0)
        wants = tuple(
            Want(partition, self._topic, partition, Start(StartAt.OFFSET, self.next[partition]))
            for partition in self._groups
        )
        stream: Stream = connection.open_stream(Operation.SUBSCRIBE, Wants(wants))
        try:
            while (frame := await stream.receive()) is not None:
                self._take(node, frame)
        finally:
            stream.cancel()

    def _take(self, node: NodeId, frame: Frame) -> None:
        told: Told = frame.read(Told)  # type: ignore[arg-type]
        if isinstance(told, Ended):
            raise _WentAway(told.message)
        assert isinstance(told, Delivered)
        if told.live:
            self.live += sum(len(Batch.parse(one)) for one in split(frame.payload))
            return
        expected = self.next[told.number]
        records = tuple(
            (int(record.offset), record.value or b"")
            for batch in split(frame.payload)
            for record in Batch.parse(batch)
            if record.offset >= told.from_offset
        )
        if told.from_offset != expected or any(offset < expected for offset, _ in records):
            self._history.incidents.append(
                f"a subscriber at node {node} expected offset {expected} and was handed "
                f"{told.from_offset} and {[offset for offset, _ in records[:3]]} …"
            )
        now = now_micros()
        self._history.fetches.append(
            Fetch(self._groups[told.number], node, now, now, expected, records)
        )
        if records:
            self.next[told.number] = records[-1][0] + 1


class _WentAway(AngariumError):
    """The node cannot go on with a partition."""


class HighWaterReader:
    """Asks, through any node, where the committed log ends: never less than anybody knew."""

    def __init__(
        self,
        cluster: ProcessCluster,
        history: History,
        *,
        topic: str,
        groups: Mapping[int, RaftGroupId],
        seed: int,
    ) -> None:
        self._cluster = cluster
        self._history = history
        self._topic = topic
        self._groups = groups
        self._rng = random.Random(seed)
        self._seen = dict.fromkeys(groups, Offset(0))

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            node = self._rng.choice(self._cluster.running or self._cluster.ids)
            partition, group = self._rng.choice(sorted(self._groups.items()))
            invoked = now_micros()
            try:
                # From the last end that was seen, for it is not the records that matter here.
                result = await self._cluster.contact(node).fetch(
                    self._topic, partition, self._seen[partition], bytes_max=1, fresh=True
                )
            except AngariumError:
                await asyncio.sleep(0.02)
                continue
            self._seen[partition] = max(self._seen[partition], result.end_offset)
            self._history.high_waters.append(
                HighWater(group, node, invoked, now_micros(), result.end_offset)
            )
            await asyncio.sleep(self._rng.uniform(0.02, 0.1))
