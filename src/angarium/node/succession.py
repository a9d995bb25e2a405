"""Which copy of the catalog a cluster goes on with, and who may follow. Pure.

Of several copies the one that ends in the highest term, and is longest among those, has every
committed entry that any of them has (Raft §5.4.1). Whoever ends earlier may follow it: all that it
has carried out is in there. Whoever ends later may not: it has heard of decisions that the cluster
does not know any more, of partitions that went on without others for instance.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from angarium.errors import InvalidArgument
from angarium.ids import Index, NodeId, Term, node_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from angarium.log.folder_identity import FolderIdentity
    from angarium.machine.catalog import CatalogMachine
    from angarium.replica.catalog_copy import CatalogCopy

_CHECK_DIGITS: Final = 8


class End(NamedTuple):
    """Where a copy of the catalog ends; the greater one has more."""

    term: Term
    entry: Index

    def __str__(self) -> str:
        return f"{self.term}.{self.entry}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what `str` said; raises `InvalidArgument`."""
        found = re.fullmatch(r"(\d{1,18})\.(\d{1,18})", text)
        if found is None:
            raise InvalidArgument(f"{text!r} is no end of a catalog, as in 7.1042")
        return cls(Term(int(found[1])), Index(int(found[2])))


def end_of(copy: CatalogCopy) -> End:
    """Return where a copy ends."""
    return End(copy.last_term, copy.last_index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """What other survivors need to know to follow; no secret."""

    cluster: str
    """The id from now on."""
    end: End
    """Where the catalog ended that the cluster went on with."""
    check: str
    """Made of it all and of the former cluster: it fits no other, and shows a slip of the pen."""

    def __str__(self) -> str:
        return f"{self.cluster}-{self.end}-{self.check}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what `str` said; raises `InvalidArgument`."""
        found = re.fullmatch(r"([0-9a-f]{32})-(\d+\.\d+)-([0-9a-f]{8})", text)
        if found is None:
            raise InvalidArgument(f"{text!r} is not what the recovered node said to follow it by")
        return cls(cluster=found[1], end=End.parse(found[2]), check=found[3])


def invitation(*, previous: str, cluster: str, end: End) -> Invitation:
    """Return by what others follow."""
    return Invitation(cluster=cluster, end=end, check=_hash(previous, cluster, *end))


def invitations(machine: CatalogMachine) -> dict[str, str]:
    """Return, for each cluster that this one was, by what its nodes follow; empty: they cannot."""
    rows = machine.predecessors.rows
    told = dict.fromkeys((one.cluster for one in rows), "")
    if rows and rows[-1].last_index:
        end = End(rows[-1].last_term, rows[-1].last_index)
        last = rows[-1].cluster
        told[last] = str(invitation(previous=last, cluster=machine.cluster, end=end))
    return told


def objection_to_going_on(copy: CatalogCopy, others: Collection[End]) -> str:
    """Say why a cluster may not go on with this copy; empty if it may."""
    # Planted as newer-catalog-passed-over.
    newer = max((one for one in others if one > end_of(copy)), default=None)
    if newer is not None:
        return (
            f"this catalog ends at {end_of(copy)}, and another one at {newer}, which has more: run "
            "this on the node that has that one, and let this one follow"
        )
    if set(copy.voters) == {copy.own}:
        return "this node alone votes on the catalog, and needs nobody else: start it"
    return ""


def objection_to_following(
    wanted: Invitation, identity: FolderIdentity, copy: CatalogCopy, *, cluster: str
) -> str:
    """Say why a node may not follow; empty if it may."""
    if wanted.cluster == cluster:
        return f"this node belongs to the cluster {cluster} already"
    if wanted.check != _hash(cluster, wanted.cluster, *wanted.end):
        return (
            f"that is of another cluster than {cluster}, to which this folder belongs, or there is "
            "a slip in it. A node that missed an earlier recovery has to be emptied and join anew"
        )
    if end_of(copy) > wanted.end:
        return (
            f"its catalog ends at {end_of(copy)}, and the cluster went on with one that ended at "
            f"{wanted.end}: this one has more. If nothing was done in the recovered cluster yet, "
            "recover with this node instead, and let that one be emptied; if not, keep this folder "
            f"for what only it has, and start node {identity.node_id} with an empty one"
        )
    return ""


def confirmation(copy: CatalogCopy, *, cluster: str, into: str = "") -> str:
    """Return the code that stands for exactly this: who goes on, with what, and where to."""
    return _hash(cluster, copy.own, *end_of(copy), *sorted(copy.voters), into)


def may_lose(copy: CatalogCopy) -> tuple[str, ...]:
    """Say what is lost by going on with this copy, and what comes back."""
    node = node_of(copy.own)
    votes = copy.own in copy.voters
    said = [
        f"Lost is whatever the lost nodes decided and node {node} had not heard: topics, groups' "
        "settings, users, grants, tokens and quotas made or changed since. Of what it has beyond "
        f"entry {copy.commit}, up to {copy.last_index}, all is kept.",
        "Whatever was taken away since is there again: look through users, grants and tokens for "
        "such as were withdrawn. Join tokens are void, and have to be made anew.",
        "The cluster gets another id. Nodes with the old one are refused, for ever; clients of this"
        " release and later go on by themselves, and older ones have to be restarted.",
        "All other nodes must be off. As long as a majority of the old cluster runs and reaches "
        "clients, it goes on acknowledging, and that would be lost.",
    ]
    if not votes:
        said.insert(
            1, f"Node {node} only listened, and may lack more than those who voted: prefer one."
        )
    return tuple(said)


def others(copy: CatalogCopy) -> tuple[NodeId, ...]:
    """Return all other nodes that the catalog knows."""
    return tuple(one for one in sorted(copy.machine.nodes.by_id) if one != node_of(copy.own))


def _hash(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:_CHECK_DIGITS]
