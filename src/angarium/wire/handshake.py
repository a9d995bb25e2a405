"""The first frame in each direction: who is there, and what both of them understand.

The dialling side speaks first; the accepting side answers with a `Hello` of its own, or with a
`GOODBYE` that carries a typed refusal. The prefix of a frame and the meaning of the fields below
are the same in every wire version, for they are what finds the version. Fields a side does not
know are ignored.

A refusal always says what to do: its reader has usually mistyped an address, mixed
two clusters, or skipped a release while upgrading. It is read on both sides, so it calls them by
their names and not "this" and "the other".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

import msgspec

import angarium
from angarium.errors import InvalidArgument
from angarium.wire.errors import (
    ClusterSucceeded,
    HandshakeRefused,
    StillJoining,
    VersionMismatch,
    WrongCluster,
    WrongNode,
)
from angarium.wire.frames import Frame, FrameKind
from angarium.wire.wire_limits import FRAME_BYTES_LEAST, WireLimits

WIRE_VERSION_MIN: Final = 1
WIRE_VERSION_MAX: Final = 1
"""The wire versions this software speaks."""

MAGIC: Final = int.from_bytes(b"ANGARIUM", "little")
"""The id of a `HELLO` frame: tells our peers from strangers that found the port."""

AUTH_BYTES_MAX: Final = 16 * 1024
"""Longer credentials are refused as a malformed handshake."""

LEVEL_FEATURE: Final = "machine"
"""Under this name a node tells the highest feature level that it knows."""
LEVEL_UNTOLD: Final = 1
"""What counts for whoever does not tell one."""

PREDECESSORS_MAX: Final = 64
"""Ids of predecessors in a greeting; a longer list is refused as malformed."""

_Natural = Annotated[int, msgspec.Meta(ge=0)]
_FrameBytes = Annotated[int, msgspec.Meta(ge=FRAME_BYTES_LEAST, lt=1 << 32)]
_Window = Annotated[int, msgspec.Meta(ge=1, lt=1 << 32)]
_Name = Annotated[str, msgspec.Meta(max_length=256)]


class Role(StrEnum):
    """What a connection is for; the accepting side decides by it what it serves there."""

    CLIENT = "client"
    PEER = "peer"
    """Another node: Raft and forwarded requests."""
    PEER_BULK = "peer-bulk"
    """Another node's snapshots and repairs, apart so that they never delay a heartbeat."""
    OPERATOR = "operator"
    """Administration: forming a cluster, adding nodes."""


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """What one side says about itself."""

    role: Role
    cluster: _Name = ""
    """The cluster's id; empty for who does not know or belong to one yet."""
    node: _Natural = 0
    """The node's id; 0 for a client."""
    incarnation: _Natural = 0
    """Of the node's data directory; together with `node` it is the replica id."""
    process: _Natural | msgspec.UnsetType = msgspec.UNSET
    """Drawn when the node's process starts: two processes of one node give themselves away by it.
    Clients do not say it."""
    log_end: _Natural | msgspec.UnsetType = msgspec.UNSET
    """Where the node's write-ahead log ends; left out by who does not say."""
    address: _Name | msgspec.UnsetType = msgspec.UNSET
    """Where the node's wire port is reached: who was found by somebody can find them, too, whatever
    the catalog says. Clients do not say it."""
    features: dict[_Name, _Natural] = {}
    """Highest level understood of whatever else has to agree, for instance `machine`."""
    auth: Annotated[bytes, msgspec.Meta(max_length=AUTH_BYTES_MAX)] = b""
    """Of the dialling side: credentials, opaque here. Of the accepting side: the ways to prove who
    one is, with spaces between, if that is to be done first."""

    # What the connection fills in by itself.

    software: _Name = ""
    version_min: _Natural = 0
    version_max: _Natural = 0
    """The wire versions its sender speaks."""
    frame_bytes_max: _FrameBytes = FRAME_BYTES_LEAST
    header_bytes_max: _FrameBytes = FRAME_BYTES_LEAST
    stream_window_bytes: _Window = 1
    """What its sender takes; the receiver keeps to it."""

    @property
    def level(self) -> int:
        """The highest feature level that its sender knows."""
        return self.features.get(LEVEL_FEATURE, LEVEL_UNTOLD)

    def successor_of(self, cluster: str) -> str | None:
        """Return by what nodes of a cluster that this one was follow; None if it never was it."""
        del cluster
        return None

    def __repr__(self) -> str:
        # Short, and without `auth`: it is printed where something went wrong.
        return f"Hello({_name_of(self)}, cluster {self.cluster!r})"


