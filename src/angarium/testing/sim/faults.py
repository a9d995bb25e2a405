"""What goes wrong, chosen and timed by the seed.

Each fault is a method that starts it and arranges its end. Faults overlap. The one rule they obey
is the promise's own exception: never is a majority of a group's disks destroyed at the same time.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from angarium.log.memory_disk import ROOMY
from angarium.testing.sim.clock import MILLISECOND, SECOND
from angarium.testing.sim.network import Weather
from angarium.testing.sim.timekeeping import sample_age_max
from angarium.testing.sim.wan import may_take_over

if TYPE_CHECKING:
    from collections.abc import Mapping

    from angarium.ids import NodeId, RaftGroupId
    from angarium.testing.sim.node import SimNode
    from angarium.testing.sim.world import World


USUAL: Final = {
    "crash": 5,
    "power_loss": 5,
    "power_loss_of_all": 1,
    "pause": 4,
    "partition": 4,
    "isolate_leader": 3,
    "one_way_cut": 3,
    "bad_weather": 4,
    "transfer": 4,
    "slow_disk": 2,
    "full_disk": 2,
    "sync_failure": 2,
    "bit_flip": 3,
    "wipe": 2,
    "move_replica": 2,
    "lull": 3,
}
"""How often each fault is chosen, relative to the others. The names are methods of `Faults`."""


WITH_CLOCKS: Final = {**USUAL, "clock_jump": 7, "clock_drift": 4}
"""The same where machines have clocks of their own."""


IN_LOGS: Final = {"log_flip": 4, "stale_page": 2, "clean_stop": 2}
"""What else happens where logs are damaged inside, also while they are read and written."""


WITH_CLOCKS_AHEAD: Final = {**USUAL, "clocks_ahead": 8}
"""The same where all clocks go wrong together, and no node can notice."""

CLOCKS_AHEAD: Final = 3_600 * SECOND
"""How far: longer than any run, so that what waits for it waits beyond the end."""


OF_REGIONS: Final = {"region_loss": 4, "region_cut": 4, "region_one_way": 4}
"""What else happens where nodes are in several regions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultProfile:
    """Which faults strike, how often, and for how long."""

    weights: Mapping[str, int] = field(default_factory=lambda: USUAL)
    gaps_ms: tuple[int, ...] = (120, 250, 400)
    """Mean time between two faults; one of these per run."""
    lasting_ms: tuple[int, int] = (50, 1_500)
    """How long a fault lasts, at least and at most."""


