"""A member's part in a group at another process, as the contract has it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Final, cast

from angarium.api import Handed
from angarium.batch import split
from angarium.errors import AngariumError
from angarium.ids import Index
from angarium.wire import Unreachable
from angarium.wire.operations import (
    Answered,
    ConsumeHeader,
    HandedOver,
    Heard,
    Joined,
    Operation,
    SetCredit,
    Settle,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from angarium.api import ConsumeRequest, GroupConfig, Settled, Settlement
    from angarium.kinds import GroupKind
    from angarium.wire import Connection, Frame, Stream

WAITING_MAX: Final = 64
"""Deliveries that came and were not taken. At the bound nothing more is read from the node."""


class RemoteConsumption:
    """One consumer's part in a group, through one node; it ends when its stream does."""

    def __init__(self, stream: Stream, joined: Joined) -> None:
        """Not for callers: use `begun`."""
        self._stream = stream
        self._joined = joined
        self._numbers = count(1)
        self._unanswered: dict[int, asyncio.Future[tuple[Settled, ...]]] = {}
        self._coming: asyncio.Queue[Handed | None] = asyncio.Queue(WAITING_MAX)
        self._error: AngariumError | None = None
        self._reading = asyncio.get_running_loop().create_task(self._read())

    @classmethod
    async def begun(cls, connection: Connection, request: ConsumeRequest) -> RemoteConsumption:
        """Join the group; raises why not."""
        stream = connection.open_stream(Operation.CONSUME, ConsumeHeader(request))
        try:
            frame = await stream.receive()
        except BaseException:
            stream.cancel()  # or it would join all the same, with nobody to take anything
            raise
        if frame is None:
            raise Unreachable("the node ended the consumption before it began")
        joined = _heard(frame)
        assert isinstance(joined, Joined), "a consumption begins with `Joined`"
        return cls(stream, joined)

    @property
    def member(self) -> str:
        """Under which name it takes part."""
        return self._joined.member

    @property
    def kind(self) -> GroupKind:
        """How the group consumes."""
        return self._joined.kind

    @property
    def config(self) -> GroupConfig:
        """The group's settings."""
        return self._joined.config

    async def __aiter__(self) -> AsyncIterator[Handed]:
        while (handed := await self._coming.get()) is not None:
            yield handed
        if self._error is not None:
            raise self._error

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        """Settle records; an answer for each, in their order, once it is committed."""
        if self._reading.done():
            raise self._error or Unreachable("the consumption has ended")
        number = next(self._numbers)
        answer: asyncio.Future[tuple[Settled, ...]] = asyncio.get_running_loop().create_future()
        self._unanswered[number] = answer
        try:
            await self._stream.send(Settle(number, tuple(settlements)))
            return await answer
        finally:
            self._unanswered.pop(number, None)

    async def set_credit(self, credit: int) -> None:
        """Change how many records may be on loan at a time."""
        await self._stream.send(SetCredit(credit))

    async def close(self, *, lost: bool = False) -> None:
        """Leave the group; `lost`: without a word."""
        try:
            if not lost and not self._reading.done():
                # A goodbye; the node hears it as the end of what we say.
                with suppress(AngariumError):
                    self._stream.end()
                    await asyncio.wait((self._reading,), timeout=1.0)
        finally:
            self._stream.cancel()
            self._reading.cancel()
        await asyncio.wait((self._reading,))

    async def _read(self) -> None:
        try:
            while (frame := await self._stream.receive()) is not None:
                heard = _heard(frame)
                if isinstance(heard, HandedOver):
                    await self._coming.put(_handed(heard, frame))
                elif isinstance(heard, Answered):
                    waiting = self._unanswered.pop(heard.number, None)
                    if waiting is not None and not waiting.done():
                        waiting.set_result(heard.settled)
        except AngariumError as error:
            self._error = error
        finally:
            ended = self._error or Unreachable("the consumption has ended")
            for waiting in self._unanswered.values():
                if not waiting.done():
                    waiting.set_exception(ended)
            while self._coming.full():
                self._coming.get_nowait()
            self._coming.put_nowait(None)


def _heard(frame: Frame) -> Heard:
    heard: Heard = frame.read(cast("type[Heard]", Heard))
    return heard


def _handed(heard: HandedOver, frame: Frame) -> Handed:
    return Handed(
        topic=heard.topic,
        partition=heard.partition,
        batches=tuple(split(frame.payload)),
        ranges=heard.ranges,
        attempt=heard.attempt,
        lease_ms=heard.lease_ms,
        generation=Index(heard.generation),
    )
