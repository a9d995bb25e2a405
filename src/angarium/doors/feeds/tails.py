"""The ends of topics, read once for everybody who follows them.

Two hundred streams of one topic read the same records in the same form. A `Tail` reads them once,
writes them down once (`chunk`), and hands the bytes to every follower that is level with it. A
follower that is not, because it began earlier or reads slowly, catches up by fetches of its own up
to where the tail is, and then joins. So a slow follower costs the others nothing, and two hundred
level ones cost little more than one. A tail of a whole topic takes on partitions that are added;
records of a key keep their order then, for who is level and for who catches up.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from angarium.api import FetchRequest, Interest, Start, StartAt
from angarium.api.fences import stretch
from angarium.api.stored_records import delivered, readable, records_of
from angarium.doors.callers import counted_of
from angarium.doors.feeds.following import Whole
from angarium.doors.feeds.positions import LIVE, found_start
from angarium.doors.feeds.whole import whole_topic
from angarium.errors import AngariumError, OffsetOutOfRange, QuotaExceeded, retry_after_of
from angarium.ids import Offset

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from angarium.api import Broker, Delivery, FetchResult, Subscription
    from angarium.batch import Record
    from angarium.closing import Closings
    from angarium.doors.feeds.whole import WholeTopics

PACE_SECONDS_PER_FOLLOWER: Final = 0.000_1
"""With many followers a tail hands out less often: each time costs something for each of them."""

PACE_SECONDS_MAX: Final = 0.02
"""Never less often than this; so a record waits no longer either."""

RECENT_BYTES_MAX: Final = 1 << 20
RECENT_CHUNKS_MAX: Final = 256
"""What a tail remembers of what it handed out last, so that a follower that has nearly caught up is
not late again and again. Older chunks are forgotten; they are read from the broker then."""

QUOTA_SECONDS: Final = 1.0
"""How long a follower waits for its quota, if nobody says how long."""

CATCH_UP_BYTES: Final = 256 << 10
"""About how much a follower that catches up reads at a time."""


class Writing(Protocol):
    """How records are written down for followers."""

    def __call__(
        self, record: Record, *, partition: int, live: bool, positions: list[int]
    ) -> bytes:
        """Return a record's bytes; `positions` are those after it."""


class Follower(Protocol):
    """Somebody who is level with a tail."""

    def take(self, chunk: bytes, before: list[int]) -> bool:
        """Take what came; False if it cannot for now, and will catch up from `before`."""

    def end(self, error: AngariumError | None) -> None:
        """Hear that the tail has ended."""


class TailKey(NamedTuple):
    """What followers have to have in common to share a tail."""

    topic: str
    partition: int | None
    """None: all that the topic has and will have."""
    form: str
    max_staleness_ms: int | None = None
    """How old what is read may be, as in `FetchRequest`; None: as old as it likes."""
    at_least: tuple[tuple[int, Offset], ...] = ()
    """By partition, offsets that followers know of, as in `FetchRequest`."""


class Tails:
    """All tails of a door, each for as long as somebody follows it."""

    def __init__(self, broker: Broker, closings: Closings) -> None:
        self._broker = broker
        self._closings = closings
        self._tails: dict[TailKey, Tail] = {}

    async def follow(self, key: TailKey, writing: Writing) -> Tail:
        """Return the tail for `key`, begun if nobody follows it yet; `leave` has to follow."""
        while True:
            tail = self._tails.get(key)
            if tail is None or tail.is_over:
                tail = self._tails[key] = Tail(self._broker, key, writing)
            # Counted from here on, so that the last one to lose patience closes it.
            tail.followers += 1
            try:
                await tail.opened()
            except BaseException:
                await self.leave(key, tail)
                raise
            if not tail.is_over:
                return tail
            await self.leave(key, tail)

    async def leave(self, key: TailKey, tail: Tail) -> None:
        """Follow it no longer; the last one ends it."""
        tail.followers -= 1
        if not tail.followers:
            tail.is_over = True
            if self._tails.get(key) is tail:
                del self._tails[key]
            await self._closings.see_to(tail.close())


