"""Transactions over the wire, word by word: the client packs several of them into one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.api import Ack
from angarium.api.transactions import Aborted, Committed, Position, Series, Staged
from angarium.wire.operations import Operation
from angarium.wire.operations.transactions import (
    DecideHeader,
    ForgetSeriesHeader,
    LastSequenceAnswer,
    LastSequenceHeader,
    OpenSeriesHeader,
    PublishSequencedHeader,
    SettledByHeader,
    StageHeader,
)

if TYPE_CHECKING:
    from angarium.api.transactions import SequencedPublish, StagedIn, StageRequest, TransactionId
    from angarium.client import Client
    from angarium.ids import Buffer, Epoch
    from angarium.wire import Frame, Header


class WireTransactions:
    """Implements `api.transactions.TransactionBroker` for a cluster that is reached by a client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def _ask(
        self, operation: Operation, header: Header, payload: tuple[Buffer, ...] = ()
    ) -> Frame:
        return await self._client._reach.calls.ask(operation, header, payload)

    async def open_series(self, name: str) -> Series:
        return (await self._ask(Operation.OPEN_SERIES, OpenSeriesHeader(name))).read(Series)

    async def stage(self, request: StageRequest) -> Staged:
        header = StageHeader(
            request.transaction,
            request.stage,
            request.part,
            request.topic,
            request.partition,
            request.acks,
        )
        return (await self._ask(Operation.STAGE, header, request.batches)).read(Staged)

    async def commit(
        self, transaction: TransactionId, stages: tuple[StagedIn, ...], *, content: str = ""
    ) -> Committed:
        header = DecideHeader(transaction, stages, content)
        return (await self._ask(Operation.COMMIT, header)).read(Committed)

    async def abort(self, transaction: TransactionId, stages: tuple[StagedIn, ...]) -> Aborted:
        return (await self._ask(Operation.ABORT, DecideHeader(transaction, stages))).read(Aborted)

    async def forget_series(self, name: str, topics: tuple[str, ...]) -> None:
        await self._ask(Operation.FORGET_SERIES, ForgetSeriesHeader(name, topics))

    async def open_sequenced(self, producer: str) -> Series:
        header = OpenSeriesHeader(producer, sequenced=True)
        return (await self._ask(Operation.OPEN_SERIES, header)).read(Series)

    async def forget_sequenced(self, producer: str, topics: tuple[str, ...]) -> None:
        header = ForgetSeriesHeader(producer, topics, sequenced=True)
        await self._ask(Operation.FORGET_SERIES, header)

    async def publish_sequenced(self, request: SequencedPublish) -> Ack:
        header = PublishSequencedHeader(
            request.producer, request.epoch, request.sequence, request.topic, request.partition
        )
        return (await self._ask(Operation.PUBLISH_SEQUENCED, header, request.batches)).read(Ack)

    async def last_sequence(
        self, producer: str, epoch: Epoch, *, topic: str, partition: int
    ) -> int | None:
        header = LastSequenceHeader(producer, epoch, topic, partition)
        answer = await self._ask(Operation.LAST_SEQUENCE, header)
        return answer.read(LastSequenceAnswer).sequence

    async def settled_by(self, group: str, *, topic: str, partition: int) -> Position:
        header = SettledByHeader(group, topic, partition)
        return (await self._ask(Operation.SETTLED_BY, header)).read(Position)
