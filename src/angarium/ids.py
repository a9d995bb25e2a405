"""The names of things, each a type of its own in the code.

One word, one thing: an *offset* is a position in a partition, an *index* a position in a Raft log.
docs/concepts/glossary.md has all of them.
"""

from __future__ import annotations

from typing import Final, NamedTuple, NewType, TypeAlias

NodeId = NewType("NodeId", int)
"""A node of the cluster. Issued by the catalog, never reused."""

Incarnation = NewType("Incarnation", int)
"""48 random bits drawn when a data directory is made: a wiped node is somebody else."""

ReplicaId = NewType("ReplicaId", int)
"""Who votes in a Raft group: a node together with the incarnation of its data, and whether it is a
witness: one that votes and keeps the end of the log, and no records."""

RaftGroupId = NewType("RaftGroupId", int)
"""A Raft group. Group 0 is the catalog, every other one is a partition. Never reused."""

TopicId = NewType("TopicId", int)
"""A topic. Issued by the catalog, never reused; directories are named by it, not by the name."""


class TopicPartition(NamedTuple):
    """A partition as users name it: a topic's name and a number from 0 upwards.

    It equals the plain pair, so either may be the key of a mapping.
    """

    topic: str
    partition: int


Term = NewType("Term", int)
Index = NewType("Index", int)
"""A position in a Raft log; the first entry has index 1, so 0 means "nothing yet"."""

Offset = NewType("Offset", int)
"""A position in a partition; the first record has offset 0."""

ProducerId = NewType("ProducerId", int)
"""An idempotent producer; issued upwards by the catalog. 0 stands for "no producer"."""

Epoch = NewType("Epoch", int)
Sequence = NewType("Sequence", int)

GrantId = NewType("GrantId", int)
"""Of a grant in the catalog, never used again; 0 for those of built-in roles."""

JoinTokenId = NewType("JoinTokenId", int)
"""Of a join token in the catalog, never used again."""

Micros = NewType("Micros", int)
"""A point in time: microseconds since 1970 in UTC."""

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Anything that holds bytes and may be passed on without a copy."""

CATALOG_GROUP: Final = RaftGroupId(0)
NO_PRODUCER: Final = ProducerId(0)
NO_REPLICA: Final = ReplicaId(0)

_INCARNATION_BITS: Final = 48
_NODE_BITS: Final = 14
_NODES: Final = (1 << _NODE_BITS) - 1
_WITNESS: Final = 1 << (_INCARNATION_BITS + _NODE_BITS)
"""In the id itself, so that nobody who counts a replica can take a witness for a full one, whatever
else is not known or not up to date; and a node that ceases to be a witness is another replica."""


def replica_id(node: NodeId, incarnation: Incarnation) -> ReplicaId:
    """Return the voter that `node` is while its data directory has this `incarnation`."""
    assert 0 < node <= _NODES, "a node id fits 14 bits, so that a replica id fits a signed 64"
    assert 0 <= incarnation < 1 << _INCARNATION_BITS
    return ReplicaId(node << _INCARNATION_BITS | incarnation)


def node_of(replica: ReplicaId) -> NodeId:
    """Return the node on which `replica` lives."""
    return NodeId(replica >> _INCARNATION_BITS & _NODES)


def witness_id(replica: ReplicaId) -> ReplicaId:
    """Return who a node is in a group as a witness, that would be `replica` as a full one."""
    return ReplicaId(replica | _WITNESS)


def full_id(replica: ReplicaId) -> ReplicaId:
    """Return who a node would be in a group as a full replica."""
    return ReplicaId(replica & ~_WITNESS)


def is_witness(replica: ReplicaId) -> bool:
    """Tell whether `replica` keeps no records."""
    return replica & _WITNESS != 0