class Faults:
    """Breaks things, one after the other, until told to stop."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.rng = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.overlapping = 0
        """Faults that struck while at least one client operation was in flight."""
        self.active = True
        self._destroyed: set[NodeId] = set()
        self._wrong: set[NodeId] = set()
        """Whose clocks are wrong; never those of half of the nodes."""
        self._are_clocks_ahead = False
        """Whether those of all nodes are."""
        self._profile = world.settings.faults
        self._kinds = list(self._profile.weights)
        self._weights = list(self._profile.weights.values())
        self._gap = self.rng.choice(self._profile.gaps_ms) * MILLISECOND

    def start(self) -> None:
        """Begin to break things, after a moment of peace."""
        self.world.scheduler.after(300 * MILLISECOND, self._strike)

    def _strike(self) -> None:
        if not self.active:
            return
        kind = self.rng.choices(self._kinds, self._weights)[0]
        struck: str | None = getattr(self, kind)()
        if struck is not None:
            self.record(kind, struck)
        self.world.scheduler.after(self.rng.randrange(self._gap // 4, 2 * self._gap), self._strike)

    def record(self, kind: str, what: str) -> None:
        """Count a fault and write it down."""
        self.counts[kind] += 1
        if self.world.operations_in_flight():
            self.overlapping += 1
        self.world.note("fault", kind, what)

    # --- processes and power ----------------------------------------------------------------

    def crash(self) -> str | None:
        """SIGKILL one node; it is back soon."""
        node = self._some_node_up()
        if node is None:
            return None
        node.crash()
        self._boot_later(node)
        return node.name

    def power_loss(self) -> str | None:
        """Pull one node's plug."""
        node = self._some_node_up()
        if node is None:
            return None
        node.lose_power()
        self._boot_later(node)
        return node.name

    def power_loss_of_all(self) -> str | None:
        """The whole data centre goes dark at one moment."""
        for node in self.world.nodes.values():
            if node.is_up:
                node.lose_power()
                self._boot_later(node)
        return "everywhere"

    def pause(self) -> str | None:
        """SIGSTOP one node for a while: it wakes up believing that no time has passed."""
        node = self._some_node_up()
        if node is None or node.is_paused:
            return None
        node.pause()
        self.world.scheduler.after(self._while(), self._resume, node)
        return node.name

    # --- network ----------------------------------------------------------------------------

    def partition(self) -> str | None:
        """Split the nodes in two; each client can reach only one side."""
        names = [node.name for node in self.world.nodes.values()]
        self.rng.shuffle(names)
        cut = self.rng.randrange(1, len(names))
        one, other = set(names[:cut]), set(names[cut:])
        for client in self.world.client_names():
            (one if self.rng.random() < 0.5 else other).add(client)
        self.world.network.cut_between(one, other)
        self.world.scheduler.after(self._while(), self.world.network.heal)
        return " ".join(sorted(name for name in one if name.startswith("node")))

    def isolate_leader(self) -> str | None:
        """Cut a leader off from its peers, but not from its clients."""
        leader = self.world.operator.leader(self.rng.choice(self.world.groups))
        if leader is None:
            return None
        name = self.world.node_of(leader.id).name
        others = {node.name for node in self.world.nodes.values()} - {name}
        self.world.network.cut_between({name}, others)
        self.world.scheduler.after(self._while(), self.world.network.heal)
        return name

    def one_way_cut(self) -> str | None:
        """Let one node hear everybody and be heard by nobody, or the other way round."""
        node = self.rng.choice(list(self.world.nodes.values()))
        deaf = self.rng.random() < 0.5
        for other in self.world.nodes.values():
            if other is not node:
                pair = (other.name, node.name) if deaf else (node.name, other.name)
                self.world.network.cut(*pair)
        self.world.scheduler.after(self._while(), self.world.network.heal)
        return f"{node.name} is {'deaf' if deaf else 'mute'}"

    # --- regions ----------------------------------------------------------------------------

    def region_loss(self) -> str | None:
        """All machines of a region are gone at one moment, and are back one after the other."""
        region, nodes = self._some_region()
        is_dark = self.rng.random() < 0.5
        for node in nodes:
            if node.is_up:
                if is_dark:
                    node.lose_power()
                else:
                    node.crash()
                self._boot_later(node)
        return f"{region} {'goes dark' if is_dark else 'crashes'}"

    def region_cut(self) -> str | None:
        """Nothing goes into a region, or out of it; whoever is inside sees all others inside."""
        region, _ = self._some_region()
        inside = self.world.ends_in(region)
        self.world.network.cut_between(inside, self.world.ends() - inside)
        self.world.scheduler.after(self._while(), self.world.network.heal)
        return f"{region} is cut off"

    def region_one_way(self) -> str | None:
        """A region hears all others and is heard by none, or the other way round."""
        region, _ = self._some_region()
        inside, is_deaf = self.world.ends_in(region), self.rng.random() < 0.5
        for one in sorted(inside):
            for other in sorted(self.world.ends() - inside):
                self.world.network.cut(*((other, one) if is_deaf else (one, other)))
        self.world.scheduler.after(self._while(), self.world.network.heal)
        return f"{region} is {'deaf' if is_deaf else 'mute'}"

    def _some_region(self) -> tuple[str, list[SimNode]]:
        wan = self.world.settings.wan
        assert wan is not None, "faults of regions are for runs that have some"
        region = self.rng.choice(wan.regions)
        inside = self.world.ends_in(region)
        return region, [node for node in self.world.nodes.values() if node.name in inside]

    def bad_weather(self) -> str | None:
        """Lose, repeat and delay messages everywhere."""
        self.world.network.weather = Weather(
            delay_max=self.rng.choice((2_000, 20_000, 120_000)),
            loss=self.rng.choice((0.0, 0.02, 0.1, 0.3)),
            repetition=self.rng.choice((0.0, 0.05, 0.2)),
        )
        self.world.scheduler.after(self._while(), self._clear_up)
        return str(self.world.network.weather)

    # --- disks ------------------------------------------------------------------------------

    def slow_disk(self) -> str | None:
        """Let one node's syncs take forty times as long."""
        node = self.rng.choice(list(self.world.nodes.values()))
        node.slow_syncs = True
        self.world.scheduler.after(self._while(), self._speed_up, node)
        return node.name

    def full_disk(self) -> str | None:
        """Let one node's disk have no more room, for a while."""
        node = self.rng.choice(list(self.world.nodes.values()))
        node.disk.capacity_bytes = node.disk.used_bytes() + self.rng.randrange(4_096)
        self.world.scheduler.after(self._while(), self._make_room, node)
        return node.name

    def sync_failure(self) -> str | None:
        """Let one fsync fail: that node must stop, and come back on what is really there."""
        node = self._some_node_up()
        if node is None:
            return None
        node.disk.fail_syncs(1)
        return node.name

    def bit_flip(self) -> str | None:
        """Flip a bit in some file of one node, and make it read its files again."""
        node = self._expendable_node()
        if node is None:
            return None
        self._destroyed.add(node.id)
        if self.rng.random() < 0.5:
            node.lose_power()
        else:
            node.crash()
        where = node.damage()
        self._boot_later(node)
        return f"{node.name} {where}"

    def log_flip(self) -> str | None:
        """Flip a bit inside one node's log."""
        return self._damage_log(is_stale=False)

    def stale_page(self) -> str | None:
        """Let one node's log hold an old page, as after a write that its disk forgot."""
        return self._damage_log(is_stale=True)

    def clean_stop(self) -> str | None:
        """Let one node end by itself; it is back soon."""
        node = self._some_node_up()
        if node is None or node.is_paused:
            return None
        node.stop()
        self._boot_later(node)
        return node.name

    def _damage_log(self, *, is_stale: bool) -> str | None:
        node = self._expendable_node()
        if node is None or node.is_paused:
            return None
        self._destroyed.add(node.id)
        if self.rng.random() < 0.4:
            # While it runs. It reads the damaged entries for those that lag, or at its next start.
            where = node.damage_log(is_stale=is_stale)
            self.world.scheduler.after(self._while(), self._start_anew, node, node.life)
            return f"{node.name} {where}, running"
        end = self.rng.choice((node.stop, node.stop, node.crash, node.lose_power))
        end()
        where = node.damage_log(is_stale=is_stale)
        self._boot_later(node)
        return f"{node.name} {where}, after {end.__name__}"

    def _start_anew(self, node: SimNode, life: int) -> None:
        if node.life == life and node.is_up:
            self.rng.choice((node.stop, node.crash))()
            self._boot_later(node)

    def wipe(self) -> str | None:
        """Replace one node's disk by an empty one."""
        node = self._expendable_node()
        if node is None:
            return None
        self._destroyed.add(node.id)
        node.wipe()
        self._boot_later(node)
        return node.name

    # --- clocks -----------------------------------------------------------------------------

    def clock_jump(self) -> str | None:
        """Set one node's clock seconds, hours or a day ahead or back, until somebody notices."""
        seconds = self.rng.choice((2, 5, 30, 3_600, 86_400)) * self.rng.choice((-1, 1, 1))
        return self._set_clock(seconds * SECOND, rate=0.0)

    def clock_drift(self) -> str | None:
        """Let one node's clock go too fast, or too slow."""
        return self._set_clock(0, rate=self.rng.choice((-0.9, -0.2, 0.2, 3.0, 100.0)))

    def _set_clock(self, error: int, *, rate: float) -> str | None:
        right = sorted(set(self.world.nodes) - self._wrong)
        if 2 * (len(self._wrong) + 1) >= len(self.world.nodes):
            return None
        node = self.rng.choice(right)
        self._wrong.add(node)
        self.world.wall_clocks[node].set(error, rate=rate, at=self.world.scheduler.now)
        self.world.scheduler.after(3 * self._while(), self._set_right, node)
        return f"node-{node} by {error / SECOND:g} s, drifting by {rate:g}"

    def _set_right(self, node: NodeId) -> None:
        self.world.wall_clocks[node].set_right()
        # Whoever cannot ask it again believes for so long what it said before.
        self.world.scheduler.after(sample_age_max(self.world.settings), self._wrong.discard, node)

    def clocks_ahead(self) -> str | None:
        """Set the clocks of all nodes an hour ahead, and right again after a while."""
        if self._are_clocks_ahead:
            return None
        self._are_clocks_ahead = True
        for clock in self.world.wall_clocks.values():
            clock.set(CLOCKS_AHEAD, rate=0.0, at=self.world.scheduler.now)
        self.world.scheduler.after(self._while(), self._set_all_right)
        return f"all nodes by {CLOCKS_AHEAD / SECOND:g} s"

    def _set_all_right(self) -> None:
        self._are_clocks_ahead = False
        for clock in self.world.wall_clocks.values():
            clock.set_right()
        self.world.note("world", "has the right time again")

    def is_anything_destroyed(self) -> bool:
        """Tell whether a disk was damaged or replaced and the cluster has not got over it yet."""
        return bool(self._destroyed) and not self._all_is_well()

    def strike_disk(self, kind: str, node: SimNode, what: str) -> None:
        """Count a fault that took a node's disk; the node is back soon."""
        self._destroyed.add(node.id)
        self.record(kind, what)
        self._boot_later(node)

    # --- membership -------------------------------------------------------------------------

    def transfer(self) -> str | None:
        """Ask a leader to hand over."""
        group = self.rng.choice(self.world.groups)
        target = self.rng.choice(sorted(self.world.operator.wanted[group]))
        self.world.operator.transfer(group, target)
        return f"group {group} to node-{target}"

    def move_replica(self) -> str | None:
        """Let a spare node take over one replica of a group."""
        group = self.rng.choice(self.world.groups)
        wanted = self.world.operator.wanted[group]
        spare = sorted(set(self.world.node_ids) - wanted - self.world.operator.readers[group])
        is_planned = bool(self.world.rebalancings)
        if self.world.witness_ids and not is_planned and self.rng.random() < 0.5:
            return self._move_witness(group)
        if not spare or is_planned or not self._all_is_well():
            return None
        leaving = self.rng.choice(sorted(wanted))
        if (wan := self.world.settings.wan) is not None:
            spare = [one for one in spare if may_take_over(wan, leaving, one, wanted - {leaving})]
            if not spare:
                return None
        arriving = self.rng.choice(spare)
        wanted.remove(leaving)
        wanted.add(arriving)
        return f"group {group} from node-{leaving} to node-{arriving}"

    def _move_witness(self, group: RaftGroupId) -> str | None:
        before = self.world.operator.witness[group]
        spare = [one for one in self.world.witness_ids if one != before]
        if not spare or not self._all_is_well():
            return None
        self.world.operator.witness[group] = after = self.rng.choice(spare)
        return f"group {group}: its witness from node-{before} to node-{after}"

    def lull(self) -> str | None:
        """Let nobody publish for a while, so that groups go to rest."""
        self.world.quiet_until = self.world.scheduler.now + self._while()
        return "nobody publishes"

    # --- who may be hurt --------------------------------------------------------------------

    def _some_node_up(self) -> SimNode | None:
        up = [node for node in self.world.nodes.values() if node.is_up]
        return self.rng.choice(up) if up else None

    def _expendable_node(self) -> SimNode | None:
        """Return a node whose disk may be destroyed: all groups whole, no other one destroyed."""
        if not self._all_is_well():
            return None
        return self._some_node_up()

    def _all_is_well(self) -> bool:
        well = all(
            self.world.operator.is_settled(group) and self.world.is_caught_up(group)
            for group in self.world.groups
        )
        if well:
            self._destroyed.clear()
        return well

    # --- ends -------------------------------------------------------------------------------

    def _while(self) -> int:
        return self.rng.randrange(*self._profile.lasting_ms) * MILLISECOND

    def _boot_later(self, node: SimNode) -> None:
        self.world.scheduler.after(self._while(), self._boot, node, node.life)

    @staticmethod
    def _boot(node: SimNode, life: int) -> None:
        if node.life == life and not node.is_up:
            node.boot()

    @staticmethod
    def _resume(node: SimNode) -> None:
        if node.is_paused:
            node.resume()

    def _clear_up(self) -> None:
        self.world.network.weather = Weather()

    @staticmethod
    def _speed_up(node: SimNode) -> None:
        node.slow_syncs = False

    @staticmethod
    def _make_room(node: SimNode) -> None:
        node.disk.capacity_bytes = ROOMY
