"""Server-sent events: a topic as a stream that a browser can follow with three lines of script.

Each record is an event whose id says how far the reader is in every partition; a reader that
reconnects with it goes on after exactly that record. A silent stream says every now and then that
it is there. A stream that is not read is not written to, and cut when that has gone on too long.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from angarium.api import ConsumeRequest, Start, StartAt
from angarium.batch.deadlines import ranges_of
from angarium.doors.callers import UNCOUNTED, presence_of
from angarium.doors.feeds.beating import beating
from angarium.doors.feeds.feed import GroupFeed
from angarium.doors.feeds.positions import LIVE, known_in, partitions_of, starts, word_of
from angarium.doors.feeds.tails import TailKey
from angarium.doors.http.problems import told
from angarium.doors.http.record_json import Count, Encoding, Partition, record_out
from angarium.doors.http.routing import route
from angarium.errors import AngariumError, InvalidArgument
from angarium.wire.errors import Unreachable, UnsupportedOperation
from angarium.wire.http.stream import EVENT_HEADERS, HEARTBEAT, OPENING, StreamCut

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from angarium.api import Broker, GroupBroker
    from angarium.batch import Record
    from angarium.closing import Closings
    from angarium.doors.callers import Counted
    from angarium.doors.feeds.tails import Tail, Tails
    from angarium.doors.http.socket_messages import Subscribe
    from angarium.wire.http import Request, Stream

CREDIT: Final = 500
"""Records lent to one stream of a group at a time; more come as they are written out."""

_encode: Final = msgspec.json.Encoder().encode


class StreamParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a stream begins."""

    topic: str
    partition: Partition | None = None
    """Only this one; without it, all of them."""
    start: Annotated[str, Meta(pattern="^(live|earliest)$")] = "live"
    """`live`: what comes from now on; `earliest`: all there is, and then what comes."""
    offset: Count | None = None
    """Begin here; for one partition."""
    since_us: Count | None = None
    """Begin with the first record appended at this time or later."""
    last_event_id: Annotated[str, Meta(max_length=8_192)] | None = None
    """As the header Last-Event-ID, for clients that cannot send one. The header wins."""
    encoding: Encoding = "text"
    max_staleness_ms: Count | None = None
    """All that was committed so long ago has come, or the stream ends with TOO_STALE."""
    at_least: Annotated[str, Meta(max_length=8_192)] | None = None
    """An offset of a receipt, as PARTITION:OFFSET, or several with commas between them: up to there
    the leader is asked for what the nearest replica does not have yet."""
    group: Annotated[str, Meta(min_length=1)] | None = None
    """Take part in this group instead; each record is acknowledged when it has been written."""


class Streaming:
    """The request that streams."""

    def __init__(
        self,
        broker: Broker,
        groups: GroupBroker | None,
        tails: Tails,
        closings: Closings,
        *,
        heartbeat_s: float,
        counted: Counted = UNCOUNTED,
    ) -> None:
        self._broker = broker
        self._groups = groups
        self._tails = tails
        self._closings = closings
        self._heartbeat_s = heartbeat_s
        self._counted = counted

    @route(
        "GET /v1/topics/{topic}/stream",
        "Follow a topic as server-sent events.",
        tag="streams",
        parameters=StreamParameters,
        other_answers=("text/event-stream",),
        headers=(("Last-Event-ID", "The id of the last event that was received."),),
        errors=(403, 416),
        changes=lambda given: given.group is not None,
    )
    async def stream(self, request: Request, given: StreamParameters) -> None:
        with presence_of(self._counted):
            await self._stream(request, given)

    async def _stream(self, request: Request, given: StreamParameters) -> None:
        if given.group is not None:
            await self._stream_group(request, given, given.group)
            return
        start = start_of(given)
        partitions = await partitions_of(self._broker, given.topic)
        resumed = request.text_header(b"last-event-id") or given.last_event_id or None
        known = known_in(given.at_least, given.partition)
        key = TailKey(
            given.topic,
            given.partition,
            given.encoding,
            given.max_staleness_ms,
            tuple(sorted(known.items())),
        )
        # The tail first: what comes between its beginning and ours is then caught up with.
        writing = partial(_event, in_base64=given.encoding == "base64")
        tail = await self._tails.follow(key, writing)
        try:
            if len(partitions) > len(tail.partitions):
                await tail.look()  # the id may be of a stream that knew of them
            if resumed is None and start is LIVE:
                positions: list[int] = list(tail.positions)
            else:
                found = await starts(
                    self._broker, given.topic, list(tail.partitions), start, resumed=resumed
                )
                positions = list(found)
                tail.check(positions)
            stream = request.connection.begin_stream(request, status=200, headers=EVENT_HEADERS)
            await stream.write(OPENING)
            await EventFollower(tail, stream, positions, heartbeat_s=self._heartbeat_s).run()
        finally:
            await self._tails.leave(key, tail)

    async def _stream_group(self, request: Request, given: StreamParameters, group: str) -> None:
        if self._groups is None:
            raise UnsupportedOperation("groups are not served here")
        if given.partition is not None or given.offset is not None or given.since_us is not None:
            raise InvalidArgument("a group knows by itself where it is")
        if given.max_staleness_ms is not None or given.at_least is not None:
            raise InvalidArgument(
                "a group is lent records by the leader: there is no bound to keep"
            )
        feed = GroupFeed(
            await self._groups.consume(
                ConsumeRequest(group=group, topics=(given.topic,), credit=CREDIT)
            )
        )
        try:
            stream = request.connection.begin_stream(request, status=200, headers=EVENT_HEADERS)
            await stream.write(OPENING)
            async with telling(stream):
                await self._deliver(feed, stream, in_base64=given.encoding == "base64")
        finally:
            # What was lent and not written goes back untried.
            await self._closings.see_to(feed.close())

    async def _deliver(self, feed: GroupFeed, stream: Stream, *, in_base64: bool) -> None:
        """Write what the member is lent; acknowledge what was written.

        Events go one way, so nothing can be said back: a consumer whose records may fail uses a
        WebSocket. What was written and never arrived is delivered to nobody again.
        """
        coming = beating(aiter(feed), lambda: stream.write(HEARTBEAT), seconds=self._heartbeat_s)
        async with aclosing(coming):
            async for topic, partition, records, *_ in coming:
                shown = [
                    record_out(one, partition=partition, in_base64=in_base64) for one in records
                ]
                await stream.write(b"".join([b"data: %b\n\n" % _encode(one) for one in shown]))
                await feed.acknowledge(topic, partition, ranges_of(one.offset for one in records))


