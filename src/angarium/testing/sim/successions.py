"""A schedule in which the catalog's majority is lost, the rest goes on as another cluster, and the
dead return.

The catalog of a simulated cluster has no replicas, so a group with records stands for its group: it
is renewed by the same code, on the simulated disk, with power cuts between any two steps. Who talks
to whom is decided by the same handshake. Not simulated: what the catalog holds, and partitions that
are recovered after it (`majorities`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from angarium.errors import AngariumError
from angarium.ids import Incarnation, Index, Term
from angarium.log import folder_identity, successions
from angarium.log.folder_identity import FolderIdentity
from angarium.log.successions import Succession
from angarium.machine.catalog import CatalogMachine
from angarium.node import succession
from angarium.replica.catalog_copy import CatalogCopy
from angarium.testing.sim.majorities import end_of, forgive
from angarium.testing.sim.script import GROUP, THREE, let_pass, schedule, shuffled, strike, until
from angarium.wire import Hello, Role
from angarium.wire.errors import ClusterSucceeded
from angarium.wire.handshake import SuccessorHello, completed, negotiated
from angarium.wire.wire_limits import WireLimits

if TYPE_CHECKING:
    import random

    from angarium.node.succession import End
    from angarium.testing.sim.node import SimNode
    from angarium.testing.sim.world import World

FIRST, SECOND = f"{1:032x}", f"{2:032x}"
LIMITS = WireLimits()


class Left(NamedTuple):
    """What is left on the disk of a node that is off."""

    node: SimNode
    copy: CatalogCopy
    end: int
    """Where records end with all of it."""


class Greetings:
    """Who talks to whom: what the greeting of every connection decides."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._nodes = {node.name: node for node in world.nodes.values()}
        self._known: dict[str, tuple[int, str]] = {}
        """In which life of a node its cluster was looked up."""
        self._clients: dict[str, str] = {}
        """Of which cluster each client was last that has talked to anybody."""

    def cluster_of(self, name: str) -> str:
        """Return to which cluster a node or client belongs."""
        if name not in self._nodes:
            return self._clients.setdefault(name, FIRST)
        node = self._nodes[name]
        life, cluster = self._known.get(name, (0, ""))
        if life != node.life:  # it changes only while the node is off
            identity = folder_identity.load(node.disk)
            cluster = FIRST if identity is None else f"{identity.cluster_id:032x}"
            self._known[name] = node.life, cluster
        return cluster

    def are_all_moved(self) -> bool:
        """Tell whether every client has heard of the second cluster."""
        return set(self._clients.values()) == {SECOND}

    def allows(self, one: str, other: str) -> bool:
        """Let two ends greet each other; False if one refuses the other."""
        if self.cluster_of(one) == self.cluster_of(other):
            return True
        ours, theirs = self._hello(one), self._hello(other)
        try:
            negotiated(ours, theirs)
        except ClusterSucceeded as succeeded:
            for name in (one, other):
                if name in self._nodes and self.cluster_of(name) == succeeded.former:
                    self._world.scheduler.after(0, self._end, self._nodes[name])
            return False
        except AngariumError:
            return False
        for name, hello in ((one, theirs), (other, ours)):
            # As `client.pool` does it. Planted as clients-go-back-to-the-former-cluster.
            if name in self._clients and hello.successor_of(self._clients[name]) is not None:
                self._clients[name] = hello.cluster
        return True

    def _end(self, node: SimNode) -> None:
        """The node hears that its cluster went on without it: it ends, and does not start again."""
        if node.host is not None and self.cluster_of(node.name) == FIRST:
            node.crash()
            successions.note_left(node.disk, "it went on without this node")

    def _hello(self, name: str) -> Hello:
        cluster = self.cluster_of(name)
        if name not in self._nodes:
            return completed(Hello(role=Role.CLIENT, cluster=cluster), LIMITS)
        number = self._nodes[name].id
        if cluster == FIRST:
            return completed(Hello(role=Role.PEER, cluster=cluster, node=number), LIMITS)
        former = {FIRST: "by what one follows"}
        hello = SuccessorHello(role=Role.PEER, cluster=cluster, node=number, predecessors=former)
        return completed(hello, LIMITS)


