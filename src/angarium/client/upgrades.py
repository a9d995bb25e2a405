"""Whether a rolling restart may go on, as the contract has it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from angarium.api.upgrades import UpgradeInfo
from angarium.wire.operations import Operation

if TYPE_CHECKING:
    from angarium.client.reach import Reach


class UpgradeAdministration(ABC):
    """What a client can ask about it; implements `api.upgrades.UpgradeBroker`."""

    @property
    @abstractmethod
    def _reach(self) -> Reach: ...

    async def describe_upgrade(self) -> UpgradeInfo:
        """Return whether a node may be taken down now, and which one."""
        return (await self._reach.calls.ask(Operation.DESCRIBE_UPGRADE)).unpack(UpgradeInfo)
