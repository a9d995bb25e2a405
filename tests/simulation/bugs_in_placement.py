"""Bugs planted where it is decided which replicas count, and which disk may be given up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import structs
from tests.simulation.bugs_in_the_log import older_snapshot_agreed_with
from tests.simulation.planting import Replaced, bug
from tests.simulation.variants import rebalanced, scripted

from angarium.log import renewals, successions
from angarium.log.halts import Halts
from angarium.log.renewals import NEVER_ALONE, Renewal
from angarium.machine.catalog import machine as catalog_machine
from angarium.machine.catalog.nodes import Nodes
from angarium.machine.catalog.topics import Topics
from angarium.node import recovering, succession, survivors
from angarium.node.balance import Calm, next_moves
from angarium.node.balance import replicas as evening
from angarium.node.balance.layout import Layout
from angarium.node.recollections import Recollections
from angarium.replica import opening
from angarium.replica.fullness import Fullness
from angarium.replica.own_ids import OwnReplicaIds
from angarium.replica.replica import Replica
from angarium.replica.roster import Roster
from angarium.testing.sim import node as sim_node
from angarium.testing.sim import operator, rebalancing
from angarium.testing.sim import successions as sim_successions
from angarium.testing.sim.clock import SECOND
from angarium.wire import Role, handshake
from angarium.wire.handshake import Peer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from angarium.ids import Index, NodeId, RaftGroupId, ReplicaId
    from angarium.log.disk import Disk
    from angarium.log.successions import Succession
    from angarium.machine.catalog import Moving, Node, Partition, Reassign, Recovery
    from angarium.machine.outcomes import Done, Refused
    from angarium.node.balance import Move
    from angarium.node.recovering import Due
    from angarium.node.survivors import Survivor
    from angarium.raft import RaftNode
    from angarium.testing.sim.node import SimNode
    from angarium.wire import Hello


@bug(seeds_max=5, run=scripted("replaced-one-by-one"))
def groups_at_rest_are_not_steered() -> Iterator[Replaced]:
    """A group rests on the word of a member that is gone, and is left alone as long as it rests."""
    original = Replica.may_rest

    def may_rest(replica: Replica) -> bool:
        state = replica.raft.conf_state
        replica._fullness.heard.update(state.voters, state.learners)
        return original(replica)

    def woken(replica: Replica) -> None:
        replica.is_resting = False

    def doubt(_: Replica, __: NodeId) -> None:
        pass

    def needs_steering(*_: Any, is_resting: bool, is_moving: bool = False, **__: Any) -> bool:
        return not is_resting or is_moving

    yield Replaced(Replica, "may_rest", may_rest)
    yield Replaced(Replica, "woken", woken)
    yield Replaced(Replica, "doubt", doubt)
    yield Replaced(operator, "needs_steering", needs_steering)


@bug(seeds_max=5, run=scripted("replaced-one-by-one"))
def empty_replica_stands_for_its_group() -> Iterator[Replaced]:
    """A replica that nobody has filled is called ready, and answers readers with nothing."""

    def shortfall(_: Fullness, __: RaftNode, ___: Index) -> str:
        return ""

    yield Replaced(Fullness, "shortfall", shortfall)


@bug(seeds_max=10, run=scripted("replaced-when-allowed"))
def next_disk_given_up_too_early() -> Iterator[Replaced]:
    """A disk may go although a partition has too few full replicas without it."""

    def objection(*_: Any, **__: Any) -> None:
        return None

    yield Replaced(operator, "objection", objection)


@bug(seeds_max=10, run=scripted("rolled-back"))
def older_copy_let_in() -> Iterator[Replaced]:
    """A node whose disk was replaced by an older copy of itself is greeted like any other."""

    def objection(_: Recollections, __: ReplicaId, ___: int) -> None:
        return None

    yield Replaced(Recollections, "objection", objection)


@bug(seeds_max=20, run=scripted("rolled-back-at-once"))
def marks_saved_late() -> Iterator[Replaced]:
    """What other nodes say of their logs is written down every ten seconds."""
    yield Replaced(sim_node, "SAVING", 10 * SECOND)


@bug(seeds_max=10, run=scripted("rolled-back"))
def older_snapshot_taken() -> Iterator[Replaced]:
    """A snapshot is opened although the log that goes on from it has forgotten more."""

    yield Replaced(opening, "_agreed_hard_state", older_snapshot_agreed_with)


@bug(seeds_max=5, run=scripted("contradicted"))
def halt_forgotten_by_a_restart() -> Iterator[Replaced]:
    """A replica that contradicted its leader takes part again when its process has restarted."""

    def note(_: Halts, __: RaftGroupId, ___: str) -> None:
        pass

    yield Replaced(Halts, "note", note)


@bug(seeds_max=40, run=rebalanced)
def zones_forgotten_by_a_rebalance() -> Iterator[Replaced]:
    """Replicas go to whichever node has fewest, though another one is in the same zone."""

    def is_allowed(*_: Any) -> bool:
        return True

    yield Replaced(Layout, "_is_allowed", is_allowed)


@bug(seeds_max=5, run=scripted("lost-majority"))
def void_replicas_stay() -> Iterator[Replaced]:
    """Nodes that were lost come back as what they were, and are a majority of it."""

    def due(
        recoveries: Iterable[Recovery], *, node: NodeId, own_in: Callable[[RaftGroupId], ReplicaId]
    ) -> Iterator[Due]:
        return (one for one in right(recoveries, node=node, own_in=own_in) if one.has_source)

    right = recovering.due
    yield Replaced(sim_node, "due", due)


@bug(seeds_max=10, run=scripted("lost-majority"))
def served_before_the_catalog_is_known() -> Iterator[Replaced]:
    """A node that has started serves at once, whether or not its replicas are void."""

    def await_catalog(_: Roster) -> None:
        pass

    yield Replaced(Roster, "await_catalog", await_catalog)


@bug(seeds_max=5, run=scripted("lost-majority"))
def former_voters_counted_after_a_recovery() -> Iterator[Replaced]:
    """The replica that a partition goes on with forgets when it opens that it is alone."""

    def alone_from(_: OwnReplicaIds, __: RaftGroupId) -> Index:
        return NEVER_ALONE

    yield Replaced(OwnReplicaIds, "alone_from", alone_from)


@bug(seeds_max=10, run=scripted("lost-majority"))
def weakest_survivor_gone_on_with() -> Iterator[Replaced]:
    """A partition goes on with any replica that is left, and not with the one that has most."""

    def best(left: Iterable[Survivor]) -> Survivor | None:
        return min(left, key=lambda one: (one.last_term, one.last_index), default=None)

    yield Replaced(survivors, "best", best)


@bug(seeds_max=20, run=scripted("lost-catalog"))
def newer_catalog_passed_over() -> Iterator[Replaced]:
    """A cluster goes on with any catalog that is left, and not with the one that ends last."""

    def objection_to_going_on(*_: Any) -> str:
        return ""

    yield Replaced(succession, "objection_to_going_on", objection_to_going_on)


@bug(seeds_max=10, run=scripted("lost-catalog"))
def clients_go_back_to_the_former_cluster() -> Iterator[Replaced]:
    """A client that has heard of the recovered cluster talks to nodes of the former one again."""

    def negotiated(ours: Hello, theirs: Hello) -> Peer:
        if Role.CLIENT in (ours.role, theirs.role):
            return Peer(hello=theirs, version=1, features={})
        return right(ours, theirs)

    right = handshake.negotiated
    yield Replaced(sim_successions, "negotiated", negotiated)


@bug(seeds_max=40, run=scripted("lost-catalog"))
def alone_before_the_cluster_is_another() -> Iterator[Replaced]:
    """A node is its catalog's only voter under the old id, and starts before all is done."""

    def steps(disk: Disk, wanted: Succession, group: RaftGroupId) -> Iterator[Callable[[], None]]:
        renewal = Renewal(wanted.incarnation, wanted.alone_from)
        yield lambda: renewals.save(disk, group, renewal)
        yield lambda: None
        yield from right(disk, wanted, group)

    def is_startable(_: SimNode) -> bool:
        return True

    right = successions.steps
    yield Replaced(successions, "steps", steps)
    yield Replaced(sim_successions, "is_startable", is_startable)


