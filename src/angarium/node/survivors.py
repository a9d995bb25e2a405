"""Which replica a partition goes on with when a majority is lost for good. Pure.

Of the replicas that are left, the one whose log ends in the highest term, and is longest among
those, has every committed entry that any of them has (Raft §5.4.1): what is lost by going on with
it is what none of them had. When that is allowed at all is decided here, too.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from angarium.ids import Index, NodeId, Offset, ReplicaId, Term, is_witness, node_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence


class Survivor(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What a node says of its replica of a partition, also to other nodes."""

    node: NodeId
    replica: ReplicaId
    last_term: Term
    last_index: Index
    commit: Index
    told_commit: Index = Index(0)
    """The highest commit index that a leader has told it of."""
    end_offset: Offset
    """Where its committed records end, as far as it knows."""
    voters: tuple[ReplicaId, ...]
    """Who votes, in both halves of a membership that is changing."""
    listeners: tuple[ReplicaId, ...] = ()
    halted: str = ""
    """Why it has stopped for good, if it has: it is neither counted nor gone on with."""
    leads: bool = False
    silent_ms: dict[NodeId, int] = {}
    """Nodes that it cannot reach, and for how long."""
    groups: tuple[tuple[str, Offset], ...] = ()
    """Consumer groups and their positions, as it knows them; the first hundred."""


class SurvivorAnswer(msgspec.Struct, frozen=True, array_like=True):
    """What a node has of a partition, to another node; in the payload, for groups may be many."""

    survivor: Survivor | None = None
    is_mending: bool = False
    """Whether its log is being repaired: it may be there again in a moment."""


def best(survivors: Iterable[Survivor]) -> Survivor | None:
    """Return the replica to go on with; None if there is none that works."""
    # A witness has no records to go on with.
    able = [
        one
        for one in survivors
        if not one.halted and one.last_index and not is_witness(one.replica)
    ]
    # By term before index (Raft §5.4.1). Planted as weakest-survivor-gone-on-with.
    return max(able, key=lambda one: (one.last_term, one.last_index, -one.node), default=None)


def lost(source: Survivor, survivors: Collection[Survivor]) -> tuple[ReplicaId, ...]:
    """Return the voters that are not there: their nodes are silent, or have other data now."""
    here = {one.replica for one in survivors if not one.halted}
    return tuple(one for one in source.voters if one not in here)


def objection(
    source: Survivor, survivors: Sequence[Survivor], *, wait_ms: int, name: str
) -> str | None:
    """Say why a partition may not go on with one replica now, or None if it may."""
    leading = next((one for one in survivors if one.leads), None)
    if leading is not None:
        return f"{name} has a leader, node {leading.node}: nothing has to be recovered"
    missing = lost(source, survivors)
    there = len(source.voters) - len(missing)
    if 2 * there > len(source.voters):
        return (
            f"{name} has {there} of {len(source.voters)} replicas, which is a majority: it elects a"
            " leader by itself"
        )
    for one in missing:
        # One that is up and has other data now, or none, cannot come back as who it was.
        silent = [seen.silent_ms.get(node_of(one)) for seen in survivors]
        known = [ms for ms in silent if ms is not None]
        if known and min(known) < wait_ms:
            return (
                f"node {node_of(one)} has been silent for {min(known) / 1_000:.0f} s only, and may"
                f" come back: wait until it has been for {wait_ms / 1_000:.0f} s"
            )
    return None


def confirmation(
    cluster: str, group: int, times: int, source: Survivor, missing: Sequence[ReplicaId]
) -> str:
    """Return the code that stands for exactly this: who goes on, with what, and without whom."""
    state = (cluster, group, times, source.replica, source.last_term, source.last_index, *missing)
    return hashlib.sha256(repr(state).encode()).hexdigest()[:8]
