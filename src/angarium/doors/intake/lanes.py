"""Lanes: single records for one partition travel together while they wait anyway.

A publish that comes while another one for the same partition is under way could not be stored
before it. So it waits, and everything that waited goes in one call, packed into as few batches as
possible. Thus sixty clients that publish one by one cost the cluster little more than one that
publishes batches. What keeps that safe:

- A lane has one call under way. So records are stored, and outcomes told, in the order in which
  they were queued.
- What came as batches, or has an identity, keeps its batches: they are what a repeated publish is
  recognised by.
- Nobody pays for a neighbour's mistake: a batch of several that is refused is published again
  record by record. That is safe because a refusal says that nothing was stored.

Clients that were just answered usually publish again at once. A lane that answered several gives
them a moment to come back (`GATHER_SHARE`) before the next call: otherwise half of them would
always just have missed it, and every call, every sync and every frame would carry half as much.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from angarium.api import Ack
from angarium.doors.intake.acks import error_of_ack
from angarium.doors.intake.outgoing import NOBODY, Outgoing, single_batch
from angarium.doors.intake.packing import cut
from angarium.errors import AngariumError, InvalidArgument, LimitExceeded
from angarium.ids import Buffer
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from angarium.doors.intake.outgoing import ProducerIdentity
    from angarium.doors.intake.partitions import TopicShapes

    Publish = Callable[
        [str, int, tuple[Buffer, ...], DeliveryMode | None], Awaitable[tuple[Ack, ...]]
    ]

MERGED_BYTES: Final = 256 << 10
"""Records that wait are packed into batches of this size at the most; a larger one goes alone."""

CALL_BYTES: Final = 2 << 20
"""About how many bytes one call to the broker carries; the rest waits for the next one."""

WAITING_BYTES_MAX: Final = 64 << 20
"""Bytes of records that wait, over all lanes. At the bound further ones are refused."""

ENVELOPE_BYTES: Final = 200
"""What a record costs here besides its data, about."""

GATHER_FROM: Final = 4
"""A call that carried so many records or more makes the next one wait for those it answered."""

GATHER_SHARE: Final = 1.0
"""How long at the most, as a share of how long the call took."""

GATHER_SECONDS_MAX: Final = 0.006
"""And never longer than this."""

EARLY_PAUSE_SECONDS: Final = 0.0015
"""An answer that comes before its record is stored took next to no time, which says nothing of how
long clients take to come back. After such ones a lane waits for as long as they do: until none has
come for this long, or for `GATHER_SECONDS_MAX`."""


class Placed(msgspec.Struct, frozen=True, gc=False):
    """Where a record went: the ack of its batch, and which row of the batch it is."""

    # One is made for every record, as of `Waiting`; a named tuple takes four times as long.

    ack: Ack
    row: int
    acks: tuple[Ack, ...] = ()
    """Of a publish that came as batches: one for each, in their order."""


class LaneKey(NamedTuple):
    """What can travel together."""

    topic: str
    partition: int
    mode: DeliveryMode | None


class Waiting(msgspec.Struct, frozen=True):
    """A publish that has not been sent."""

    record: Outgoing | None
    """A record that may share a batch; None: there are `batches`."""
    batches: tuple[Buffer, ...]
    size: int
    mode: DeliveryMode | None
    done: Callable[[Placed | Exception], None]
    """Called once."""


class Parcel(NamedTuple):
    """Publishes that share a batch, or one with batches of its own: settled together."""

    batches: tuple[Buffer, ...]
    waiting: list[Waiting]
    error: AngariumError | None = None
    """Why it is left out of the call after all."""


class Lane:
    """Records for one partition: some wait, and some are perhaps under way."""

    __slots__ = ("_is_full", "_wanted", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Waiting] = deque()
        self._is_full: asyncio.Future[None] | None = None
        self._wanted = 0

    def add(self, waiting: Waiting) -> None:
        """Have a record wait."""
        self.waiting.append(waiting)
        gathering = self._is_full
        if gathering is not None and len(self.waiting) >= self._wanted:
            _let_go(gathering)

    async def gathered(self, count: int, *, seconds_max: float, pause_s: float) -> None:
        """Wait until `count` more records are here, none has come for `pause_s`, or it has taken
        too long."""
        # A future and timers: `asyncio.timeout` costs several records' worth of time.
        loop = asyncio.get_running_loop()
        self._wanted = len(self.waiting) + count
        gathering = self._is_full = loop.create_future()
        ends_at = loop.time() + seconds_max

        def look(seen: int) -> None:
            here = len(self.waiting)
            if here == seen or loop.time() >= ends_at:
                _let_go(gathering)
            else:
                timers.append(loop.call_later(pause_s, look, here))

        timers = [loop.call_later(min(pause_s, seconds_max), look, len(self.waiting))]
        try:
            await gathering
        finally:
            timers[-1].cancel()
            self._is_full = None


def _let_go(gathering: asyncio.Future[None]) -> None:
    if not gathering.done():
        gathering.set_result(None)


class Lanes:
    """All lanes of a door, or of one stream whose records nobody else's may join."""

    def __init__(self, publish: Publish, shapes: TopicShapes, *, gathers: bool = True) -> None:
        """Prepare; without `gathers` nobody is waited for: one client says all there is."""
        self.waiting_bytes = 0
        self._publish = publish
        self._shapes = shapes
        self._gathers = gathers
        self._is_over = False
        self._lanes: dict[LaneKey, Lane] = {}
        """Those with something under way or waiting; others cost nothing."""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def waiting_records(self) -> int:
        """How many publishes wait for a call that is under way."""
        return sum(len(lane.waiting) for lane in self._lanes.values())

    def publish(
        self,
        key: LaneKey,
        record: Outgoing,
        done: Callable[[Placed | Exception], None],
        identity: ProducerIdentity = NOBODY,
    ) -> None:
        """Publish a record; `done` is called once, later. Raises `LimitExceeded`, or why a record
        that goes alone cannot be.

        One that has an identity is a batch by itself, because the batch is what is recognised; and
        one that could be refused for its times, because its neighbours would be with it.
        """
        if identity is NOBODY and record.is_plain:
            waiting = Waiting(record, (), ENVELOPE_BYTES + record.size, key.mode, done)
        else:
            batch = single_batch(record, identity)
            waiting = Waiting(None, (batch,), ENVELOPE_BYTES + len(batch), key.mode, done)
        self.queue(key, waiting)

    def queue(self, key: LaneKey, waiting: Waiting) -> None:
        """Have something wait in a lane; what differs in mode never travels together."""
        if self.waiting_bytes + waiting.size > WAITING_BYTES_MAX:
            raise LimitExceeded("waiting_bytes_max", "too much waits to be published here")
        self.waiting_bytes += waiting.size
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane()
            # From the end of this turn on: what else the turn brings goes along.
            asyncio.get_running_loop().call_soon(self._begin, key, lane)
        lane.add(waiting)

    def cancel(self) -> None:
        """Give up what is under way, and begin nothing more: nobody waits for it any longer."""
        self._is_over = True
        for task in self._tasks:
            task.cancel()

    def _begin(self, key: LaneKey, lane: Lane) -> None:
        if self._is_over:
            return
        task = asyncio.get_running_loop().create_task(self._drive(key, lane))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _drive(self, key: LaneKey, lane: Lane) -> None:
        loop = asyncio.get_running_loop()
        try:
            while lane.waiting:
                began = loop.time()
                mode = lane.waiting[0].mode
                parcels = packed(lane.waiting, bytes_max=self._bytes_max(key.topic))
                await self._call(key, mode, parcels)
                answered = sum([len(one.waiting) for one in parcels])
                if self._gathers and answered >= GATHER_FROM:
                    most = min(GATHER_SECONDS_MAX, GATHER_SHARE * (loop.time() - began))
                    if mode is DeliveryMode.EVENTUAL:
                        most, pause_s = GATHER_SECONDS_MAX, EARLY_PAUSE_SECONDS
                    else:
                        pause_s = most
                    await lane.gathered(answered, seconds_max=most, pause_s=pause_s)
        finally:
            del self._lanes[key]
            for one in lane.waiting:  # only if this task was cancelled
                self._settle(one, LimitExceeded("door", "the door was closed"))

    async def _call(self, key: LaneKey, mode: DeliveryMode | None, parcels: list[Parcel]) -> None:
        batches = tuple([batch for one in parcels for batch in one.batches])
        try:
            acks = await self._publish(key.topic, key.partition, batches, mode) if batches else ()
        except Exception as error:  # each is an answer for those who wait
            # Kept by no name of this frame: the two would hold each other, and the batches.
            await self._failed(key, mode, parcels, error)
            return
        at = 0
        for one in parcels:
            own = acks[at : at + len(one.batches)]
            at += len(own)
            await self._told(key, mode, one, own)

    async def _told(
        self, key: LaneKey, mode: DeliveryMode | None, parcel: Parcel, acks: tuple[Ack, ...]
    ) -> None:
        """Tell those who wait what became of their parcel."""
        if len(acks) == 1 and not acks[0].code:
            for row, waiting in enumerate(parcel.waiting):
                self.waiting_bytes -= waiting.size
                waiting.done(Placed(acks[0], row, acks))
        elif len(parcel.waiting) > 1:
            await self._one_by_one(key, mode, parcel)
        elif parcel.error is not None:
            self._settle(parcel.waiting[0], parcel.error)
        elif len(acks) > 1:
            self._settle(parcel.waiting[0], Placed(acks[0], 0, acks))
        else:
            self._settle(parcel.waiting[0], error_of_ack(acks[0]))

    async def _failed(
        self, key: LaneKey, mode: DeliveryMode | None, parcels: list[Parcel], error: Exception
    ) -> None:
        """Tell all whose records travelled together, unless it may be one of them alone."""
        is_about_one = _is_about_one(error) and sum(len(one.waiting) for one in parcels) > 1
        for one in parcels:
            if is_about_one and one.error is None:
                await self._one_by_one(key, mode, one)
            else:
                for waiting in one.waiting:
                    self._settle(waiting, one.error or error)

    async def _one_by_one(self, key: LaneKey, mode: DeliveryMode | None, parcel: Parcel) -> None:
        """Publish what was refused together again, each on its own account."""
        for waiting in parcel.waiting:
            await self._call(key, mode, [_alone(waiting)])

    def _bytes_max(self, topic: str) -> int:
        shape = self._shapes.known(topic)
        return MERGED_BYTES if shape is None else min(MERGED_BYTES, shape.batch_bytes_max)

    def _settle(self, waiting: Waiting, outcome: Placed | Exception) -> None:
        self.waiting_bytes -= waiting.size
        waiting.done(outcome)


