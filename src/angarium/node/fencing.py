"""Fences: where a topic is given partitions, its older ones stop taking what was dealt before.

Each leader has the fence of a new layout committed in its own partition, and tells the catalog when
it stands. Nobody has to remember anything: whoever leads next looks at the catalog and at the
partition, and goes on.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from angarium.errors import AngariumError
from angarium.ids import Index
from angarium.machine.catalog import Fenced
from angarium.machine.catalog.layouts import next_step
from angarium.node.led_partitions import propose

if TYPE_CHECKING:
    from angarium.ids import TopicId
    from angarium.machine.catalog import CatalogApplied, CatalogMachine
    from angarium.node.node import Node

_log = logging.getLogger(__name__)

ROUND_S = 0.1
"""How often it is looked whether a fence stands, while one is wanted."""

TOLD_AT_ONCE_MAX = 32
"""Fences of which the catalog is told at a time."""


class Fencing:
    """Looks after the partitions this node leads."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._changed = asyncio.Event()
        self._seen = Index(0)
        self._waiting: list[TopicId] = []
        """Topics whose newest layout is not in force yet."""

    async def run(self) -> None:
        """Set fences until cancelled."""
        self._node.catalog.watchers.append(self._wake)
        self._changed.set()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(ROUND_S if self._waiting else None):
                    await self._changed.wait()
            self._changed.clear()
            try:
                await self._round()
            except AngariumError as error:
                _log.debug("a fence waits: %s", error)
                await asyncio.sleep(ROUND_S)
                self._changed.set()

    def _wake(self, _: CatalogApplied | None) -> None:
        self._changed.set()

    async def _round(self) -> None:
        machine = self._node.catalog.machine
        if machine.applied_index != self._seen:
            self._seen = machine.applied_index
            topics = machine.topics.by_id.values()
            self._waiting = [topic.id for topic in topics if topic.unfenced]
        standing = [one for topic in self._waiting for one in await self._steps(machine, topic)]
        for at in range(0, len(standing), TOLD_AT_ONCE_MAX):
            told = standing[at : at + TOLD_AT_ONCE_MAX]
            await asyncio.gather(*map(self._node.catalog.submit, told))

    async def _steps(self, machine: CatalogMachine, topic_id: TopicId) -> list[Fenced]:
        """Propose fences where they are wanted; return those that the catalog is to hear of."""
        topic = machine.topics.by_id.get(topic_id)
        if topic is None:
            return []
        standing: list[Fenced] = []
        may_fence: bool | None = None
        for number in topic.unfenced:
            partition = machine.topics.partitions.get(topic.groups[number])
            replica = self._node.host.replicas.get(topic.groups[number])
            if partition is None or replica is None or not replica.may_serve:
                continue
            step = next_step(topic, partition, fenced=replica.partition.machine.layout)
            if isinstance(step, Fenced):
                standing.append(step)
            elif step is not None:
                if may_fence is None:
                    # All of them begin together: see `spanning`.
                    may_fence = await self._node.spanning.may_fence(topic)
                if may_fence and replica.may_serve:
                    propose(self._node, replica, step)
        return standing
