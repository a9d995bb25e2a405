"""Rebalances in a run with all other faults: nodes are drained and come back, replicas move.

What a cluster has in its catalog is here a catalog without replicas. Its leader fails now and then:
for a while nothing is decided, and the next one goes on with what the catalog holds alone, while a
plan of the last one may still come in. Plans are made by the same code as in a cluster
(`node.balance`) and carried out by the operator. Each step is judged by rules that are written down
once more here: a majority stays, no two replicas share a host, none is spread worse than before,
nothing is sent elsewhere while it is on its way, and no plan is carried out that is out of date.

In every other run nobody asks for a rebalance when nodes change: it begins by itself, by the same
code again (`Calm`). `unasked.Unasked` judges when.
"""

from __future__ import annotations

import random
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar, Final

from angarium.ids import Index, Micros, NodeId, Term
from angarium.machine.catalog import (
    BOUND_NAMES_LEVEL,
    BalanceBegin,
    BalanceEnd,
    CatalogMachine,
    Form,
    Labels,
    NodeDrain,
    NodeRegister,
    Reassign,
    Reassigned,
    TopicCreate,
    TopicSettings,
    encode,
)
from angarium.machine.outcomes import Refused
from angarium.node.balance import Calm, located, next_moves, planned
from angarium.node.steering import reassignment
from angarium.testing.sim.clock import MILLISECOND, SECOND
from angarium.testing.sim.forged_joins import ForgedJoins, name_of
from angarium.testing.sim.unasked import Unasked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from angarium.machine.catalog import CatalogCommand, CatalogOutcome, Node, Partition
    from angarium.node.balance import Move
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.testing.sim.node import SimNode
    from angarium.testing.sim.world import World

ROUND: Final = 100 * MILLISECOND

SIZES: Final = (0, 0, 300 << 20, 2 << 30)
"""What partitions are said to hold: for some of them it is worth to be swapped."""

SHARE_STALE: Final = 0.2
"""Plans that are carried out a good deal later, as by a leader that was paused."""

SHARE_CALLED_OFF: Final = 0.03
"""Rounds in which a run is called off."""

SHARE_CHANGED: Final = 0.3
"""Rounds, of those in which nothing is left to do, in which a node is drained or comes back."""

SHARE_CHANGED_MEANWHILE: Final = 0.1
"""The same of all other rounds."""

SHARE_REPEATED: Final = 0.3
"""Plans that are carried out twice, the second time by a leader that does not know of it."""

SHARE_FAILED: Final = 0.04
FAILED_FOR: Final = (200, 2_500)
"""Rounds in which the leader of the catalog is lost, and for how long nobody leads it (ms)."""

LATE_FOR: Final = (100, 2_000)
"""How much later still comes what it was about to begin (ms)."""

SHARE_LED: Final = 0.2
"""Rounds in which a partition goes to the leader that it prefers."""

CALM: Final = 400 * MILLISECOND
"""How long nodes are there, and the same, before a rebalance begins by itself."""

SHARE_AUTOMATIC: Final = 0.5
"""Runs in which nobody asks for it."""

SHARE_MOVED_HOUSE: Final = 0.3
"""Of the changes in these, those in which a node only gets another address."""

DONE_WITHIN: Final = 60 * SECOND
"""How long after healing everything may take to be where it belongs."""


