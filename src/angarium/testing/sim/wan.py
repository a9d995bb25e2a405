"""Several data centres in one run: which region everybody is in, and how far regions are apart.

Between two regions a message takes 20 to 200 ms one way, a little more or less each time, and is
lost now and then; the way back may lose more or less than the way there. Within a region the
network is what it is in every other run. Ticks are as long as on a real node, where other runs are
quicker than life: how elections and heartbeats stand against round trips is what these runs are
there to show.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from angarium.testing.sim.clock import MILLISECOND

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Mapping, Sequence

    from angarium.ids import NodeId

ONE_WAY_MIN: Final = 20 * MILLISECOND
ONE_WAY_MAX: Final = 200 * MILLISECOND
"""The nearest and the farthest that two regions are from each other."""

JITTERS: Final = (0.02, 0.1, 0.3)
"""By which share of its way a message may be late; one of these per run."""

LOSSES: Final = (0.0, 0.0, 0.002, 0.01)
"""The share of messages that is lost on one way between two regions; one of these per way."""

TICK: Final = 50 * MILLISECOND
"""As long as on a real node."""

CROSSINGS_PER_ANSWER: Final = 6
"""Ways between regions in one answer, at most: to the node and back, and one or two rounds between
replicas. Clients wait so much longer before they ask again."""


class Living(Enum):
    """How the partitions of a run live in its regions."""

    SPREAD = "spread"
    """Each replica in a region of its own."""
    HOMED = "homed"
    """All voters in one region, and a learner in each of the others."""


@dataclass(frozen=True, slots=True)
class Way:
    """From one region to another: how long it takes (µs), and what is lost on it."""

    delay: int
    jitter: int
    """Added at most."""
    loss: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Wan:
    """The regions of a run."""

    regions: tuple[str, ...]
    ways: Mapping[tuple[str, str], Way]
    living: Living = Living.SPREAD

    @property
    def one_way_max(self) -> int:
        """The longest way between two regions, in µs."""
        return max(way.delay + way.jitter for way in self.ways.values())

    @property
    def slack(self) -> int:
        """How much longer than within a region an answer may take, in µs."""
        return CROSSINGS_PER_ANSWER * self.one_way_max

    def region_of(self, number: int) -> str:
        """Return the region of the machine or client with this number."""
        return self.regions[number % len(self.regions)]


def placed(
    wan: Wan, nodes: Sequence[NodeId], *, replicas: int, at: int, rng: random.Random
) -> tuple[set[NodeId], set[NodeId]]:
    """Return which nodes vote in the partition with number `at`, and which listen."""
    by_region = {region: [] for region in wan.regions}  # type: dict[str, list[NodeId]]
    for node in nodes:
        by_region[wan.region_of(node - 1)].append(node)
    if wan.living is Living.SPREAD:
        # One region may have nothing but witnesses.
        chosen = rng.sample([one for one in wan.regions if by_region[one]], replicas)
        return {rng.choice(by_region[region]) for region in chosen}, set()
    home = wan.region_of(at)
    away = (region for region in wan.regions if region != home)
    return set(rng.sample(by_region[home], replicas)), {rng.choice(by_region[one]) for one in away}


def may_take_over(wan: Wan, leaving: NodeId, arriving: NodeId, staying: Collection[NodeId]) -> bool:
    """Tell whether a partition still lives as it should when one node replaces another."""
    where = wan.region_of(arriving - 1)
    if wan.living is Living.HOMED:
        return where == wan.region_of(leaving - 1)
    return all(where != wan.region_of(one - 1) for one in staying)


def drawn_wan(rng: random.Random, *, regions: int, living: Living = Living.SPREAD) -> Wan:
    """Draw how far so many regions are apart."""
    names = tuple(f"region-{number + 1}" for number in range(regions))
    jitter = rng.choice(JITTERS)
    ways = {}
    for at, one in enumerate(names):
        for other in names[at + 1 :]:
            # The same way there and back, as cables are laid; what is lost is not the same.
            delay = rng.randrange(ONE_WAY_MIN, ONE_WAY_MAX)
            for way in ((one, other), (other, one)):
                ways[way] = Way(delay, int(jitter * delay), rng.choice(LOSSES))
    return Wan(regions=names, ways=ways, living=living)


def even_wan(*, regions: int, one_way_ms: int, living: Living = Living.SPREAD) -> Wan:
    """Return regions that are all equally far apart, with a tenth of jitter and no loss."""
    names = tuple(f"region-{number + 1}" for number in range(regions))
    delay = one_way_ms * MILLISECOND
    way = Way(delay, delay // 10, 0.0)
    ways = {(one, other): way for one in names for other in names if one != other}
    return Wan(regions=names, ways=ways, living=living)
