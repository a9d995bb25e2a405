"""A cluster with regions whose topic is given one placement after the other, under all faults.

Partitions are spread or homed, with readers or without; nodes are drained and come back, and what
nodes hold is evened out meanwhile. The rules are written down once more here: a homed partition has
its leader and a majority of its voters at home, no rebalance takes a replica away from there, and
in the end every region that is to read has one copy, and no node that leaves has any.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.ids import NodeId, TopicId
from angarium.machine.catalog import Labels, TopicAlter
from angarium.testing.sim.rebalancing import Rebalancing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from angarium.machine.catalog import Partition, TopicSettings

REGIONS: Final = (("eu", "us"), ("as", "eu", "us"))
"""Which regions a cluster has; each of them has as many nodes."""

READERS: Final = ((), ("*",), ("*",), ("us",), ("eu", "us"))

SHARE_ALTERED: Final = 0.4
"""Of the changes, those that give the topic another placement."""

TOPIC: Final = TopicId(1)


class Placing(Rebalancing):
    """Alters, besides all that a rebalance does."""

    def labels(self) -> Iterator[Labels]:
        """Yield where each node is."""
        regions = self.rng.choice(REGIONS)
        for at in range(self.world.settings.nodes):
            yield Labels(regions[at % len(regions)], "", f"host-{at}")

    def change(self) -> None:
        """Let the topic live otherwise, or let a node leave or come back."""
        if self.rng.random() >= SHARE_ALTERED:
            self.change_nodes()
            return
        homes = self._regions()
        self.rng.shuffle(homes)
        wish = msgspec.structs.replace(
            self._settings,
            placement=self.rng.choice(("spread", "homed", "homed")),
            homes=tuple(homes[: self.rng.randrange(len(homes) + 1)]),
            readers=self.rng.choice(READERS),
        )
        self.do(TopicAlter(topic=TOPIC, settings=wish))

    def judge_step(self, before: Partition, target: tuple[NodeId, ...]) -> None:
        """Say what is wrong with a step of a rebalance."""
        super().judge_step(before, target)
        home = self._home(before)
        if home and self._at(target)[home] < self._at(before.replicas)[home]:
            self.object_to(f"group {before.group} to {target}: a replica left {home}, its home")

    def is_spread(self, partition: Partition) -> bool:
        """Tell whether the replicas of a partition are to be in as many zones as there are."""
        return not self._home(partition)

    def judge(self) -> None:
        """Say what is wrong after everything should have arrived."""
        if not self.is_done:
            self.object_to("it was not over 60 s after healing")
            return
        nodes = self.machine.nodes.placeable()
        there = {node.labels.region for node in nodes}
        reading = set(self._settings.readers)
        reading = there if "*" in reading else reading & there
        for one in self.partitions():
            name, home = f"group {one.group} on {one.replicas}", self._home(one)
            at, read_at = self._at(one.replicas), self._at(one.readers)
            if home and at[home] <= len(one.replicas) // 2:
                self.object_to(f"{name}: no majority is in {home}, its home")
            if home and not self._at(one.replicas[:1])[home]:
                self.object_to(f"{name}: its leader should be in {home}, its home")
            if read_at != Counter(reading - set(at)):
                self.object_to(f"{name}: readers in {dict(read_at)}, wanted in {sorted(reading)}")

    @property
    def _settings(self) -> TopicSettings:
        return self.machine.topics.by_id[TOPIC].settings

    def _home(self, partition: Partition) -> str:
        settings = self._settings
        if settings.placement != "homed":
            return ""
        return settings.homes[partition.number % len(settings.homes)]

    def _regions(self) -> list[str]:
        return sorted({node.labels.region for node in self.machine.nodes.by_id.values()})

    def _at(self, nodes: Sequence[NodeId]) -> Counter[str]:
        return Counter(self.machine.nodes.by_id[one].labels.region for one in nodes)