class Rebalancing:
    """Drains, returns, plans, and carries out."""

    level: ClassVar[int] = BOUND_NAMES_LEVEL

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.machine = CatalogMachine()
        self.rng = random.Random(seed)
        self._sizes = {group: self.rng.choice(SIZES) for group in world.groups}
        self._stale: list[Move] = []
        self._dice = random.Random(seed ^ 0xFA11)
        self._led_again_at = 0
        self._late: list[tuple[int, list[Move]]] = []
        """What leaders that are lost have asked for, and when it comes."""
        self._chance = random.Random(seed ^ 0xA070)
        self.is_automatic = self._chance.random() < SHARE_AUTOMATIC
        self._is_undrained = not self.is_automatic
        """Whether every node came back at last, all at once, with nothing else going on."""
        self._is_looked_at = False
        """Whether somebody has looked, since everything was healed, for what is left to move."""
        self._calm = Calm(wait=CALM)
        self._unasked = Unasked(self, calm=CALM - ROUND)
        self._forged = ForgedJoins(self, seed ^ 0xF0E6)

    def start(self) -> None:
        """Enter nodes and partitions, and begin."""
        self.do(Form(cluster="rebalanced", level=self.level, is_automatic=self.is_automatic))
        labels = self.labels()
        for node in self.world.nodes.values():
            self.do(
                NodeRegister(
                    incarnation=node.incarnation,
                    addresses=(("wire", f"home:{node.id}"),),
                    labels=next(labels),
                    level_max=self.level,
                    name=name_of(node.id),
                )
            )
            self._forged.registered(node.id)
        partitions = len(self.world.groups)
        self.do(TopicCreate(name="t", partitions=partitions, settings=self.topic_settings()))
        self._tell_operator()
        self.world.scheduler.after(ROUND, self._round)

    def topic_settings(self) -> TopicSettings:
        """Return what the topic is created with."""
        return TopicSettings(replication=self.world.settings.replicas)

    def labels(self) -> Iterator[Labels]:
        """Yield where each node is."""
        nodes, replicas = self.world.settings.nodes, self.world.settings.replicas
        # One machine may be the home of two nodes, as long as there are machines enough.
        hosts = nodes - 1 if nodes > replicas and self.rng.random() < 0.5 else nodes
        zones = self.rng.choice(("", "ab", "abc"))
        for at in range(nodes):
            yield Labels("", zones[at % len(zones)] if zones else "", f"host-{at % hosts}")

    @property
    def is_done(self) -> bool:
        """Whether everything is where it belongs, and nothing is left to move."""
        return (
            self._is_looked_at
            and self._is_undrained
            and not self.machine.balance.is_running
            and not self.machine.balance.changed_at
            and not self._moving()
            and not any(map(self.is_on_leaving_node, self.partitions()))
        )

    def judge(self) -> None:
        """Say what is wrong after everything should have arrived."""
        if not self.is_done:
            self.object_to("it was not over 60 s after healing")
            return
        nodes = self.machine.nodes.placeable()
        counts = [self.machine.topics.loads.replicas.get(node.id, 0) for node in nodes]
        hosts = {node.labels.host for node in nodes}
        is_plain = len(hosts) == len(nodes) and len({node.labels.zone for node in nodes}) == 1
        if is_plain and max(counts) - min(counts) > 1:
            self.object_to(f"nodes are not even: {counts} replicas")

    # --- one round ----------------------------------------------------------------------------

    def _round(self) -> None:
        self.world.scheduler.after(ROUND, self._round)
        self._unasked.look()
        if self.world.scheduler.now < self._led_again_at:
            return
        if self.world.faults.active and self._dice.random() < SHARE_FAILED:
            self._fail()
            return
        self._forged.attempt()
        self._note_arrivals()
        self._is_looked_at = not self.world.faults.active
        if self.world.faults.active:
            self._disturb()
        elif self._has_to_be_asked() and not self._moving() and self._plan():
            self.do(BalanceBegin(time=self._now()))
        elif not self._is_undrained and all(map(self._is_whole, self.partitions())):
            self._undrain()
        self._drain()
        self._balance()
        self._tell_operator()
        self._prefer()
        self.finish_round()

    def finish_round(self) -> None:
        """Do what else a round brings: here nothing."""

    def published(self, node: SimNode, replica: PartitionReplica) -> None:
        """Hear of a publish that a node takes: here nobody minds where it comes from."""

    def _fail(self) -> None:
        """Lose the leader of the catalog; the next one knows what the catalog says, and no plan.

        What the last one was about to begin comes all the same, when it has long been another's.
        """
        away, late = self._dice.randrange(*FAILED_FOR), self._dice.randrange(*LATE_FOR)
        self._led_again_at = self.world.scheduler.now + away * MILLISECOND
        if self.machine.balance.is_running:
            due = self._led_again_at + late * MILLISECOND
            self._late.append((due, next_moves(self._plan(), self._moving())))
        successor = CatalogMachine()
        successor.restore(self.machine.snapshot())
        self.machine = successor
        self._calm.forget()
        self.world.note("catalog", "has another leader")

    def _now(self) -> Micros:
        return Micros(self.world.scheduler.now)

    def _disturb(self) -> None:
        is_idle = not self.machine.balance.is_running and not self._moving()
        if self.machine.balance.is_running and self.rng.random() < SHARE_CALLED_OFF:
            self.do(BalanceEnd(is_called_off=True))
            self._unasked.plans_anew()
        if self.rng.random() >= (SHARE_CHANGED if is_idle else SHARE_CHANGED_MEANWHILE):
            return
        if not self.is_automatic:
            self.change()
            self.do(BalanceBegin(time=self._now()))
        elif self._chance.random() < SHARE_MOVED_HOUSE:
            self._unasked.judge_return(self._move_house)
        else:
            self.change()

    def _has_to_be_asked(self) -> bool:
        """Tell whether nothing begins if nobody says so: it was called off, or a topic altered."""
        balance = self.machine.balance
        return not balance.is_running and not balance.changed_at

    def _move_house(self) -> None:
        """Let a node register under another address, as after a restart elsewhere."""
        node = self._chance.choice(sorted(self.machine.nodes.by_id))
        known = self.machine.nodes.by_id[node]
        self.do(
            NodeRegister(
                node=node,
                incarnation=known.incarnation,
                addresses=(("wire", f"host:{self.world.scheduler.now}"),),
                labels=known.labels,
                level_max=self.level,
                time=self._now(),
                name=known.name,
            )
        )
        self._forged.registered(node)

    def change(self) -> None:
        """Change something about the cluster, so that there is something to even out."""
        self.change_nodes()

    def change_nodes(self) -> None:
        """Drain a node, or let it come back."""
        node = self.rng.choice(sorted(self.machine.nodes.by_id.values(), key=lambda one: one.id))
        left = [one for one in self.machine.nodes.placeable() if one.id != node.id]
        if node.draining or self.may_do_without(left):
            self.do(NodeDrain(node=node.id, draining=not node.draining))

    def _undrain(self) -> None:
        self._is_undrained = True
        for node in sorted(self.machine.nodes.by_id):
            self.do(NodeDrain(node=node, draining=False))

    def may_do_without(self, left: list[Node]) -> bool:
        """Tell whether the nodes that would be left can hold everything."""
        topics = self.machine.topics
        return all(topics.may_move(partition, left) for partition in self.partitions())

    def _drain(self) -> None:
        nodes = self.machine.nodes.placeable()
        draining = {one.id for one in self.machine.nodes.by_id.values() if one.draining}
        for partition in self.partitions():
            wish = reassignment(self.machine.topics, partition, nodes, draining)
            if wish is not None:
                self.do(wish)

    def is_on_leaving_node(self, partition: Partition) -> bool:
        """Tell whether a partition has yet to go from a node that is drained."""
        held = (*partition.replicas, *partition.readers)
        return any(self.machine.nodes.by_id[one].draining for one in held)

    def _balance(self) -> None:
        machine, world = self.machine, self.world
        stale, self._stale = self._stale, []
        for due, moves in list(self._late):
            if due <= world.scheduler.now:
                self._late.remove((due, moves))
                stale += moves
        if stale:
            self._begin(stale)
            self._unasked.plans_anew()
        is_calm = self._is_calm()
        if not machine.balance.is_running:
            if machine.balance.changed_at and is_calm:
                self._begin_unasked()
            return
        if self.away() or (machine.balance.is_by_itself and not is_calm):
            return
        moving, plan = self._moving(), self._plan()
        if not plan and not moving:
            self.do(BalanceEnd(begun_at=machine.balance.begun_at))
            return
        moves = next_moves(plan, moving)
        if self._dice.random() < SHARE_REPEATED:
            due = world.scheduler.now + self._dice.randrange(*LATE_FOR) * MILLISECOND
            self._late.append((due, list(moves)))
        if self.rng.random() < SHARE_STALE:
            self._stale = moves
        else:
            self._unasked.judge_moves(self._begin(moves))

    def away(self) -> list[NodeId]:
        """Return the nodes that should have replicas and cannot be reached."""
        nodes = self.world.nodes
        return [one.id for one in self.machine.nodes.placeable() if not nodes[one.id].is_up]

    def _is_calm(self) -> bool:
        left = self._calm.look(
            changed_at=self.machine.balance.changed_at,
            is_anybody_away=bool(self.away()),
            now=self.world.scheduler.now,
        )
        return left <= 0

    def _begin_unasked(self) -> None:
        if self._moving() or not all(map(self._is_whole, self.partitions())):
            return
        self._unasked.judge_beginning()
        self.do(BalanceBegin(time=self._now(), changed_at=self.machine.balance.changed_at))

    def _is_whole(self, partition: Partition) -> bool:
        leader = self.world.operator.leader(partition.group)
        if leader is None:
            return False
        full = self.world.operator.full_replicas(partition.group, leader)
        return set(partition.replicas) <= set(full)

    def _plan(self) -> list[Move]:
        return planned(self.machine.nodes.placeable(), located(self.machine, self._sizes))

    def _begin(self, moves: Sequence[Move]) -> list[Move]:
        """Carry out what may be; return that."""
        begun = []
        for move in moves:
            partition = self.machine.topics.partitions[move.group]
            leader = self.world.operator.leader(move.group)
            if leader is None:
                continue
            full = self.world.operator.full_replicas(move.group, leader)
            if move.arriving is not None and not set(partition.replicas) <= set(full):
                continue
            command = Reassign(group=move.group, replicas=move.target, replaces=move.replicas)
            if not isinstance(self.do(command), Refused):
                if partition.replicas != move.replicas:
                    name = f"group {move.group}"
                    self.object_to(f"{name}: it was planned while it lived on {move.replicas}")
                self.judge_step(partition, move.target)
                begun.append(move)
        return begun

    def _note_arrivals(self) -> None:
        for partition in self._moving():
            votes = set(partition.target) | ({partition.witness} if partition.witness else set())
            if self.world.operator.is_settled_as(partition.group, votes):
                self.do(Reassigned(group=partition.group, replicas=partition.target))

    def _tell_operator(self) -> None:
        for partition in self.partitions():
            voters = set(partition.target or partition.replicas)
            self.world.operator.wanted[partition.group] = voters
            self.world.operator.readers[partition.group] = set(partition.readers) - voters
            if partition.witness:
                self.world.operator.witness[partition.group] = partition.witness

    def _prefer(self) -> None:
        if self.rng.random() < SHARE_LED:
            partition = self.rng.choice(self.partitions())
            if not partition.target:
                self.world.operator.transfer(partition.group, partition.replicas[0])

    # --- rules --------------------------------------------------------------------------------

    def judge_step(self, before: Partition, target: tuple[NodeId, ...]) -> None:
        """Say what is wrong with a step of a rebalance."""
        name = f"group {before.group} from {before.replicas} to {target}"
        if before.target:
            self.object_to(f"{name}: it was on its way to {before.target}")
        witness = self.machine.topics.partitions[before.group].witness
        votes = {*target, witness} if witness else set(target)
        if 2 * len(votes & set(before.voters)) <= len(before.voters):
            self.object_to(f"{name}: no majority stays")
        if self._sharing(target, "host"):
            self.object_to(f"{name}: two replicas share a host")
        if self.is_spread(before) and self._sharing(target, "zone") > self._sharing(
            before.replicas, "zone"
        ):
            self.object_to(f"{name}: more of them share a zone")

    def is_spread(self, partition: Partition) -> bool:  # noqa: ARG002
        """Tell whether the replicas of a partition are to be in as many zones as there are."""
        return True

    def _sharing(self, replicas: Sequence[NodeId], label: str) -> int:
        labels = [getattr(self.machine.nodes.by_id[one].labels, label) for one in replicas]
        return sum(one == other for one, other in combinations(labels, 2))

    def object_to(self, what: str) -> None:
        """Note that a rule was broken."""
        self.world.history.incidents.append(f"C12: a rebalance broke a rule: {what}")

    # --- the catalog --------------------------------------------------------------------------

    def partitions(self) -> list[Partition]:
        """Return every partition."""
        return list(self.machine.topics.partitions.values())

    def _moving(self) -> list[Partition]:
        return [one for one in self.partitions() if one.target]

    def do(self, command: CatalogCommand) -> CatalogOutcome:
        """Enter something into the catalog."""
        index = Index(self.machine.applied_index + 1)
        outcome = self.machine.apply(index, Term(1), encode(command)).outcomes[0]
        self.world.note("catalog", type(command).__name__, command, outcome)
        return outcome
