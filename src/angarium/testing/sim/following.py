"""Leaders that follow their publishers, who move from region to region, under all faults.

Each node counts and decides by the same code as in a cluster (`node.origins`, `node.steering`). The
rules are written down once more here: a leader goes where most publishes of a window came from, not
within a pause after somebody has said where to lead, and to a replica that is there and not behind.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.machine.catalog import Labels, TopicAlter
from angarium.machine.outcomes import Refused
from angarium.node import origins, steering
from angarium.testing.sim.clock import MILLISECOND
from angarium.testing.sim.placing import REGIONS, TOPIC, Placing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import NodeId, RaftGroupId
    from angarium.machine.catalog import Partition
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.testing.sim.node import SimNode
    from angarium.testing.sim.world import World

SLICE: Final = 100 * MILLISECOND
WINDOW: Final = origins.SLICES * SLICE
PAUSE: Final = 1_000 * MILLISECOND
"""Shorter than in life, as the whole run is."""

DAY: Final = 1_500 * MILLISECOND
"""How long most publishers are in one region."""

SHARES: Final = (0.97, 0.97, 0.9, 0.75, 0.55)
"""Which part of the publishes comes from there; one of these per day."""

SHARE_CALM: Final = 0.85
"""Changes that are left out, for nobody follows while partitions are on their way."""

SHARE_OF_NODES: Final = 0.8
"""Of the others, those in which nodes leave or come back; else leaders follow, or do no more."""

SHARE_SILENT: Final = 0.02
"""Publishers that do not say where they are."""

SHARE_TRANSFERRED: Final = 0.04
"""Rounds in which an operator says who is to lead."""

MAJORITY_MIN: Final = 0.5
BEHIND_MAX: Final = 64
"""What whoever is followed to must have: of the publishes of a window, somewhat less than there,
for a window does not begin with its first publish; and how many entries it may lack."""


class FollowingLeaders(Placing):
    """Lets leaders follow, besides all that happens to a topic in regions."""

    def __init__(self, world: World, seed: int) -> None:
        super().__init__(world, seed)
        self._sun = random.Random(seed ^ 0x5011)
        self._day = -1
        self._noon = ""
        self._share = 0.0
        self._counts: dict[tuple[NodeId, int], origins.Origins] = {}
        """What each process has counted: forgotten when it ends."""
        self._seen: defaultdict[tuple[NodeId, int, RaftGroupId], deque[tuple[int, str]]]
        self._seen = defaultdict(deque)
        """When which region published to whom, for the rules."""
        self._said: dict[RaftGroupId, int] = {}
        """When somebody last said where to lead."""
        self._settled = ""
        self.changes = 0

    def labels(self) -> Iterator[Labels]:
        """Yield where each node is: in three regions, so that there is always one to follow to."""
        for at in range(self.world.settings.nodes):
            yield Labels(REGIONS[-1][at % len(REGIONS[-1])], "", f"host-{at}")

    def settle_in(self, region: str) -> None:
        """From now on let all publishers be in a region, and nothing else change."""
        self._settled = region
        if not self._settings.leaders_follow:
            self._alter()

    def published(self, node: SimNode, replica: PartitionReplica) -> None:
        """Count a publish that a node takes, from wherever it comes."""
        if not replica.may_serve or not self._settings.leaders_follow:
            return
        region, key = self._origin(), (node.id, node.life)
        self._counts.setdefault(key, origins.Origins()).count(replica.group, region)
        self._seen[*key, replica.group].append((self.world.scheduler.now, region))

    def _origin(self) -> str:
        if self._settled:
            return self._settled
        day = self.world.scheduler.now // DAY
        regions = self._regions()
        if day != self._day:
            self._day, self._noon = day, self._sun.choice(regions)
            self._share = self._sun.choice(SHARES)
        if self._sun.random() < SHARE_SILENT:
            return origins.UNKNOWN
        return self._noon if self._sun.random() < self._share else self._sun.choice(regions)

    def change(self) -> None:
        """Let leaders follow or stay, or whatever else may change."""
        if self._settled or (self._settings.leaders_follow and self._sun.random() < SHARE_CALM):
            return
        if self._settings.leaders_follow and self._sun.random() < SHARE_OF_NODES:
            self.change_nodes()
        else:
            self._alter()

    def _alter(self) -> None:
        wish = msgspec.structs.replace(
            self._settings,
            placement="spread",
            leaders_follow=not self._settings.leaders_follow,
            homes=self._sun.choice(((), *((region,) for region in self._regions()))),
        )
        self.do(TopicAlter(topic=TOPIC, settings=wish))

    def finish_round(self) -> None:
        """Let an operator say who leads, and at the end of a slice let leaders follow."""
        now = self.world.scheduler.now
        is_calm = self._settled or not self._settings.leaders_follow
        if not is_calm and self._sun.random() < SHARE_TRANSFERRED:
            self._transfer(self._sun.choice(self.partitions()))
        for node in self.world.nodes.values():
            counted = self._counts.get((node.id, node.life))
            if counted is None or node.host is None or node.is_paused:
                continue
            for group in counted.ended_slice(now=now, length=SLICE):
                replica = node.host.replicas.get(group)
                if replica is not None and replica.may_serve:
                    self._follow(self.machine.topics.partitions[group], node, replica, counted)

    def _transfer(self, partition: Partition) -> None:
        if partition.target:
            return
        to = self._sun.choice(partition.replicas)
        wish = msgspec.structs.replace(steering.led_by(partition, to), time=self._now())
        if not isinstance(self.do(wish), Refused):
            self._said[partition.group] = self.world.scheduler.now
            self.world.operator.transfer(partition.group, to)

    def _follow(
        self,
        partition: Partition,
        node: SimNode,
        replica: PartitionReplica,
        counted: origins.Origins,
    ) -> None:
        nodes, operator = self.machine.nodes.by_id, self.world.operator
        if (
            partition.target
            or not self._settings.leaders_follow
            or not origins.may_follow(partition, now=self._now(), pause_s=PAUSE / 1_000_000)
            or any(nodes[one].draining for one in partition.replicas)
        ):
            return

        def could_lead(one: NodeId) -> bool:
            return one == node.id or operator.could_be_handed(partition.group, replica, one)

        to = origins.followed_leader(
            partition.replicas,
            {one: nodes[one].labels.region for one in partition.replicas},
            counted.window(partition.group),
            could_lead=could_lead,
        )
        if to is None:
            return
        wish = msgspec.structs.replace(steering.led_by(partition, to), time=self._now())
        if not isinstance(self.do(wish), Refused):
            self.changes += 1
            self._judge_following(partition.group, to, node, replica)
            self._said[partition.group] = self.world.scheduler.now

    # --- rules --------------------------------------------------------------------------------

    def _judge_following(
        self, group: RaftGroupId, to: NodeId, node: SimNode, leader: PartitionReplica
    ) -> None:
        now, name = self.world.scheduler.now, f"group {group} follows to node {to}"
        if now - self._said.get(group, 0) < PAUSE:
            self.object_to(f"{name}: somebody has just said where to lead")
        seen = self._seen[node.id, node.life, group]
        while seen and seen[0][0] < now - WINDOW:
            seen.popleft()
        region = self.machine.nodes.by_id[to].labels.region
        there = sum(one == region for _, one in seen)
        if not seen or there < MAJORITY_MIN * len(seen):
            self.object_to(f"{name}: {there} of {len(seen)} publishes come from {region}")
        if self.machine.nodes.by_id[to].draining:
            self.object_to(f"{name}: it is leaving")
        replica = self.world.replica_at(to, group)
        if replica is None or replica.last_index + BEHIND_MAX < leader.last_index:
            self.object_to(f"{name}: it is behind, or not there")
