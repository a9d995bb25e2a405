"""The cluster, as one of its nodes sees it."""

from __future__ import annotations

import msgspec

from angarium.ids import Index, NodeId


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One node."""

    id: NodeId
    addresses: dict[str, str]
    """By door: "wire", "grpc", "http"."""
    region: str = ""
    zone: str = ""
    host: str = ""
    draining: bool = False
    alive: bool = True
    """Whether the answering node hears from it."""
    leads: int = 0
    replicas: int = 0
    level_max: int = 1
    """The highest feature level its release knows."""
    unready: tuple[str, ...] = ()
    """Why it should not be relied on, as it said itself a moment ago; nothing if it may."""
    clock_ahead_ms: int | None = None
    """How far its clock is ahead of what a majority says, negative if it is behind, as the
    answering node measured it; None if it could not."""
    clock_agrees: bool = True
    """False if that is more than `clock_skew_max_ms`: its clock is wrong. Also while no majority
    of clocks agrees, for those that are apart."""
    round_trip_ms: float | None = None
    """How long the way from the answering node to this one and back takes; None if not known."""


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster, as the answering node sees it."""

    cluster_id: str
    node: NodeId
    """Who answers."""
    catalog_leader: NodeId | None
    catalog_index: Index
    nodes: tuple[NodeInfo, ...]
    topics: int
    partitions: int
    feature_level: int
    version: str
    catalog_in_sync: tuple[NodeId, ...] | None = None
    """Nodes that vote on the catalog, can be reached and have nearly all of it; None if the
    answering node does not lead the catalog."""
