"""A group's records as server-sent events, each acknowledged once it has been written out.

Events go one way, so nothing can be said back: whoever has to say that a record failed uses a
WebSocket. What was written and never arrived is delivered to nobody again; that is what a group of
this kind of stream promises, and why it is told in the documentation.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.api import ConsumeRequest, Place, Settlement, Start, Verb
from angarium.doors.http.problems import told
from angarium.doors.http.records import record_out
from angarium.doors.http.server.stream import StreamCut
from angarium.doors.http.socket_feeds import lent_records, portions
from angarium.errors import AngariumError
from angarium.wire.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from angarium.api import Consumption, GroupBroker, Handed
    from angarium.doors.http.server import Stream

CREDIT: Final = 500
"""Records lent to one stream at a time; more come as they are written out."""

_encode: Final = msgspec.json.Encoder().encode


async def consumption_of(groups: GroupBroker, *, group: str, topic: str, start: str) -> Consumption:
    """Take part in a group on behalf of a stream."""
    place = Place.LATEST if start == "latest" else Place.EARLIEST
    return await groups.consume(
        ConsumeRequest(group=group, topics=(topic,), start=Start(place), credit=CREDIT)
    )


async def stream_group(
    consumption: Consumption,
    stream: Stream,
    *,
    in_base64: bool,
    heartbeat: bytes,
    heartbeat_s: float,
) -> None:
    """Write what the member is lent until the client goes; acknowledge what was written."""
    try:
        await _deliver(
            consumption, stream, in_base64=in_base64, heartbeat=heartbeat, heartbeat_s=heartbeat_s
        )
    except StreamCut:
        return
    except asyncio.CancelledError:
        with suppress(StreamCut):
            await _say(stream, Unreachable("this node is stopping"))
        raise
    except AngariumError as error:
        with suppress(StreamCut):
            await _say(stream, error)
    finally:
        # What was lent and not written goes back untried.
        await consumption.close()
        stream.end()


async def _deliver(
    consumption: Consumption,
    stream: Stream,
    *,
    in_base64: bool,
    heartbeat: bytes,
    heartbeat_s: float,
) -> None:
    coming: AsyncIterator[Handed] = aiter(consumption)
    waiting: asyncio.Task[Handed] | None = None
    try:
        while True:
            if waiting is None:
                waiting = asyncio.ensure_future(_next(coming))
            done, _ = await asyncio.wait((waiting,), timeout=heartbeat_s)
            if not done:
                await stream.write(heartbeat)
                continue
            try:
                handed = waiting.result()
            except StopAsyncIteration:
                return
            waiting = None
            await _write(consumption, stream, handed, in_base64=in_base64)
    finally:
        if waiting is not None:
            waiting.cancel()


async def _next(coming: AsyncIterator[Handed]) -> Handed:
    return await anext(coming)


async def _write(
    consumption: Consumption, stream: Stream, handed: Handed, *, in_base64: bool
) -> None:
    for portion in portions(lent_records(handed)):
        events = [
            b"data: %b\n\n"
            % _encode(record_out(one, partition=handed.partition, in_base64=in_base64))
            for one in portion
        ]
        await stream.write(b"".join(events))
        offsets = [one.offset for one in portion]
        await consumption.settle(
            [Settlement(handed.topic, handed.partition, Verb.ACK, ranges_of(offsets))]
        )


def ranges_of(offsets: Sequence[int]) -> tuple[int, ...]:
    """Return ascending offsets as ranges: first, past the last, and so on."""
    found: list[int] = []
    for offset in offsets:
        if found and found[-1] == offset:
            found[-1] = offset + 1
        else:
            found += (offset, offset + 1)
    return tuple(found)


async def _say(stream: Stream, error: AngariumError) -> None:
    await stream.write(b"event: error\ndata: %b\n\n" % _encode(told(error)))