class SuccessorHello(Hello, frozen=True, kw_only=True, tag=False):
    """What a node says whose cluster was recovered; to whoever does not know it, it is the same."""

    predecessors: Annotated[dict[_Name, _Name], msgspec.Meta(max_length=PREDECESSORS_MAX)] = {}
    """Ids that the cluster had before, and by what their nodes follow it, where they still can.
    Whoever has one of them is a client that goes on, or a node that the cluster went on without."""

    def successor_of(self, cluster: str) -> str | None:
        """Return by what nodes of a cluster that this one was follow; None if it never was it."""
        return self.predecessors.get(cluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """The other side, and what was agreed with it."""

    hello: Hello
    version: int
    """The wire version spoken: the highest both know."""
    features: dict[str, int]
    """Of every feature both know, the lower level."""


def negotiated(ours: Hello, theirs: Hello) -> Peer:
    """Return what both sides agree on; raises `VersionMismatch` or `WrongCluster`."""
    version = min(ours.version_max, theirs.version_max)
    if version < max(ours.version_min, theirs.version_min):
        older, newer = sorted((ours, theirs), key=lambda one: one.version_max)
        raise VersionMismatch(
            f"{_name_of(older)} speaks wire versions {older.version_min} to {older.version_max}, "
            f"{_name_of(newer)} {newer.version_min} to {newer.version_max}; "
            f"upgrade {_name_of(older)} first"
        )
    _check_cluster(ours, theirs)
    shared = sorted(ours.features.keys() & theirs.features.keys())
    features = {name: min(ours.features[name], theirs.features[name]) for name in shared}
    return Peer(hello=theirs, version=version, features=features)


def answer_to(theirs: Hello, ours: Hello, proofs: tuple[str, ...] = ()) -> Hello:
    """Return what the accepting side says of itself to whoever greeted.

    `proofs` are the ways in which they may prove who they are, and have to.

    By its incarnation a node is known to the others. Clients have no use for it, and could speak in
    the node's name once it is down.
    """
    if theirs.role in (Role.PEER, Role.PEER_BULK):
        return ours
    unset = msgspec.UNSET
    auth = " ".join(proofs).encode()
    return msgspec.structs.replace(
        ours, incarnation=0, process=unset, log_end=unset, address=unset, auth=auth
    )


def check_node(theirs: Hello, expected: int | None) -> None:
    """Raise `WrongNode` if somebody else than the `expected` node answers.

    One that is about to join does not know who it is yet: `StillJoining`.
    """
    if expected is not None and theirs.node == 0:
        raise StillJoining(f"node {expected} does not know yet that it was let in")
    if expected is not None and theirs.node != expected:
        raise WrongNode(
            f"node {theirs.node} answers where node {expected} was expected; "
            "correct the address of one of them"
        )


def greeting_in(frame: Frame) -> Hello:
    """Return what a first frame says; raises `HandshakeRefused` if it was not meant for us."""
    if frame.kind != FrameKind.HELLO or frame.id != MAGIC:
        raise HandshakeRefused("the first frame is not a greeting; is this the wire port?")
    try:
        hello = frame.read(SuccessorHello)
        return hello if hello.predecessors else frame.read(Hello)
    except InvalidArgument as error:
        raise HandshakeRefused(f"the greeting cannot be read: {error}") from None


def completed(hello: Hello, limits: WireLimits) -> Hello:
    """Return `hello` with this software's versions, unless given, and this side's `limits`."""
    return msgspec.structs.replace(
        hello,
        software=hello.software or angarium.__version__,
        version_min=hello.version_min or WIRE_VERSION_MIN,
        version_max=hello.version_max or WIRE_VERSION_MAX,
        frame_bytes_max=limits.frame_bytes_max,
        header_bytes_max=limits.header_bytes_max,
        stream_window_bytes=limits.stream_window_bytes,
    )


def _check_cluster(ours: Hello, theirs: Hello) -> None:
    # An empty id is somebody who belongs nowhere yet: a client, or a node about to be invited.
    if ours.cluster and theirs.cluster and ours.cluster != theirs.cluster:
        for former, later in ((ours, theirs), (theirs, ours)):
            follow = later.successor_of(former.cluster)
            if follow is None:
                continue
            if former.role is Role.CLIENT:
                return  # it talks to the same cluster as before
            along = f", or, to keep its data, --follow {follow}" if follow else ""
            raise ClusterSucceeded(
                f"the cluster {former.cluster} was recovered as {later.cluster}, without "
                f"{_name_of(former)}: start that node with an empty data folder{along} "
                "(docs/guides/lost-majority.md)",
                former=former.cluster,
            )
        raise WrongCluster(
            f"{_name_of(ours)} belongs to cluster {ours.cluster}, {_name_of(theirs)} to "
            f"{theirs.cluster}; correct the address, or give the node an empty data directory if "
            "it is to change clusters"
        )


def _name_of(side: Hello) -> str:
    who = f"node {side.node}" if side.node else f"the {side.role}"
    return f"{who} (angarium {side.software})" if side.software else who