@bug(seeds_max=5, run=rebalanced)
def names_not_bound() -> Iterator[Replaced]:
    """A node's number may be registered with the certificate of another node."""

    def lacks_invitation(*_: Any) -> None:
        pass

    yield Replaced(Nodes, "lacks_invitation", lacks_invitation)


@bug(seeds_max=5, run=rebalanced)
def registrations_change_unasked() -> Iterator[Replaced]:
    """What the catalog has of a node that answers is changed without asking it."""

    def changed_by(*_: Any) -> None:
        pass

    yield Replaced(Nodes, "changed_by", changed_by)


@bug(seeds_max=40, run=rebalanced)
def stale_plans_carried_out() -> Iterator[Replaced]:
    """A move of an old plan begins although its partition lives elsewhere by now, or is moving."""
    original = Topics.reassign

    def reassign(
        topics: Topics, command: Reassign, nodes: Sequence[Node]
    ) -> Moving | Done | Refused:
        return original(topics, structs.replace(command, replaces=()), nodes)

    yield Replaced(Topics, "reassign", reassign)


@bug(seeds_max=20, run=rebalanced)
def rebalance_begun_before_all_is_calm() -> Iterator[Replaced]:
    """What nobody asked for begins as soon as nodes have changed, and others may come or go yet."""

    def look(*_: Any, **__: Any) -> float:
        return 0

    yield Replaced(Calm, "look", look)


@bug(seeds_max=20, run=rebalanced)
def moved_node_taken_for_a_newcomer() -> Iterator[Replaced]:
    """A node that comes back under another address is a reason to move replicas."""

    def sites(nodes: Nodes) -> list[Any]:
        return [(one.id, one.labels, one.addresses) for one in nodes.placeable()]

    yield Replaced(catalog_machine, "sites", sites)


@bug(seeds_max=20, run=rebalanced)
def rebalance_that_never_rests() -> Iterator[Replaced]:
    """Nodes that are even but for one replica give it to each other, plan after plan."""

    yield Replaced(evening, "APART_MIN", 1)


@bug(seeds_max=20, run=rebalanced)
def whole_way_gone_at_once() -> Iterator[Replaced]:
    """All that a plan has for a partition is done in one step, whoever of its voters is left."""

    def at_once(plan: Sequence[Move], under_way: Iterable[Partition]) -> list[Move]:
        last = {move.group: move.target for move in plan}
        return [move._replace(target=last[move.group]) for move in next_moves(plan, under_way)]

    yield Replaced(rebalancing, "next_moves", at_once)
