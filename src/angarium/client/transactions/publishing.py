"""Publishing into a stage: seen by nobody before the commit, by everybody after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from angarium.client.publishing.columns import Table
from angarium.client.publishing.outgoing import outgoing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.batch.columns import HeadersOf
    from angarium.client.publishing.outgoing import HeadersLike, Text
    from angarium.client.times import Moment
    from angarium.client.transactions.stages import StageWriter
    from angarium.ids import Buffer


class StagedPublishing(ABC):
    """The half of a transaction that takes records, whoever decides whether it commits."""

    @abstractmethod
    def _open_writer(self) -> StageWriter:
        """Return where they go; raises if it is too early or too late for more."""

    async def publish(
        self,
        topic: str,
        value: Text | None,
        *,
        key: Text | None = None,
        headers: HeadersLike | None = None,
        partition: int | None = None,
        timestamp: Moment | None = None,
        expires_at: Moment | None = None,
        deliver_at: Moment | None = None,
    ) -> None:
        """Publish a record if the transaction commits. Its offset is not known before."""
        record = outgoing(
            value,
            key=key,
            headers=headers,
            partition=partition,
            mode=None,
            timestamp=timestamp,
            expires_at=expires_at,
            deliver_at=deliver_at,
        )
        await self._open_writer().publish(topic, record)

    async def publish_batch(
        self,
        topic: str,
        values: Sequence[Buffer | None],
        *,
        keys: Sequence[Buffer | None] | None = None,
        headers: Sequence[HeadersOf | None] | None = None,
        partition: int | None = None,
        timestamps: int | Sequence[int] | None = None,
        expires_at: int | Sequence[int] | None = None,
        deliver_at: int | Sequence[int] | None = None,
    ) -> None:
        """Publish many records at once if the transaction commits: the fast way."""
        table = Table(values, keys, headers, timestamps, expires_at, deliver_at)
        await self._open_writer().publish_table(topic, table, partition=partition)
