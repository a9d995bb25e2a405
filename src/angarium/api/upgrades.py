"""Whether a rolling restart or upgrade may take the next node now."""

from __future__ import annotations

from typing import Protocol

import msgspec

from angarium.ids import Micros, NodeId


class NodeState(msgspec.Struct, frozen=True, kw_only=True):
    """One node, as far as a restart of it is concerned."""

    node: NodeId
    alive: bool
    version: str = ""
    """What it runs; empty if it does not say so: it is away, or of an older release."""
    level_max: int = 1
    """The highest feature level that its release knows."""
    started_at: Micros = Micros(0)
    """When its process started; 0 if it does not say."""
    certificate_days: float | None = None
    """How long its certificates are good, at least; None without any."""
    disk_free_bytes: int | None = None
    leads_catalog: bool = False


class UpgradeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a node may be taken down now, and which one should be the next."""

    hindrances: tuple[str, ...] = ()
    """Why none may; nothing if one may."""
    remarks: tuple[str, ...] = ()
    """What should be known before, and is no reason to wait."""
    next_node: NodeId | None = None
    """Which one: of those that do not run the newest start's release, or of all where all do, the
    one that has run for longest; the leader of the catalog last."""
    nodes: tuple[NodeState, ...] = ()
    level: int = 1
    level_possible: int = 1
    """The highest level that every node knows: above `level`, it can be raised."""


class UpgradeBroker(Protocol):
    """The part of the contract that is about it."""

    async def describe_upgrade(self) -> UpgradeInfo:
        """Return whether a node may be taken down now, and which one."""
