"""CONSUME: a member of a group on a stream. Translation only; `wire.operations.groups` says how."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from angarium.errors import AngariumError
from angarium.wire import StreamOutbox
from angarium.wire.operations import (
    Answered,
    ConsumeHeader,
    HandedOver,
    Joined,
    Said,
    SetCredit,
    Settle,
)

if TYPE_CHECKING:
    from angarium.api import Settled
    from angarium.service.access import PermittedBroker
    from angarium.service.groups.consumption import LocalConsumption
    from angarium.wire import Stream

SETTLES_MAX: Final = 256
"""Unanswered `Settle` frames of one consumer. At the limit the next waits until one is answered."""


async def consume(stream: Stream, broker: PermittedBroker) -> None:
    """Serve one member until it leaves, is lost, or its consumption breaks."""
    consumption = await broker.begin_consume(stream.opening.read(ConsumeHeader).request)
    outbox = StreamOutbox(stream)
    heard = asyncio.create_task(_listen(stream, consumption, outbox))
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
        outbox.close()
        # A member that said goodbye has left already; any other was lost.
        await consumption.close(lost=True)


async def _listen(stream: Stream, consumption: LocalConsumption, outbox: StreamOutbox) -> None:
    """Take what a member says until it says goodbye."""
    unanswered = 0
    has_room = asyncio.Event()

    def settle(said: Settle) -> None:
        nonlocal unanswered

        def told(settled: tuple[Settled, ...]) -> None:
            nonlocal unanswered
            unanswered -= 1
            outbox.put(Answered(said.number, settled))
            has_room.set()

        unanswered += 1
        consumption.begin_settle(said.settlements, told)

    try:
        async for frame in stream:
            said: Said = frame.read(Said)  # type: ignore[arg-type]
            if isinstance(said, Settle):
                settle(said)
                if unanswered >= SETTLES_MAX:
                    has_room.clear()
                    await has_room.wait()
            elif isinstance(said, SetCredit):
                await consumption.set_credit(said.credit)
    except AngariumError as error:
        stream.cancel(error)
        return
    await consumption.close()
