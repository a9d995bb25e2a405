"""The next step from one membership to another. Pure: what is, what should be, what to propose.

The node's placement and the simulator's operator both decide by this, so that what is simulated is
what runs.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from angarium.ids import is_witness, node_of
from angarium.machine.catalog import Reassign
from angarium.machine.catalog.placement import host_of
from angarium.raft import Change, ChangeKind, ConfChange

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from angarium.ids import Index, NodeId, ReplicaId
    from angarium.machine.catalog.topics import Topics
    from angarium.machine.catalog.values import Node, Partition
    from angarium.raft.messages import ConfState
    from angarium.replica.replica import Replica

NEAR_ENTRIES: Final = 64
"""A replica that lacks no more entries than this may be handed a leadership: it takes no time."""


def electors(nodes: Iterable[Node]) -> list[Node]:
    """Return all nodes, those first that are to vote on the catalog.

    The oldest node of every host comes before the second of any, so that losing one machine does
    not cost a majority as long as there are machines enough; likewise, of hosts, those of different
    regions. Draining nodes come last.
    """
    on_host: Counter[str] = Counter()
    ranked = []
    for node in sorted(nodes, key=lambda one: (one.draining, one.id)):
        ranked.append((node.draining, on_host[host_of(node)], node.id, node))
        on_host[host_of(node)] += 1
    in_region: Counter[tuple[bool, int, str]] = Counter()
    spread = []
    for draining, rank, age, node in sorted(ranked, key=lambda one: one[:3]):
        circle = draining, rank, node.labels.region
        spread.append((draining, rank, in_region[circle], age, node))
        in_region[circle] += 1
    return [node for *_, node in sorted(spread, key=lambda one: one[:4])]


def catalog_voters(nodes: Iterable[Node], *, voters_max: int) -> list[Node]:
    """Return the few nodes, of different hosts, that vote on the catalog; all others listen.

    Whoever has not been heard of since the cluster was recovered is not waited for: the catalog
    would lack votes that nobody can give, and nobody could take the place of a lost node.
    """
    ranked = electors(one for one in nodes if not one.gone)
    return ranked[: voter_count(len(ranked), voters_max=voters_max)]


def voter_count(nodes: int, *, voters_max: int) -> int:
    """Return how many of so many nodes vote on the catalog."""
    count = min(voters_max, nodes)
    count -= 1 - count % 2  # an even number of voters only costs availability
    return max(count, 1)


def needs_steering(
    state: ConfState,
    *,
    voters: Collection[ReplicaId],
    learners: Collection[ReplicaId] = (),
    is_resting: bool,
    is_moving: bool = False,
) -> bool:
    """Tell whether a leader has to look after its group's membership now.

    A group that rests has the members it should have, until somebody says that it should have
    others: a partition moves, or a node came back with another disk and so as another replica.
    """
    is_astray = (
        bool(state.voters_outgoing)
        or set(state.voters) != set(voters)
        or set(state.learners) != set(learners)
    )
    return not is_resting or is_moving or is_astray


def reassignment(
    topics: Topics, partition: Partition, nodes: Sequence[Node], draining: Collection[NodeId]
) -> Reassign | None:
    """Return what moves a partition to where it belongs: off leaving nodes, home, to its readers.

    None if it is there, or cannot go: a refusal would be an entry of the catalog, too, and come
    again with every round.
    """
    wanted = partition.target or partition.replicas
    # Where the witness goes follows from who may hold replicas at all.
    leaving = tuple(one for one in wanted if one in draining)
    may_leave = bool(leaving) and topics.may_move(partition, nodes)
    if may_leave or topics.is_astray(partition, nodes):
        return Reassign(group=partition.group, leaving=leaving)
    return None


def preferred_leader(
    replicas: Sequence[NodeId],
    ranks: Mapping[NodeId, int],
    *,
    leader: NodeId,
    is_here: Callable[[NodeId], bool],
) -> NodeId:
    """Return who should lead instead of `leader`: the first of the replicas.

    While that one is away, one that is there and in a better region than the leader is; by `ranks`,
    0 is the best.
    """
    first, *others = replicas
    if first == leader or is_here(first):
        return first
    better = [one for one in others if ranks[one] < ranks[leader] and is_here(one)]
    return min(better, key=ranks.__getitem__, default=first)


def led_by(partition: Partition, node: NodeId) -> Reassign:
    """Return what lets another replica of a partition be its preferred leader."""
    others = (one for one in partition.replicas if one != node)
    return Reassign(group=partition.group, replicas=(node, *others), replaces=partition.replicas)


def lacks_little(replica: Replica, other: ReplicaId) -> bool:
    """Tell whether this leader may hand over to another replica without a wait."""
    return (replica.raft.match(other) or 0) + NEAR_ENTRIES >= replica.raft.last_index


def has_caught_up(match: Index | None, settled_index: Index) -> bool:
    """Tell whether a replica that has `match` may be relied upon.

    It has everything that was committed a while ago; how many entries came since does not matter.
    """
    return match is not None and match > 0 and match >= settled_index


def in_sync(
    replica: Replica,
    *,
    is_wanted: Callable[[ReplicaId], bool],
    is_here: Callable[[ReplicaId], bool],
) -> tuple[NodeId, ...]:
    """Return whose replicas this leader can vouch for: wanted, there, and full.

    While the membership changes nobody counts: until everybody has heard that the change is done,
    those who leave are needed for a majority, too.
    """
    state = replica.raft.conf_state
    if state.voters_outgoing or not replica.is_membership_heard:
        return ()
    found = (
        node_of(one)
        for one in state.voters
        if is_wanted(one)
        and (one == replica.id or is_here(one))
        and has_caught_up(replica.raft.match(one), replica.settled_index)
    )
    return tuple(sorted(found))


def next_change(
    state: ConfState,
    *,
    voters: Collection[ReplicaId],
    learners: Collection[ReplicaId],
    settled_index: Index,
    match: Callable[[ReplicaId], Index | None],
    is_here: Callable[[ReplicaId], bool],
) -> ConfChange | None:
    """Return what to propose next so that `voters` vote and `learners` listen, or None.

    Newcomers listen first. Nobody stops voting before its successor has caught up with
    what was committed when the leader last set a mark, at `settled_index`.
    """
    if state.voters_outgoing:
        return None  # a joint change is under way and ends by itself
    present = {*state.voters, *state.learners}
    newcomers = sorted({*voters, *learners} - present)
    if newcomers:
        return ConfChange((Change(ChangeKind.ADD_LEARNER, newcomers[0]),))

    promoted = [
        one for one in state.learners if one in voters and has_caught_up(match(one), settled_index)
    ]
    demoted = [one for one in state.voters if one in learners]
    leaving = [one for one in sorted(present) if one not in voters and one not in learners]
    voting = {*promoted, *(one for one in state.voters if one in voters)}
    missing = set(voters) - voting
    is_copied = all(
        is_here(one) and has_caught_up(match(one), settled_index) for one in _full(state.voters)
    )

    def may_go(one: ReplicaId) -> bool:
        """Every present voter is needed until the newcomers have caught up, but for two."""
        if not is_witness(one):
            # A full replica does not wait for a witness, which may have to wait for it to go.
            return not _full(missing)
        # One takes another's place, whatever else is missing: with two of them a majority would be
        # one more, and they may both lack what the others' logs have forgotten (seed 860923).
        if any(map(is_witness, voting)):
            return True
        # A witness makes room where its own node is to have records: a node is one of the two at a
        # time. Without it all others have to be there, or nobody could commit.
        is_in_the_way = node_of(one) in map(node_of, _full(missing))
        return not missing or (is_in_the_way and is_copied)

    demoted = [one for one in demoted if may_go(one)]
    leaving = [one for one in leaving if one in state.learners or may_go(one)]
    changes = (
        *(Change(ChangeKind.ADD_VOTER, one) for one in promoted),
        *(Change(ChangeKind.ADD_LEARNER, one) for one in demoted),
        *(Change(ChangeKind.REMOVE, one) for one in leaving),
    )
    return ConfChange(changes) if changes else None


def _full(replicas: Iterable[ReplicaId]) -> list[ReplicaId]:
    return [one for one in replicas if not is_witness(one)]