@asynccontextmanager
async def telling(stream: Stream) -> AsyncGenerator[None, None]:
    """End a stream after what is done with it, and tell its reader why, unless it is gone."""
    try:
        yield
    except StreamCut:
        return
    except asyncio.CancelledError:
        await _say_why(stream, Unreachable("this node is stopping"))
        raise
    except AngariumError as error:
        await _say_why(stream, error)
    finally:
        stream.end()


async def _say_why(stream: Stream, error: AngariumError) -> None:
    with suppress(StreamCut):
        await stream.write(b"event: error\ndata: %b\n\n" % _encode(told(error)))


class EventFollower:
    """One stream that follows a tail."""

    def __init__(
        self, tail: Tail, stream: Stream, positions: list[int], *, heartbeat_s: float
    ) -> None:
        self._tail = tail
        self._stream = stream
        self._positions = positions
        self._heartbeat_s = heartbeat_s
        self._fell_behind = asyncio.Event()
        self._error: AngariumError | None = None
        self._is_ended = False

    def take(self, chunk: bytes, before: list[int]) -> bool:
        """Write what came, if the client reads."""
        if self._stream.write_nowait(chunk):
            return True
        self._positions = list(before)
        self._fell_behind.set()
        return False

    def end(self, error: AngariumError | None) -> None:
        """Hear that the tail has ended."""
        self._error = error
        self._is_ended = True
        self._fell_behind.set()

    async def run(self) -> None:
        """Catch up, be level, fall behind, catch up again, until somebody goes."""
        async with telling(self._stream):
            while not self._is_ended:
                await self._stream.writable()
                await self._tail.catch_up(self._positions, self._stream.write)
                self._fell_behind.clear()
                if self._tail.join(self, self._positions):
                    try:
                        await self._be_level()
                    finally:
                        self._tail.part(self)
                elif self._tail.is_over:
                    break
            if self._error is not None:
                raise self._error

    async def _be_level(self) -> None:
        """Wait until the tail cannot hand on any more."""
        while not self._fell_behind.is_set():
            before = self._tail.positions
            try:
                async with asyncio.timeout(self._heartbeat_s):
                    await self._fell_behind.wait()
            except TimeoutError:
                if self._tail.positions is before:
                    await self._stream.write(HEARTBEAT)


def start_of(given: StreamParameters | Subscribe) -> Start:
    """Return where a stream begins, which one of three parameters says."""
    named = [one for one in (given.offset, given.since_us) if one is not None]
    if len(named) > 1 or (named and given.start != "live"):
        raise InvalidArgument("a stream begins where one of start, offset and since_us says")
    if given.offset is not None:
        if given.partition is None:
            raise InvalidArgument("an offset is one of a partition: name it")
        return Start(StartAt.OFFSET, given.offset)
    if given.since_us is not None:
        return Start(StartAt.TIMESTAMP, given.since_us)
    return LIVE if given.start == "live" else Start(StartAt.EARLIEST)


def _event(
    record: Record, *, partition: int, live: bool, positions: list[int], in_base64: bool
) -> bytes:
    shown = _encode(record_out(record, partition=partition, in_base64=in_base64, live=live))
    return b"id: %b\ndata: %b\n\n" % (word_of(positions).encode(), shown)
