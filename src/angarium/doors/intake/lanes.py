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
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from angarium.api import Ack
from angarium.batch import AT_ONCE, NEVER
from angarium.doors.intake.acks import error_of_ack
from angarium.doors.intake.outgoing import NOBODY, Outgoing, single_batch
from angarium.doors.intake.parcels import Parcel, alone, packed
from angarium.errors import InvalidArgument, LimitExceeded
from angarium.ids import Buffer
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine

    from angarium.doors.intake.outgoing import ProducerIdentity
    from angarium.doors.intake.partitions import TopicShapes

    Batches = tuple[Buffer, ...]
    Outcome = tuple[Ack, ...] | Exception
    Publish = Callable[
        [str, int, Batches, DeliveryMode | None, int | None], Awaitable[tuple[Ack, ...]]
    ]
    Begin = Callable[
        [str, int, Batches, DeliveryMode | None, int | None, Callable[[Outcome], None]],
        bool,
    ]

MERGED_BYTES: Final = 256 << 10
"""Records that wait are packed into batches of this size at the most; a larger one goes alone."""

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
"""An EVENTUAL answer, which comes before its record is stored, took next to no time, and that says
nothing of how long clients take to come back. After such ones a lane waits for as long as they do:
until none has come for this long, or for `GATHER_SECONDS_MAX`. PERFORMANCE has nothing to share
that is worth it: there, clients and node had better work at the same time."""


class Placed(msgspec.Struct, frozen=True, gc=False):
    """Where a record went: the ack of its batch, and which row of the batch it is."""

    # One is made for every record, as of `Waiting`; a named tuple takes four times as long.

    ack: Ack
    row: int
    acks: tuple[Ack, ...] = ()
    """Of a publish that came as batches: one for each, in their order."""


class LaneKey(msgspec.Struct, frozen=True, gc=False):
    """What can travel together."""

    topic: str
    partition: int
    mode: DeliveryMode | None
    layout: int | None = None
    """The layout of the topic by which keys, or a turn, have sent records there."""


class Waiting(msgspec.Struct, frozen=True):
    """A publish that has not been sent."""

    record: Outgoing | None
    """A record that may share a batch; None: there are `batches`."""
    batches: tuple[Buffer, ...]
    size: int
    mode: DeliveryMode | None
    done: Callable[[Placed | Exception], None]
    """Called once."""


class Lane:
    """Records for one partition: some wait, and some are perhaps under way."""

    __slots__ = ("gathering", "waiting", "wanted")

    def __init__(self) -> None:
        self.waiting: deque[Waiting] = deque()
        self.gathering: asyncio.TimerHandle | None = None
        """Until when those who were just answered are waited for, if they are."""
        self.wanted = 0
        """How many there will be once they have come."""


class Call(NamedTuple):
    """What one call to the broker carries."""

    key: LaneKey
    lane: Lane
    mode: DeliveryMode | None
    parcels: list[Parcel]
    began: float

    @property
    def batches(self) -> Batches:
        """Those of all parcels."""
        return tuple([batch for one in self.parcels for batch in one.batches])


