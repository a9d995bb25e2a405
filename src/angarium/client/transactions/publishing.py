"""Publishing into a stage: seen by nobody before the commit, by everybody after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Unpack

from angarium.client.publishing.columns import Table
from angarium.client.publishing.fields import RecordColumns, RecordFields, spelled_out
from angarium.client.publishing.outgoing import outgoing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.client.publishing.outgoing import Text
    from angarium.client.transactions.stages import StageWriter


class StagedPublishing(ABC):
    """The half of a transaction that takes records; others decide whether it commits."""

    @abstractmethod
    def _open_writer(self) -> StageWriter:
        """Return where they go; raises if it is too early or too late for more."""

    @spelled_out(RecordFields)
    async def publish(self, topic: str, value: Text | None, **fields: Unpack[RecordFields]) -> None:
        """Publish a record if the transaction commits. Its offset is not known before."""
        await self._open_writer().publish(topic, outgoing(value, **fields))

    @spelled_out(RecordColumns)
    async def publish_batch(
        self,
        topic: str,
        values: Sequence[Text | None],
        *,
        partition: int | None = None,
        **columns: Unpack[RecordColumns],
    ) -> None:
        """Publish many records at once if the transaction commits: the fast way."""
        table = Table.of(values, **columns)
        await self._open_writer().publish_table(topic, table, partition=partition)
