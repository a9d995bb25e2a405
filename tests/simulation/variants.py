"""Runs with other settings than the usual ones, for bugs that hide in rare situations.

Each is a way to run a seed. The faults are the simulator's own; only their mix, the size of the
cluster or the size of its messages differ.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.testing.sim.faults import USUAL, FaultProfile
from angarium.testing.sim.scenarios import SCENARIOS
from angarium.testing.sim.settings import (
    HOLDING,
    PACED_BYTES,
    Settings,
    in_regions,
    with_a_region_of_witnesses,
    with_following,
    with_regions,
    with_staging,
    with_witnesses_rebalanced,
)
from angarium.testing.sim.wan import Living
from angarium.testing.sim.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.testing.sim.world import Report


class Variant(NamedTuple):
    """A way to run a seed, and what it is called."""

    name: str
    settings: Settings | None
    script: Callable[[World], None] | None = None
    skipped: int = 0
    """Seeds that are passed over: a search for something rare may begin near it."""

    def __call__(self, seed: int) -> Report:
        """Run it."""
        return World(seed + self.skipped, self.settings).run(self.script)


def _more(**weights: int) -> FaultProfile:
    return FaultProfile(weights={**USUAL, **weights})


usual: Final = Variant("usual", None)
"""What `make sim` runs."""

held_back: Final = Variant("held back", Settings(holding_micros=HOLDING))
"""EVENTUAL entries are held back, to be sent together."""

paced: Final = Variant("paced", Settings(copy_bytes_per_tick=PACED_BYTES))
"""Copies are held back at both ends, so that they wait for each other."""

rotten: Final = Variant(
    "rotten",
    Settings(
        producers=2,
        faults_min=8,
        faults=FaultProfile(
            weights={"bit_flip": 10, "crash": 3, "power_loss": 3, "isolate_leader": 2, "wipe": 1},
            gaps_ms=(250, 500),
            lasting_ms=(20, 300),
        ),
    ),
)
"""Disks that rot: most faults are flipped bits, with time to recover in between."""

dark: Final = Variant(
    "dark",
    Settings(faults=_more(power_loss_of_all=15, sync_failure=8, slow_disk=6, bit_flip=0, wipe=0)),
)
"""The power fails everywhere, again and again, and syncs are slow or fail."""

moving: Final = Variant(
    "moving",
    Settings(nodes=5, faults=_more(move_replica=20, wipe=15, partition=8, isolate_leader=8)),
)
"""Replicas move and are replaced all the time."""

rebalanced: Final = Variant(
    "rebalanced",
    Settings(nodes=5, groups=4, producers=4, readers=1, faults_min=5, rebalancing=True),
)
"""Nodes are drained and come back all the time, and replicas and leaders are evened out."""

placed: Final = Variant(
    "placed",
    with_regions(Settings(producers=4, readers=1, faults_min=5)),
)
"""The same in regions, with a topic that is given one placement after the other."""

following: Final = Variant("following", with_following(Settings(readers=1)))
"""The same with leaders that follow publishers, who move from region to region."""

watched: Final = Variant(
    "watched",
    Settings(
        readers=8,
        faults=FaultProfile(
            weights={"pause": 5, "isolate_leader": 10, "crash": 3, "transfer": 5, "bad_weather": 3},
            gaps_ms=(300,),
            lasting_ms=(200, 800),
        ),
    ),
)
"""Many readers ask where the log ends, while leaders are paused and cut off."""

transacting: Final = Variant(
    "transacting",
    Settings(groups=2, transactors=3, stewards=1, producers=3, faults=_more(crash=10, wipe=6)),
)
"""Mostly transactions and trims."""

staging: Final = Variant("staging", with_staging(transacting.settings or Settings()))
"""The same, and every transaction counts as a large one."""

staging_anew: Final = Variant(
    "staging anew",
    with_staging(Settings(transactors=5, producers=3, faults=_more(crash=3, wipe=25))),
)
"""Large transactions, and replicas that lose everything and copy what is staged, too."""

redriving: Final = Variant(
    "redriving",
    Settings(groups=2, redrivers=4, transactors=1, producers=2, faults=_more(crash=10, wipe=3)),
)
"""Several who send the same dead letters back, and crash in the middle of it."""

consuming: Final = Variant(
    "consuming",
    Settings(
        members=3,
        producers=3,
        readers=1,
        faults_min=6,
        faults=_more(crash=10, transfer=10, isolate_leader=6, wipe=4),
    ),
)
"""Consumer groups of every kind, whose leaders change all the time."""

far_apart: Final = Variant(
    "far-apart", replace(in_regions(Settings(producers=3), 1, living=Living.SPREAD), near_readers=6)
)
"""Nodes in several regions, and consumers that read at the nearest replica."""

homed: Final = Variant(
    "homed",
    replace(in_regions(Settings(groups=3, producers=3), 2, living=Living.HOMED), near_readers=6),
)
"""The same, with partitions that are at home in one region and have learners in the others."""

tied: Final = Variant(
    "tied", replace(with_a_region_of_witnesses(Settings(producers=3), 1), near_readers=6)
)
"""Regions, one of which has witnesses and nothing else; all have readers."""

tied_rebalanced: Final = Variant(
    "tied and rebalanced",
    with_witnesses_rebalanced(Settings(producers=4, readers=1, faults_min=5), 1),
)
"""Replicas are evened out, and nodes drained, where witnesses break ties."""

visited: Final = Variant(
    "visited", Settings(strangers=1, faults=_more(crash=3, power_loss_of_all=0, wipe=0))
)
"""Somebody forges frames all the time."""

rotten_later: Final = rotten._replace(skipped=45)
"""The same from another beginning."""


def scripted(name: str) -> Variant:
    """Return the schedule called `name`."""
    return Variant(name, SCENARIOS[name].settings, SCENARIOS[name].script)
