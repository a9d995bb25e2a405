"""Evening out what nodes hold, as the contract has it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from angarium.api.balance import BalanceInfo
from angarium.wire.operations import Operation, RebalanceHeader, SetAutoBalanceHeader

if TYPE_CHECKING:
    from angarium.client.reach import Reach


class BalanceAdministration(ABC):
    """What a client can do about it; implements `api.balance.BalanceBroker`."""

    @property
    @abstractmethod
    def _reach(self) -> Reach: ...

    async def describe_balance(self) -> BalanceInfo:
        """Return how it stands, and what a rebalance would move now."""
        return (await self._reach.calls.ask(Operation.DESCRIBE_BALANCE)).unpack(BalanceInfo)

    async def rebalance(self, *, bytes_per_s: int | None = None) -> BalanceInfo:
        """Begin to even out replicas, bytes and leaders; while that is done: at another pace.

        None: the pace that a run has which goes on, and else none but that of every copy; 0: none.
        """
        header = RebalanceHeader(bytes_per_s)
        return (await self._reach.calls.ask(Operation.REBALANCE, header)).unpack(BalanceInfo)

    async def cancel_rebalance(self) -> BalanceInfo:
        """Begin nothing more, and let what is on its way go back; `PreconditionFailed` if nothing
        is being evened out."""
        frame = await self._reach.calls.ask(Operation.CANCEL_REBALANCE, may_repeat=False)
        return frame.unpack(BalanceInfo)

    async def set_auto_balance(self, *, automatic: bool) -> BalanceInfo:
        """Say whether it begins by itself when a node has come, come back or been drained."""
        header = SetAutoBalanceHeader(automatic)
        return (await self._reach.calls.ask(Operation.SET_AUTO_BALANCE, header)).unpack(BalanceInfo)