@schedule(replace(THREE, nodes=5, replicas=5, producers=2))
def lost_catalog(world: World) -> None:
    """Three of five are lost; the best of the others goes on as another cluster; all come back."""
    rng = world.faults.rng
    for node in world.nodes.values():
        identity = FolderIdentity(cluster_id=1, node_id=node.id, incarnation=node.incarnation)
        folder_identity.put(node.disk, identity)
    greetings = Greetings(world)
    world.network.gate = greetings.allows
    let_pass(world, 500)
    dead, left = (nodes := shuffled(world))[:3], nodes[3:]
    if rng.random() < 0.7:  # one that is behind, in a term of its own or in an earlier one
        others = {one.name for one in nodes if one is not left[0]}
        strike(
            world,
            "partition",
            left[0],
            lambda: world.network.cut_between({left[0].name}, {*others, *world.client_names()}),
        )
        let_pass(world, rng.choice((200, 800)))
    for node in dead:
        strike(world, "lost", node, node.lose_power if rng.random() < 0.5 else node.crash)
    world.network.heal()
    let_pass(world, rng.choice((20, 600)))
    for node in left:
        strike(world, "stopped", node, node.crash)
    found = [_left_on(node) for node in left]
    chosen = _chosen(found)
    wanted = _succession(chosen.copy, rng)
    if rng.random() < 0.3 and _is_cut_short(world, chosen.node, wanted):
        _all_come_back_meanwhile(world, chosen.node)
        return
    best = max(found, key=lambda one: succession.end_of(one.copy))
    world.operator.is_member = lambda node: greetings.cluster_of(node.name) == SECOND
    # Who has not come back counts as draining: nothing is wanted of it.
    world.operator.wanted[GROUP] = {chosen.node.id}
    void = [node.replica_in(GROUP) for node in nodes]
    forgive(world, best.end, chosen.copy.last_index, void)
    successions.carry_out(chosen.node.disk, wanted, group=GROUP)
    chosen.node.boot()
    until(world, lambda: world.operator.leader(GROUP) is not None)
    for one in found:
        if one is not chosen:
            _follow(world, one, succession.end_of(chosen.copy))
    until(world, greetings.are_all_moved)
    let_pass(world, rng.choice((100, 800)))
    # The dead find each other before anybody of the others, and clients find them, perhaps alone.
    living, gone = ({one.name for one in some} for some in (left, dead))
    if rng.random() < 0.7:
        gone.update(world.client_names())
    strike(world, "partition", dead[0], lambda: world.network.cut_between(living, gone))
    for node in dead:
        node.boot()
    let_pass(world, 1_200)
    world.network.heal()
    let_pass(world, 500)
    for node in dead:
        assert node.host is None, "whoever is reached by the others has heard, and has ended"
        if rng.random() < 0.5:
            _follow(world, _left_on(node), succession.end_of(chosen.copy))
        else:
            _begin_empty(node, into=2)
    let_pass(world, 500)


def _left_on(node: SimNode) -> Left:
    """Look at the disk of a node that is off, as `replica.catalog_copy` does for the catalog."""
    host = node.opened()
    replica = host.replicas[GROUP]
    raft, state = replica.raft, replica.raft.conf_state
    copy = CatalogCopy(
        own=raft.id,
        last_term=Term(replica.storage.term(raft.last_index)),
        last_index=raft.last_index,
        commit=raft.commit,
        voters=tuple(dict.fromkeys((*state.voters, *state.voters_outgoing))),
        machine=CatalogMachine(),
    )
    end = end_of(replica)
    host.close()
    node.disk.crash()
    return Left(node, copy, end)


def _chosen(found: list[Left]) -> Left:
    """Go on with the first one that has nothing against it, as an operator does."""
    for one in found:
        others = [succession.end_of(other.copy) for other in found]
        if not succession.objection_to_going_on(one.copy, others):
            return one
    raise AssertionError("one of them has most")


def _succession(copy: CatalogCopy | None, rng: random.Random) -> Succession:
    """Say what becomes of a folder; without a copy, it follows."""
    return Succession(
        cluster=SECOND,
        previous=FIRST,
        incarnation=Incarnation(rng.getrandbits(48)),
        alone_from=Index(0) if copy is None else copy.last_index,
        last_term=Term(0) if copy is None else copy.last_term,
    )


def _is_cut_short(world: World, node: SimNode, wanted: Succession) -> bool:
    """Begin, and lose power between two steps; then a supervisor starts the node."""
    steps = list(successions.steps(node.disk, wanted, GROUP))
    successions.begin(node.disk, wanted)
    for step in steps[: world.faults.rng.randrange(1, len(steps))]:
        step()
    strike(world, "power_loss", node, node.disk.power_loss)
    found = successions.load(node.disk)
    if found is None or found.is_done:
        return False
    if is_startable(node):
        node.boot()
    return True


def is_startable(node: SimNode) -> bool:
    """Tell whether a node starts on what it has, as `Node.start` does."""
    found = successions.load(node.disk)
    return (found is None or found.is_done) and successions.left(node.disk) is None


def _all_come_back_meanwhile(world: World, begun: SimNode) -> None:
    """Nobody was lost after all: the others go on as before, and the one that had begun is new."""
    for node in world.nodes.values():
        if node is not begun:
            node.boot()
    let_pass(world, 1_500)
    if begun.host is not None:
        begun.crash()
    _begin_empty(begun, into=1)
    let_pass(world, 500)


def _follow(world: World, one: Left, end: End) -> None:
    """Let a node follow with its disk if it may; if not, it begins with an empty one."""
    node = one.node
    identity = FolderIdentity(cluster_id=1, node_id=node.id, incarnation=node.incarnation)
    invited = succession.invitation(previous=FIRST, cluster=SECOND, end=end)
    if succession.objection_to_following(invited, identity, one.copy, cluster=FIRST):
        _begin_empty(node, into=2)
        return
    wanted = _succession(None, world.faults.rng)
    successions.begin(node.disk, wanted)
    successions.carry_out(node.disk, wanted, group=GROUP)
    node.boot()
    world.operator.wanted[GROUP].add(node.id)


def _begin_empty(node: SimNode, *, into: int) -> None:
    """Empty a disk and join."""
    node.wipe()
    identity = FolderIdentity(cluster_id=into, node_id=node.id, incarnation=node.incarnation)
    folder_identity.put(node.disk, identity)
    node.boot()
    node.world.operator.wanted[GROUP].add(node.id)