class Tail:
    """The end of some partitions of a topic.

    Everything that is handed out has been read in one order, so a follower is where it is by its
    positions alone. `positions` are those of what was handed out, never of what only was read: a
    follower that catches up to them and joins misses nothing and gets nothing twice.
    """

    def __init__(self, broker: Broker, key: TailKey, writing: Writing) -> None:
        self.partitions: list[int] = []
        """Those of a whole topic become more."""
        self.positions: list[int] = []
        """How far it is in each partition, as of the last chunk."""
        self.followers = 0
        """How many follow it, or wait for it to open."""
        self.is_over = False
        self._broker = broker
        self._counted = counted_of(broker)
        self._key = key
        self._write = writing
        self._reached: list[int] = []
        """How far it has read; ahead of `positions` by what has not been handed out yet."""
        self._pending: list[bytes] = []
        self._recent: deque[tuple[list[int], bytes]] = deque()
        """The last chunks, each with the positions before it."""
        self._recent_bytes = 0
        self._level: dict[Follower, None] = {}
        self._is_due = False
        self._handed_at = 0.0
        loop = asyncio.get_running_loop()
        self._opening = loop.create_task(self._open())
        self._tasks: list[asyncio.Task[None]] = []
        """The one that reads."""
        self._whole: WholeTopics | None = None

    async def opened(self) -> None:
        """Return once it has begun; raises why it cannot be. A waiting caller may be cancelled."""
        await asyncio.shield(self._opening)

    async def _open(self) -> None:
        try:
            subscription = await self._subscribed()
        except BaseException:
            self.is_over = True
            raise
        self._reached = list(self.positions)
        self._tasks = [asyncio.get_running_loop().create_task(self._follow(subscription))]

    async def _subscribed(self) -> Subscription:
        topic, number, bound = self._key.topic, self._key.partition, self._key.max_staleness_ms
        known = dict(self._key.at_least)
        if number is None:
            wanted = Whole(topic, LIVE, max_staleness_ms=bound, at_least=known)
            self._whole = await whole_topic(self._broker, wanted)
            self._grow()
            return self._whole
        offset = await found_start(self._broker, topic, number, LIVE)
        self.partitions, self.positions = [number], [offset]
        start = Start(StartAt.OFFSET, offset)
        wish = Interest(
            topic=topic,
            partition=number,
            start=start,
            max_staleness_ms=bound,
            at_least=known.get(number),
        )
        return await self._broker.subscribe([wish])

    async def _follow(self, subscription: Subscription) -> None:
        error: AngariumError | None = None
        try:
            async for delivery in subscription:
                self._read(delivery)
        except AngariumError as broken:
            error = broken
        finally:
            self._end(error)
            await subscription.close()

    async def look(self) -> None:
        """Take on at once the partitions that the topic was given."""
        if self._whole is not None:
            await self._whole.look()
            self._grow()

    def _grow(self) -> None:
        """Begin with partitions that have come."""
        if self._whole is not None:
            starts = self._whole.following(self._key.topic).starts
            for number in range(len(self.partitions), len(starts)):
                self.partitions.append(number)
                self.positions.append(starts[number])
                self._reached.append(starts[number])

    async def close(self) -> None:
        """Stop reading; one that is still opening is closed once it has."""
        await asyncio.wait((self._opening,))
        if not self._opening.cancelled():
            self._opening.exception()  # told to all who waited, if anybody still did
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # --- followers ------------------------------------------------------------------------------

    def join(self, follower: Follower, positions: Sequence[int]) -> bool:
        """Hand everything from now on to `follower`, if it is level or nearly so.

        False: it has to catch up first.
        """
        if self.is_over:
            return False
        own = list(positions)
        if own != self.positions:
            befores = [before for before, _ in self._recent]
            if own not in befores:
                return False
            missed = list(self._recent)[befores.index(own) :]
            if not follower.take(b"".join(chunk for _, chunk in missed), own):
                return False
        self._level[follower] = None
        return True

    def part(self, follower: Follower) -> None:
        """Hand it nothing more."""
        self._level.pop(follower, None)

    async def catch_up(
        self, positions: list[int], write: Callable[[bytes], Awaitable[None]]
    ) -> None:
        """Read up to where the tail is now, and give what is there to `write`."""
        self._grow()
        ends = list(self.positions)
        # What has come since it began is read from its start, as the tail did.
        positions += self._starts()[len(positions) :]
        while any(at < end for at, end in zip(positions, ends, strict=True)):
            for index, bound in enumerate(self._bounds(positions, ends)):
                while positions[index] < bound:
                    chunk = await self._fetched(index, positions, bound)
                    if chunk:
                        await write(chunk)

    def _starts(self) -> list[int]:
        if self._whole is None:
            return []
        return list(self._whole.following(self._key.topic).starts.values())

    def _bounds(self, positions: list[int], ends: list[int]) -> list[int]:
        """Return up to where a follower may read in each partition, in the order of keys."""
        if self._whole is None:
            return ends
        return stretch(self._whole.following(self._key.topic).info, positions, ends)

    async def _fetched(self, index: int, positions: list[int], end: int) -> bytes:
        """Return records of one partition up to `end`, written down, and move its position."""
        topic = self._key.topic
        number, start = self.partitions[index], Offset(positions[index])
        wanted = FetchRequest(
            topic=topic,
            partition=number,
            offset=start,
            bytes_max=CATCH_UP_BYTES,
            # Where the tail is, somebody has all of it: a replica that has not would seem to end.
            at_least=Offset(end - 1),
            max_staleness_ms=self._key.max_staleness_ms,
        )
        result: FetchResult | None = None
        while result is None:
            try:
                result = await self._broker.fetch(wanted)
            except QuotaExceeded as error:
                # A stream is slowed down, not ended, for what it reads.
                await asyncio.sleep(retry_after_of(error) or QUOTA_SECONDS)
        written: list[bytes] = []
        after: int = start
        for buffer in result.batches:
            batch = readable(buffer, topic=topic, partition=number)
            for record in records_of(batch, from_offset=start, expired=result.expired):
                if record.offset >= end:
                    break
                positions[index] = record.offset + 1
                written.append(
                    self._write(record, partition=number, live=False, positions=positions)
                )
            after = batch.next_offset
        # Past a gap at the end; a follower is never ahead of the tail.
        positions[index] = min(max(after, positions[index]), end) if result.batches else end
        return b"".join(written)

    def check(self, positions: Sequence[int]) -> None:
        """Raise `OffsetOutOfRange` if somebody wants to begin where nothing is yet."""
        for wanted, end in zip(positions, self._reached, strict=False):
            if wanted > end:
                raise OffsetOutOfRange(offset=wanted, start=0, end=end)

    # --- handing out ----------------------------------------------------------------------------

    def _read(self, delivery: Delivery) -> None:
        number = delivery.partition
        self._grow()
        index = self.partitions.index(number)
        for batch, records in delivered(delivery):
            for record in records:
                if not delivery.live:
                    self._reached[index] = record.offset + 1
                self._pending.append(
                    self._write(
                        record, partition=number, live=delivery.live, positions=self._reached
                    )
                )
            if not delivery.live:
                self._reached[index] = max(self._reached[index], batch.next_offset)
        if not self._is_due:
            self._is_due = True
            loop = asyncio.get_running_loop()
            pace = min(PACE_SECONDS_MAX, PACE_SECONDS_PER_FOLLOWER * len(self._level))
            wait_s = self._handed_at + pace - loop.time()
            if wait_s > 0:
                loop.call_later(wait_s, self._hand_out)
            else:
                loop.call_soon(self._hand_out)

    def _hand_out(self) -> None:
        self._is_due = False
        self._handed_at = asyncio.get_running_loop().time()
        before, self.positions = self.positions, list(self._reached)
        chunk = b"".join(self._pending)
        self._pending.clear()
        if chunk:
            self._remember(before, chunk)
            if self._counted.toll is not None:
                # The subscription has counted it once; it goes out to each.
                self._counted.toll.read(len(chunk) * max(0, len(self._level) - 1))
            behind = [one for one in self._level if not one.take(chunk, before)]
            for one in behind:
                self._level.pop(one, None)

    def _remember(self, before: list[int], chunk: bytes) -> None:
        self._recent.append((before, chunk))
        self._recent_bytes += len(chunk)
        while self._recent_bytes > RECENT_BYTES_MAX or len(self._recent) > RECENT_CHUNKS_MAX:
            self._recent_bytes -= len(self._recent.popleft()[1])

    def _end(self, error: AngariumError | None) -> None:
        self.is_over = True
        followers, self._level = self._level, {}
        for follower in followers:
            follower.end(error)