def packed(waiting: deque[Waiting], *, bytes_max: int) -> list[Parcel]:
    """Take what one call carries from the front: what has the first one's mode, in its order."""
    mode = waiting[0].mode
    if sum([one.size for one in waiting]) < CALL_BYTES and all(one.mode is mode for one in waiting):
        taken = list(waiting)
        waiting.clear()
    else:
        taken = []
        size = 0
        while waiting and size < CALL_BYTES and waiting[0].mode is mode:
            taken.append(waiting.popleft())
            size += taken[-1].size
    if None not in [one.record for one in taken]:
        return _sharing(taken, bytes_max)
    parcels: list[Parcel] = []
    for may_share, found in groupby(taken, lambda one: one.record is not None):
        some = list(found)
        parcels += _sharing(some, bytes_max) if may_share else map(_alone, some)
    return parcels


def _sharing(some: list[Waiting], bytes_max: int) -> list[Parcel]:
    """Return records as parcels of one batch each."""
    if len(some) == 1:
        return [_alone(some[0])]
    try:
        batches = cut([one.record for one in some if one.record is not None], bytes_max=bytes_max)
    except AngariumError:
        return list(map(_alone, some))  # so that only the one that is wrong hears of it
    parcels: list[Parcel] = []
    at = 0
    for batch, count in batches:
        parcels.append(Parcel((batch,), some[at : at + count]))
        at += count
    return parcels


def _alone(one: Waiting) -> Parcel:
    if one.record is None:
        return Parcel(one.batches, [one])
    try:
        return Parcel((single_batch(one.record),), [one])
    except AngariumError as error:
        return Parcel((), [one], error.with_traceback(None))


def _is_about_one(error: Exception) -> bool:
    """Tell whether nothing was stored, and one of the records may be to blame."""
    if isinstance(error, LimitExceeded):
        return error.limit == "batch_bytes_max"
    return isinstance(error, InvalidArgument)
