"""The event loop's side of leading groups: `angarium.lending` decides, this does."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, Final

from angarium.delivery import GroupDelivery
from angarium.lending.host import GroupHost
from angarium.node.timekeeping import steady_clock
from angarium.service.groups.assigning import Assigning
from angarium.service.groups.dead_letters import DeadLetters
from angarium.service.groups.draining import Draining

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from angarium.delivery.retry_times import RetryTimes
    from angarium.delivery.source import RecordSource
    from angarium.ids import Micros, NodeId, RaftGroupId
    from angarium.lending.led_partition import LedPartition
    from angarium.lending.letters import Burial
    from angarium.machine.cursors import Group
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.service.own_node import OwnNode
    from angarium.service.publishing import Publisher
    from angarium.service.topics import Topics

TIDY_S: Final = 5.0
"""How often what was read and not asked for again is let go of."""


class Hosting:
    """Implements `lending.ports.Surroundings` on a node."""

    def __init__(self, node: OwnNode, topics: Topics, publishing: Publisher) -> None:
        self.now = node.now
        self.host = GroupHost(self)
        self.carry_on = node.wake
        self.draining = Draining(node)
        self.ask_drained = self.draining.ask
        self._node = node
        self._dead_letters = DeadLetters(node, topics, publishing)
        self._assigning = Assigning(self.host.assign_anew)
        self._timer: asyncio.TimerHandle | None = None
        self._chance = random.Random()

    async def run(self) -> None:
        """Tidy up now and then; let go of everything when cancelled."""
        try:
            while True:
                await asyncio.sleep(TIDY_S)
                self.host.tidy()
        finally:
            self.host.close()
            if self._timer is not None:
                self._timer.cancel()

    @property
    def node(self) -> NodeId:
        return self._node.id

    @property
    def replicas(self) -> Mapping[RaftGroupId, PartitionReplica]:
        return self._node.replicas.here

    @property
    def level(self) -> int:
        return self._node.levels.current

    # --- time -----------------------------------------------------------------------------------

    steady = staticmethod(steady_clock)
    stopwatch_s = staticmethod(time.perf_counter)

    def soon(self, action: Callable[..., object], *arguments: object) -> None:
        asyncio.get_running_loop().call_soon(action, *arguments)

    def ring_at(self, at: Micros) -> None:
        if self._timer is not None:
            self._timer.cancel()
        wait_s = max(at - self._node.now(), 0) / 1_000_000
        self._timer = asyncio.get_running_loop().call_later(wait_s, self.host.ring)

    # --- the node -------------------------------------------------------------------------------

    def raft_group_of(self, topic: str, number: int) -> RaftGroupId:
        return self._node.catalog.partition(topic, number).group

    def partition_of(self, raft_group: RaftGroupId) -> tuple[str, int] | None:
        catalog = self._node.catalog
        if not catalog.is_here:
            return None  # lost to damage; the next leader looks again
        known = catalog.partition_in(raft_group)
        return None if known is None else (catalog.topic_of(known).name, known.number)

    def layouts(self, topic: str) -> tuple[int, ...]:
        known = self._node.catalog.find(topic)
        return () if known is None else known.layouts

    def lifetime(self, topic: str) -> int | None:
        known = self._node.catalog.find(topic)
        return None if known is None else known.settings.expiry_micros

    # --- its groups -----------------------------------------------------------------------------

    def delivery(
        self,
        led: LedPartition,
        group: Group,
        source: RecordSource,
        *,
        retry_times: RetryTimes,
        now: Micros,
        expected: Sequence[str],
    ) -> GroupDelivery:
        del led
        return GroupDelivery(
            group,
            source,
            seed=self._chance.getrandbits(64),
            now=now,
            expected=expected,
            retry_times=retry_times,
        )

    def preferred(
        self,
        members: dict[str, tuple[str, ...]],
        topic: str,
        number: int,
        nodes: Mapping[str, NodeId],
    ) -> str:
        catalog = self._node.catalog
        # Clients connect to nodes of their own region first.
        regions = {
            member: known.labels.region
            for member, node in nodes.items()
            if (known := catalog.member(node)) is not None
        }
        return self._assigning.preferred(members, topic, number, catalog.find, regions)

    def carry_out(self, burial: Burial) -> None:
        self._dead_letters.carry_out(burial)