class Lanes:
    """All lanes of a door, or of one stream whose records nobody else's may join."""

    def __init__(
        self,
        publish: Publish,
        shapes: TopicShapes,
        *,
        begin: Begin | None = None,
        gathers: bool = True,
    ) -> None:
        """Prepare; without `gathers` nobody is waited for: one client says all there is.

        `begin` publishes without a task, where it can; it says so by True, and calls back.
        """
        self.waiting_bytes = 0
        self._publish = publish
        self._begin = begin
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
        value, name, headers, _, expires_at, deliver_at = record
        if identity is NOBODY and expires_at == NEVER and deliver_at == AT_ONCE:
            size = ENVELOPE_BYTES
            if name is not None or headers or value is None:
                size += record.size
            else:
                size += len(value)
            waiting = Waiting(record, (), size, key.mode, done)
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
            asyncio.get_running_loop().call_soon(self._send, key, lane)
        lane.waiting.append(waiting)
        if lane.gathering is not None and len(lane.waiting) >= lane.wanted:
            lane.gathering.cancel()
            lane.gathering = None
            asyncio.get_running_loop().call_soon(self._send, key, lane)

    def cancel(self) -> None:
        """Give up what is under way, and begin nothing more: nobody waits for it any longer."""
        self._is_over = True
        for task in self._tasks:
            task.cancel()

    # --- one call after the other ---------------------------------------------------------------

    def _send(self, key: LaneKey, lane: Lane) -> None:
        lane.gathering = None
        if self._is_over:
            return
        if not lane.waiting:
            del self._lanes[key]
            return
        loop = asyncio.get_running_loop()
        mode, began = lane.waiting[0].mode, loop.time()
        call = Call(key, lane, mode, packed(lane.waiting, self._bytes_max(key.topic)), began)

        def answered(outcome: Outcome) -> None:
            # Not at once: whoever answers is in the middle of work for others.
            loop.call_soon(self._answered, call, outcome)

        try:
            batches = call.batches
            if not batches:
                answered(())
            elif self._begin is None or not self._begin(
                key.topic, key.partition, batches, mode, key.layout, answered
            ):
                self._start(self._asked(call, batches))
        except Exception as error:  # each is an answer for those who wait
            answered(error.with_traceback(None))

    async def _asked(self, call: Call, batches: Batches) -> None:
        """Make a call that takes a task: somebody else has to be asked."""
        self._answered(call, await self._outcome(call, batches))

    async def _outcome(self, call: Call, batches: Batches) -> Outcome:
        try:
            key = call.key
            return await self._publish(key.topic, key.partition, batches, call.mode, key.layout)
        except Exception as error:  # each is an answer for those who wait
            # Its frames would hold the error, and the error them and the batches.
            return error.with_traceback(None)

    def _answered(self, call: Call, outcome: Outcome) -> None:
        if self._is_over:
            return
        if isinstance(outcome, Exception) or not _is_plain(call.parcels, outcome):
            self._start(self._told_with_care(call, outcome))
            return
        try:
            at = 0
            for parcel in call.parcels:
                acks = outcome[at : at + len(parcel.batches)]
                at += len(acks)
                ack = acks[0]
                self.waiting_bytes -= sum([one.size for one in parcel.waiting])
                for row, waiting in enumerate(parcel.waiting):
                    waiting.done(Placed(ack, row, acks))
        finally:
            self._go_on(call)

    def _go_on(self, call: Call) -> None:
        """Send what came meanwhile, perhaps after those who were answered have come back."""
        key, lane, _, parcels, began = call
        loop = asyncio.get_running_loop()
        answered = sum([len(one.waiting) for one in parcels])
        if self._gathers and answered >= GATHER_FROM:
            lane.wanted = len(lane.waiting) + answered
            if call.mode is DeliveryMode.EVENTUAL:
                self._look_again(key, lane, until=loop.time() + GATHER_SECONDS_MAX)
            else:
                wait_s = gather_s(loop.time() - began)
                lane.gathering = loop.call_later(wait_s, self._send, key, lane)
        elif lane.waiting:
            loop.call_soon(self._send, key, lane)
        else:
            del self._lanes[key]

    def _look_again(self, key: LaneKey, lane: Lane, *, until: float) -> None:
        loop, seen = asyncio.get_running_loop(), len(lane.waiting)

        def look() -> None:
            if len(lane.waiting) == seen or loop.time() >= until:
                self._send(key, lane)
            else:
                self._look_again(key, lane, until=until)

        lane.gathering = loop.call_later(EARLY_PAUSE_SECONDS, look)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- what was refused -----------------------------------------------------------------------

    async def _told_with_care(self, call: Call, outcome: Outcome) -> None:
        """Tell those who wait what became of a call in which not all went well."""
        try:
            await self._tell(call, outcome)
        finally:
            if self._is_over:
                for one in call.lane.waiting:
                    self._settle(one, LimitExceeded("door", "the door was closed"))
            else:
                self._go_on(call)

    async def _tell(self, call: Call, outcome: Outcome) -> None:
        if isinstance(outcome, Exception):
            await self._failed(call, outcome)
            return
        at = 0
        for parcel in call.parcels:
            acks = outcome[at : at + len(parcel.batches)]
            at += len(acks)
            if parcel.error is not None:
                self._settle(parcel.waiting[0], parcel.error)
            elif len(acks) == 1 and not acks[0].code:
                for row, waiting in enumerate(parcel.waiting):
                    self._settle(waiting, Placed(acks[0], row, acks))
            elif len(parcel.waiting) > 1:
                await self._one_by_one(call, parcel)
            elif len(acks) > 1:
                self._settle(parcel.waiting[0], Placed(acks[0], 0, acks))
            else:
                self._settle(parcel.waiting[0], error_of_ack(acks[0]))

    async def _failed(self, call: Call, error: Exception) -> None:
        """Tell all whose records travelled together, unless it may be one of them alone."""
        is_about_one = _is_about_one(error) and sum(len(one.waiting) for one in call.parcels) > 1
        for one in call.parcels:
            if is_about_one and one.error is None:
                await self._one_by_one(call, one)
            else:
                for waiting in one.waiting:
                    self._settle(waiting, one.error or error)

    async def _one_by_one(self, call: Call, parcel: Parcel) -> None:
        """Publish what was refused together again, each on its own account."""
        for waiting in parcel.waiting:
            single = call._replace(parcels=[alone(waiting)])
            batches = single.batches
            outcome: Outcome = await self._outcome(single, batches) if batches else ()
            await self._tell(single, outcome)

    def _bytes_max(self, topic: str) -> int:
        shape = self._shapes.known(topic)
        return MERGED_BYTES if shape is None else min(MERGED_BYTES, shape.batch_bytes_max)

    def _settle(self, waiting: Waiting, outcome: Placed | Exception) -> None:
        self.waiting_bytes -= waiting.size
        waiting.done(outcome)


def gather_s(took_s: float) -> float:
    """Return how long those are waited for whom a call answered that took so long."""
    return min(GATHER_SECONDS_MAX, GATHER_SHARE * took_s)


def _is_plain(parcels: list[Parcel], acks: tuple[Ack, ...]) -> bool:
    """Tell whether all was taken as it was sent."""
    if len(parcels) == 1 and len(acks) == 1:
        return not acks[0].code
    return not any(one.error for one in parcels) and not any(one.code for one in acks)


def _is_about_one(error: Exception) -> bool:
    """Tell whether nothing was stored, and one of the records may be to blame."""
    if isinstance(error, LimitExceeded):
        return error.limit == "batch_bytes_max"
    return isinstance(error, InvalidArgument)
