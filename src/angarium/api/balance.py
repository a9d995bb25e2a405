"""Evening out what nodes hold, as one of them sees it."""

from __future__ import annotations

from typing import Protocol

import msgspec

from angarium.ids import Micros, NodeId


class MoveInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A partition that moves, or is to move."""

    topic: str
    partition: int
    replicas: tuple[NodeId, ...]
    """Where it lives; the preferred leader first."""
    target: tuple[NodeId, ...]
    """Where it is to live. With the same nodes, only its leader changes."""
    is_under_way: bool = False
    stored_bytes: int = 0
    """What one replica of it holds, as far as that is known."""
    copied_bytes: int = 0
    """How much of that has come."""


class BalanceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the cluster is being evened out, and what is left to move."""

    is_running: bool
    begun_at: Micros = Micros(0)
    bytes_per_s: int = 0
    """What all copies together may take; 0: as fast as replicas copy otherwise."""
    is_automatic: bool = False
    """Whether it begins by itself when a node has come, come back or been drained."""
    is_due: bool = False
    """Whether that has happened: it begins when all nodes have been there for a while."""
    is_by_itself: bool = False
    """Whether nobody asked for what goes on."""
    moves: tuple[MoveInfo, ...] = ()
    """What is under way, then what would follow, in order; the first thousand."""
    moves_left: int = 0
    """How many there are in all."""
    bytes_left: int = 0
    """What these have yet to copy."""
    time_left_ms: int | None = None
    """How long that takes at the pace of late, while no run goes on: those that are under way; None
    if nobody can tell yet."""
    waits_for: str = ""
    """Why nothing more begins at the moment; empty if it does, or would."""


class BalanceBroker(Protocol):
    """The part of the contract that is about evening out."""

    async def describe_balance(self) -> BalanceInfo:
        """Return how it stands, and what a rebalance would move now."""

    async def rebalance(self, *, bytes_per_s: int | None = None) -> BalanceInfo:
        """Begin to even out replicas, bytes and leaders; while that is done: at another pace.

        None: the pace that a run has which goes on, and else none but that of every copy; 0: none.
        """

    async def cancel_rebalance(self) -> BalanceInfo:
        """Begin nothing more, and let what is on its way go back; `PreconditionFailed` if nothing
        is being evened out."""

    async def set_auto_balance(self, *, automatic: bool) -> BalanceInfo:
        """Say whether it begins by itself when a node has come, come back or been drained.

        In a cluster that was formed at feature level 5 or above it does, unless it is told not to.
        """
