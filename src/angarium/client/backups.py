"""What backups ask of a cluster, as the contract has it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from angarium.api import FetchResult, TopicInfo
from angarium.api.backups import AccountsRestored, KeptAccounts, KeptPositions, Restored
from angarium.api.reading import FETCH_BYTES_MAX
from angarium.api.settings import level_of
from angarium.batch import split
from angarium.client.transactions.stages import PASSING_LIMITS
from angarium.wire import packed
from angarium.wire.operations import FetchAnswer, FetchHeader, Operation, backups

if TYPE_CHECKING:
    from angarium.api import TopicConfig
    from angarium.api.backups import RestoreRequest
    from angarium.client.reach import Reach
    from angarium.ids import Offset


class BackupAdministration(ABC):
    """Implements `api.backups.BackupBroker`; `angarium.backup` is what uses it."""

    @property
    @abstractmethod
    def _reach(self) -> Reach: ...

    async def read_positions(self, topic: str, partition: int) -> KeptPositions:
        """Return the groups of a partition, as its leader knows them."""
        header = backups.ReadPositionsHeader(topic, partition)
        frame = await self._reach.calls.ask(
            Operation.READ_POSITIONS, header, partition=(topic, partition)
        )
        return frame.unpack(KeptPositions)

    async def fetch_stored(
        self, topic: str, partition: int, offset: Offset, *, bytes_max: int = FETCH_BYTES_MAX
    ) -> FetchResult:
        """Return batches as they are stored, from the leader, which makes sure that it leads: what
        was acknowledged before the call lies below `end_offset`."""
        header = FetchHeader(topic, partition, offset, bytes_max, 0, True)
        frame = await self._reach.calls.ask(Operation.FETCH, header, partition=(topic, partition))
        answer = frame.read(FetchAnswer)
        return FetchResult(
            start_offset=answer.start_offset,
            end_offset=answer.end_offset,
            batches=tuple(split(frame.payload)),
        )

    async def read_accounts(self) -> KeptAccounts:
        """Return users, roles, grants, tokens and quotas, with hashes of secrets."""
        return (await self._reach.calls.ask(Operation.READ_ACCOUNTS)).unpack(KeptAccounts)

    async def restore_topic(self, name: str, *, partitions: int, config: TopicConfig) -> TopicInfo:
        """Make a topic, also one for dead letters; `AlreadyExists`."""
        header = backups.RestoreTopicHeader(name, partitions, config)
        level = level_of(config)
        frame = await self._reach.calls.ask(Operation.RESTORE_TOPIC, header, level=level)
        info = frame.read_large(TopicInfo)
        await self._reach.metadata.learn(info)
        return info

    async def restore_records(self, request: RestoreRequest) -> Restored:
        """Bring batches back at their offsets.

        It is not repeated when its outcome is unknown: where the partition ends then tells it.
        """
        header = backups.RestoreRecordsHeader(
            request.topic, request.partition, request.next_offset, request.start_offset
        )
        settings = self._reach.settings
        frame = await self._reach.calls.ask(
            Operation.RESTORE_RECORDS,
            header,
            request.batches,
            partition=(request.topic, request.partition),
            may_repeat=False,
            timeout_s=settings.publish_timeout_s,
            passing=PASSING_LIMITS,
        )
        return frame.read(Restored)

    async def restore_positions(self, kept: KeptPositions) -> None:
        """Bring groups forward to where they stood."""
        await self._reach.calls.ask(
            Operation.RESTORE_POSITIONS,
            payload=[packed(kept)],
            partition=(kept.topic, kept.partition),
        )

    async def restore_accounts(self, accounts: KeptAccounts) -> AccountsRestored:
        """Make what is not there; what is there stays as it is, and gets the grants it lacks."""
        frame = await self._reach.calls.ask(Operation.RESTORE_ACCOUNTS, payload=[packed(accounts)])
        return frame.unpack(AccountsRestored)
