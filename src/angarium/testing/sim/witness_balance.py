"""Rebalances where a witness breaks ties: drains, returns and evening out by the real planner.

The rules are written down once more here: no full replica goes to a node for witnesses, nor to the
host of its own witness, a witness stays in its regions, and leaves a node that is drained as long
as another one there can have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.machine.catalog import Labels, TopicSettings
from angarium.testing.sim.rebalancing import Rebalancing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import NodeId
    from angarium.machine.catalog import Partition

TIE: Final = "tie"
"""The region that has nothing but witnesses."""


class RebalancingBesideWitnesses(Rebalancing):
    """Evens replicas out among full nodes, and lets nodes of witnesses be drained, too."""

    def topic_settings(self) -> TopicSettings:
        """Return what the topic is created with."""
        return TopicSettings(replication=self.world.settings.replicas, witness=(TIE,))

    def labels(self) -> Iterator[Labels]:
        """Yield where each node is: in its region if there are some, or in a zone, or anywhere."""
        zones, regions = self.rng.choice(("", "ab", "abc")), self.world.network.regions
        for at, node in enumerate(self.world.nodes.values()):
            if node.is_for_witnesses:
                yield Labels(TIE, "", f"host-{at}")
            elif self.world.settings.wan is not None:
                yield Labels(regions[node.name], "", f"host-{at}")
            else:
                yield Labels("", zones[at % len(zones)] if zones else "", f"host-{at}")

    def finish_round(self) -> None:
        """Look at what the catalog says after each round."""
        for one in self.partitions():
            self._judge_witnesses(one)

    def judge_step(self, before: Partition, target: tuple[NodeId, ...]) -> None:
        """Say what is wrong with a step of a rebalance."""
        if before.witness in target:
            self.object_to(f"group {before.group} to {target}: {before.witness} is its witness")
        super().judge_step(before, target)

    def judge(self) -> None:
        """Say what is wrong after everything should have arrived."""
        if not self.is_done:
            self.object_to("it was not over 60 s after healing")
            return
        full = [one.id for one in self.machine.nodes.placeable() if one.id in self.world.node_ids]
        counts = [self.machine.topics.loads.replicas.get(one, 0) for one in full]
        labels = [self.machine.nodes.by_id[one].labels for one in full]
        areas = {(one.region, one.zone) for one in labels}
        if len(areas) == 1 and max(counts) - min(counts) > 1:
            self.object_to(f"full nodes are not even: {counts} replicas")

    def is_on_leaving_node(self, partition: Partition) -> bool:
        """Tell whether a partition has yet to go from a node that is drained."""
        if super().is_on_leaving_node(partition):
            return True
        free = {one.id for one in self.machine.nodes.placeable()} & set(self.world.witness_ids)
        return bool(free) and partition.witness not in free

    def _judge_witnesses(self, one: Partition) -> None:
        name, full = f"group {one.group}", {*one.replicas, *one.target}
        if not full <= set(self.world.node_ids):
            self.object_to(f"{name} on {sorted(full)}: that is for witnesses alone")
        if one.witness not in self.world.witness_ids:
            self.object_to(f"{name}: its witness is {one.witness}, where records are")
