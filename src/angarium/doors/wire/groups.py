"""Consumer groups through the wire door. Translation only; `wire.operations.groups` says how."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from angarium.api import Consumption, GroupBroker
from angarium.api.groups import SETTLEMENTS_MAX
from angarium.errors import AngariumError, InvalidArgument
from angarium.wire import StreamOutbox, packed
from angarium.wire.operations import (
    AlterGroupHeader,
    Answered,
    ConsumeHeader,
    DeleteGroupHeader,
    GroupHeader,
    GroupsAnswer,
    HandedOver,
    Joined,
    Operation,
    PauseGroupHeader,
    ReportCheckpointsHeader,
    Said,
    SeekGroupAnswer,
    SeekGroupHeader,
    SetCredit,
    Settle,
    SettleAnswer,
    SettleHeader,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.api import ConsumeRequest, Settled, Settlement
    from angarium.wire import Request, Stream
    from angarium.wire.handlers import RequestHandler, StreamHandler

SETTLES_MAX: Final = 256
"""Unanswered `Settle` frames of one consumer. At the limit the next waits until one is answered."""


class PromptConsumption(Consumption, Protocol):
    """A consumption in the same process, which answers settlements without a task for each."""

    def begin_settle(
        self, settlements: Sequence[Settlement], told: Callable[[tuple[Settled, ...]], None]
    ) -> None:
        """Settle records, and call `told` once it is committed."""


class PromptGroups(GroupBroker, Protocol):
    """Groups in the same process."""

    async def consume(self, request: ConsumeRequest) -> PromptConsumption:
        """Take part in a group."""


class GroupsDoor:
    """What clients may ask about groups."""

    def __init__(self, groups: PromptGroups) -> None:
        self._groups = groups

    def requests(self) -> dict[Operation, RequestHandler]:
        """Return the handlers of requests."""
        return {
            Operation.SETTLE: self._settle,
            Operation.LIST_GROUPS: self._list,
            Operation.DESCRIBE_GROUP: self._describe,
            Operation.ALTER_GROUP: self._alter,
            Operation.SEEK_GROUP: self._seek,
            Operation.PAUSE_GROUP: self._pause,
            Operation.DELETE_GROUP: self._delete,
            Operation.REPORT_CHECKPOINTS: self._report,
        }

    def streams(self) -> dict[Operation, StreamHandler]:
        """Return the handlers of streams."""
        return {Operation.CONSUME: self._consume}

    # --- requests -------------------------------------------------------------------------------

    async def _settle(self, request: Request) -> None:
        header = request.read(SettleHeader)
        if len(header.settlements) > SETTLEMENTS_MAX:
            raise InvalidArgument(f"{len(header.settlements)} settlements; {SETTLEMENTS_MAX} fit")
        settled = await self._groups.settle(header.group, header.member, header.settlements)
        request.answer(SettleAnswer(settled))

    async def _list(self, request: Request) -> None:
        request.answer(b"", [packed(GroupsAnswer(await self._groups.list_groups()))])

    async def _describe(self, request: Request) -> None:
        info = await self._groups.describe_group(request.read(GroupHeader).group)
        request.answer(b"", [packed(info)])

    async def _alter(self, request: Request) -> None:
        header = request.read(AlterGroupHeader)
        info = await self._groups.alter_group(header.group, header.config)
        request.answer(b"", [packed(info)])

    async def _seek(self, request: Request) -> None:
        header = request.read(SeekGroupHeader)
        moved = await self._groups.seek_group(
            header.group,
            topic=header.topic,
            partition=header.partition,
            start=header.start,
            dry_run=header.dry_run,
        )
        request.answer(b"", [packed(SeekGroupAnswer(moved))])

    async def _pause(self, request: Request) -> None:
        header = request.read(PauseGroupHeader)
        await self._groups.pause_group(header.group, paused=header.paused)

    async def _delete(self, request: Request) -> None:
        header = request.read(DeleteGroupHeader)
        await self._groups.delete_group(header.group, topic=header.topic)

    async def _report(self, request: Request) -> None:
        header = request.read(ReportCheckpointsHeader)
        await self._groups.report_checkpoints(header.group, header.checkpoints)

    # --- consuming ------------------------------------------------------------------------------

    async def _consume(self, stream: Stream) -> None:
        consumption = await self._groups.consume(stream.opening.read(ConsumeHeader).request)
        listening = _Listening(stream, consumption)
        heard = asyncio.create_task(listening.run())
        try:
            await stream.send(Joined(consumption.member, consumption.kind, consumption.config))
            async for handed in consumption:
                told = HandedOver(
                    handed.topic,
                    handed.partition,
                    handed.ranges,
                    handed.attempt,
                    handed.lease_ms,
                    handed.generation,
                )
                await stream.send(told, handed.batches)
        finally:
            heard.cancel()
            listening.close()
            # Whoever said goodbye has left already; anybody else was lost.
            await consumption.close(lost=True)


class _Listening:
    """Takes what a consumer says on its stream."""

    def __init__(self, stream: Stream, consumption: PromptConsumption) -> None:
        self._stream = stream
        self._consumption = consumption
        self._outbox = StreamOutbox(stream)
        self._open = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def run(self) -> None:
        """Take what comes until the consumer says goodbye."""
        try:
            async for frame in self._stream:
                said: Said = frame.read(Said)  # type: ignore[arg-type]
                if isinstance(said, Settle):
                    self._settle(said)
                    if self._open >= SETTLES_MAX:
                        await self._some_answer()
                elif isinstance(said, SetCredit):
                    await self._consumption.set_credit(said.credit)
        except AngariumError as error:
            self._stream.cancel(error)
            return
        await self._consumption.close()

    def close(self) -> None:
        """Answer no more."""
        self._outbox.close()

    def _settle(self, said: Settle) -> None:
        self._open += 1

        def told(settled: tuple[Settled, ...]) -> None:
            self._open -= 1
            self._outbox.put(Answered(said.number, settled))
            while self._waiting:
                waiting = self._waiting.popleft()
                if not waiting.done():
                    waiting.set_result(None)

        self._consumption.begin_settle(said.settlements, told)

    async def _some_answer(self) -> None:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting
