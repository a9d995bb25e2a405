"""Going on with what is left of a partition, as the contract has it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from angarium.api.recovery import RecoveryInfo
from angarium.wire.operations import DescribeRecoveryHeader, Operation, RecoverPartitionHeader

if TYPE_CHECKING:
    from angarium.client.reach import Reach


class RecoveryAdministration(ABC):
    """What a client can do about lost majorities; implements `api.recovery.RecoveryBroker`."""

    @property
    @abstractmethod
    def _reach(self) -> Reach: ...

    async def describe_recovery(self, topic: str, partition: int) -> RecoveryInfo:
        """Return what `recover_partition` would do now, and the code that confirms it."""
        header = DescribeRecoveryHeader(topic, partition)
        frame = await self._reach.calls.ask(Operation.DESCRIBE_RECOVERY, header)
        return frame.unpack(RecoveryInfo)

    async def recover_partition(self, topic: str, partition: int, code: str) -> RecoveryInfo:
        """Go on with the best replica that is left, and without all others for ever.

        `PreconditionFailed` while a majority is there or may come back, and if what the code
        confirms is not what would be done now.
        """
        header = RecoverPartitionHeader(topic, partition, code)
        frame = await self._reach.calls.ask(Operation.RECOVER_PARTITION, header, may_repeat=False)
        return frame.unpack(RecoveryInfo)
