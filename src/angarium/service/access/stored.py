"""How much the topics under a prefix hold, and that nobody publishes beyond what they may.

Sizes are those that the partitions' replicas know, one copy of each; they are looked at every few
seconds, and meanwhile what is published through this node is added. So a prefix may end up above
its limit by what the other nodes take in between two looks. What the cluster writes itself, as dead
letters, is not refused; nor is what passes in PERFORMANCE mode, which is not stored.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from angarium.api.quotas import QuotaKind
from angarium.errors import AngariumError, StoredQuotaExceeded
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import RaftGroupId
    from angarium.machine.catalog import Partition
    from angarium.security.quotas import StoredLimit
    from angarium.service.own_node import OwnNode
    from angarium.service.partitions import Partitions
    from angarium.telemetry.throttling import ThrottleMeters

LOOK_S: Final = 2.0
"""How often sizes are looked at, while there is a quota for what is stored."""

LOOKED_AT_ONCE: Final = 500
"""Partitions whose sizes are added up in one go; others get their turn in between."""

TOPICS_MAX: Final = 4_096
"""Topics for which it is remembered which limits they are under. At the bound all are forgotten."""


class StoredQuotas:
    """What is stored under each prefix that has a quota, as far as this node knows."""

    def __init__(self, node: OwnNode, partitions: Partitions, meters: ThrottleMeters) -> None:
        self._node = node
        self._partitions = partitions
        self._meters = meters
        self._limits: tuple[StoredLimit, ...] = ()
        self._over: dict[str, tuple[StoredLimit, ...]] = {}
        """By topic: the limits that it is under."""
        self._held: dict[str, int] = {}
        """By prefix, as of the last look."""
        self._since: dict[str, int] = {}
        """By prefix: what was published through this node since."""
        self._sizes: dict[RaftGroupId, int] = {}
        """What each partition was last said to hold."""
        self._news = asyncio.Event()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is limited."""
        return not self._limits

    def set_limits(self, limits: Sequence[StoredLimit]) -> None:
        """Let other limits count from now on."""
        if self._limits != tuple(limits):
            self._limits = tuple(limits)
            self._over.clear()
            self._news.set()

    def check(self, topic: str, size: int, mode: DeliveryMode | None) -> None:
        """Raise `StoredQuotaExceeded` if what is about to be stored is too much."""
        over = self._limits_of(topic)
        if not over or self._mode(topic, mode) is DeliveryMode.PERFORMANCE:
            return
        for limit in over:
            held = self.held(limit.prefix)
            if held + size > limit.amount:
                self._meters.refuses(QuotaKind.STORED_BYTES)
                raise StoredQuotaExceeded(
                    QuotaKind.STORED_BYTES.value,
                    f"the topics under {limit.prefix or '*'!r} hold {held} of {limit.amount} "
                    f"bytes; nothing more is stored in {topic!r} until there is room",
                )

    def add(self, topic: str, size: int) -> None:
        """Count what was taken to be stored."""
        for limit in self._limits_of(topic):
            self._since[limit.prefix] = self._since.get(limit.prefix, 0) + size

    def held(self, prefix: str) -> int:
        """Return what is stored under a prefix, as far as this node knows."""
        return self._held.get(prefix, 0) + self._since.get(prefix, 0)

    async def run(self) -> None:
        """Look at sizes, as long as the node runs."""
        while True:
            if self.is_empty:
                self._held.clear()
                self._since.clear()
                self._sizes.clear()
                self._news.clear()
                await self._news.wait()
            self._news.clear()
            with suppress(AngariumError):  # without a catalog what was known still counts
                await self.look()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._news.wait()

    async def look(self) -> None:
        """Add up what is stored under each prefix."""
        limits, catalog = self._limits, self._node.catalog
        before = dict(self._since)
        waiting: list[tuple[str, Partition]] = [
            (topic.name, partition)
            for topic in list(catalog.topics())
            if any(one.covers(topic.name) for one in limits)
            for partition in catalog.partitions_of(topic)
        ]
        counted = dict.fromkeys((one.prefix for one in limits), 0)
        sizes: dict[RaftGroupId, int] = {}
        for at in range(0, len(waiting), LOOKED_AT_ONCE):
            some = waiting[at : at + LOOKED_AT_ONCE]
            told = await self._partitions.stored_bytes([one for _, one in some])
            for topic, partition in some:
                group = partition.group
                sizes[group] = told.get(group, self._sizes.get(group, 0))
                for limit in limits:
                    if limit.covers(topic):
                        counted[limit.prefix] += sizes[group]
            await asyncio.sleep(0)
        self._sizes, self._held = sizes, counted
        # What was published since the look began may or may not be in the sizes. Until the next
        # look it rather counts twice than not at all.
        self._since = {prefix: size - before.get(prefix, 0) for prefix, size in self._since.items()}

    def _limits_of(self, topic: str) -> tuple[StoredLimit, ...]:
        known = self._over.get(topic)
        if known is None:
            if len(self._over) >= TOPICS_MAX:
                self._over.clear()
            known = tuple(one for one in self._limits if one.covers(topic))
            self._over[topic] = known
        return known

    def _mode(self, topic: str, mode: DeliveryMode | None) -> DeliveryMode | None:
        if mode is not None:
            return mode
        known = self._node.catalog.find(topic)
        return None if known is None else known.settings.mode
