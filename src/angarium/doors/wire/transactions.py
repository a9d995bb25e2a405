"""Transactions through the wire door. Translation only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from angarium.api.transactions import SequencedPublish, StageRequest, TransactionBroker
from angarium.batch import split
from angarium.errors import InvalidArgument
from angarium.machine.commands import (
    Abort,
    Begin,
    Commit,
    Decide,
    Finish,
    SeriesDelete,
    Stage,
    decode,
)
from angarium.wire.operations.numbers import Operation
from angarium.wire.operations.transactions import (
    DecideHeader,
    ForgetSeriesHeader,
    LastSequenceAnswer,
    LastSequenceHeader,
    OpenSeriesHeader,
    PublishSequencedHeader,
    SettledByHeader,
    StageHeader,
    TransactAnswer,
    TransactHeader,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import RaftGroupId
    from angarium.machine.commands import Transacting
    from angarium.wire import Request
    from angarium.wire.handlers import RequestHandler
    from angarium.wire.operations.transactions import Told


class Leaders(Protocol):
    """Puts commands of transactions to the groups that this node leads."""

    async def serve(self, group: RaftGroupId, commands: Sequence[Transacting]) -> tuple[Told, ...]:
        """Return what became of them; `NotLeader`."""


class TransactionsDoor:
    """What clients and other nodes may ask about transactions."""

    def __init__(self, broker: TransactionBroker, leaders: Leaders) -> None:
        self._broker = broker
        self._leaders = leaders

    def for_clients(self) -> dict[Operation, RequestHandler]:
        """Return the handlers of what anybody may ask."""
        return {
            Operation.OPEN_SERIES: self._open,
            Operation.STAGE: self._stage,
            Operation.COMMIT: self._commit,
            Operation.ABORT: self._abort,
            Operation.FORGET_SERIES: self._forget,
            Operation.PUBLISH_SEQUENCED: self._publish_sequenced,
            Operation.LAST_SEQUENCE: self._last_sequence,
            Operation.SETTLED_BY: self._settled_by,
        }

    def for_peers(self) -> dict[Operation, RequestHandler]:
        """Return the handlers of what only other nodes ask."""
        return {Operation.TRANSACT: self._transact}

    async def _open(self, request: Request) -> None:
        header = request.read(OpenSeriesHeader)
        if header.sequenced:
            request.answer(await self._broker.open_sequenced(header.name))
        else:
            request.answer(await self._broker.open_series(header.name))

    async def _stage(self, request: Request) -> None:
        header = request.read(StageHeader)
        staged = await self._broker.stage(
            StageRequest(
                transaction=header.transaction,
                stage=header.stage,
                part=header.part,
                topic=header.topic,
                partition=header.partition,
                batches=tuple(split(request.payload)),
                acks=header.acks,
            )
        )
        request.answer(staged)

    async def _commit(self, request: Request) -> None:
        header = request.read(DecideHeader)
        committed = await self._broker.commit(
            header.transaction, header.stages, content=header.content
        )
        request.answer(committed)

    async def _abort(self, request: Request) -> None:
        header = request.read(DecideHeader)
        request.answer(await self._broker.abort(header.transaction, header.stages))

    async def _forget(self, request: Request) -> None:
        header = request.read(ForgetSeriesHeader)
        if header.sequenced:
            await self._broker.forget_sequenced(header.name, header.topics)
        else:
            await self._broker.forget_series(header.name, header.topics)
        request.answer()

    async def _publish_sequenced(self, request: Request) -> None:
        header = request.read(PublishSequencedHeader)
        ack = await self._broker.publish_sequenced(
            SequencedPublish(
                producer=header.producer,
                epoch=header.epoch,
                sequence=header.sequence,
                topic=header.topic,
                partition=header.partition,
                batches=tuple(split(request.payload)),
            )
        )
        request.answer(ack)

    async def _last_sequence(self, request: Request) -> None:
        header = request.read(LastSequenceHeader)
        last = await self._broker.last_sequence(
            header.producer, header.epoch, topic=header.topic, partition=header.partition
        )
        request.answer(LastSequenceAnswer(last))

    async def _settled_by(self, request: Request) -> None:
        header = request.read(SettledByHeader)
        position = await self._broker.settled_by(
            header.group, topic=header.topic, partition=header.partition
        )
        request.answer(position)

    async def _transact(self, request: Request) -> None:
        header = request.read(TransactHeader)
        commands: list[Transacting] = []
        start = 0
        for length in header.lengths:
            command = decode(request.payload[start : start + length])
            start += length
            if not isinstance(
                command, Stage | Commit | Abort | Begin | Decide | Finish | SeriesDelete
            ):
                raise InvalidArgument("only commands of transactions are put this way")
            commands.append(command)
        request.answer(TransactAnswer(await self._leaders.serve(header.group, commands)))
