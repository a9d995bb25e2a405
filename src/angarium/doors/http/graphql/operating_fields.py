"""The fields of the schema that are about evening out, rolling upgrades and lost majorities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from angarium.api.administration import AdministrationBroker


class OperatingFields(ABC):
    """Each field is the method of its name, and one call of the contract."""

    @property
    @abstractmethod
    def _access(self) -> AdministrationBroker: ...

    async def balance(self) -> object:
        return await self._access.describe_balance()

    async def rebalance(self, bytes_per_s: int | None = None) -> object:
        return await self._access.rebalance(bytes_per_s=bytes_per_s)

    async def cancel_rebalance(self) -> object:
        return await self._access.cancel_rebalance()

    async def set_auto_balance(self, automatic: bool) -> object:
        return await self._access.set_auto_balance(automatic=automatic)

    async def upgrade(self) -> object:
        return await self._access.describe_upgrade()

    async def recovery(self, topic: str, partition: int) -> object:
        return await self._access.describe_recovery(topic, partition)

    async def recover_partition(self, topic: str, partition: int, code: str) -> object:
        return await self._access.recover_partition(topic, partition, code)
