"""The lanes: single records for one partition travel together while they wait anyway.

A publish that comes while another one for the same partition is under way could not be stored
before it, so it waits, and everything that waited goes in one call, packed into as few batches as
possible. Thus sixty clients that publish one by one cost the cluster little more than one that
publishes batches. Nobody pays for a neighbour's mistake: a batch of several that is refused is
published again record by record.

Clients that were just answered usually publish again at once. A lane that answered several gives
them a moment to come back (`GATHER_SHARE`) before the next call: otherwise half of them would
always just have missed it, and every call, every sync and every frame would carry half as much.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.api import Ack, PublishRequest
from angarium.batch import BatchBuilder, encode
from angarium.doors.http.contract_values import error_of_ack
from angarium.doors.http.records import NOBODY, Outgoing, single_batch
from angarium.errors import AngariumError, InvalidArgument, LimitExceeded, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.api import Broker
    from angarium.doors.http.records import Identity
    from angarium.doors.partitions import TopicShapes
    from angarium.ids import Buffer
    from angarium.modes import DeliveryMode

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


_BARE: Final = Outgoing(None)[2:]
"""What a record has besides key and value if it has nothing."""


class Placed(NamedTuple):
    """Where a record went: the ack of its batch, and its place in that."""

    ack: Ack
    place: int


class Waiting(NamedTuple):
    """A record that has not been sent."""

    record: Outgoing
    size: int
    done: Callable[[Placed | Exception], None]
    identity: Identity


class LaneKey(NamedTuple):
    """What can travel together."""

    topic: str
    partition: int
    mode: DeliveryMode | None


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
        if gathering is not None and len(self.waiting) >= self._wanted and not gathering.done():
            gathering.set_result(None)

    async def gathered(self, count: int, *, seconds_max: float) -> None:
        """Wait until `count` more records are here, or it has taken too long."""
        loop = asyncio.get_running_loop()
        self._wanted = len(self.waiting) + count
        gathering = self._is_full = loop.create_future()
        timer = loop.call_later(seconds_max, _give_up, gathering)
        try:
            await gathering
        finally:
            timer.cancel()
            self._is_full = None


def _give_up(gathering: asyncio.Future[None]) -> None:
    if not gathering.done():
        gathering.set_result(None)


class Lanes:
    """All lanes of a door."""

    def __init__(self, broker: Broker, shapes: TopicShapes) -> None:
        self.waiting_bytes = 0
        self._broker = broker
        self._shapes = shapes
        self._lanes: dict[LaneKey, Lane] = {}
        """Those with something under way or waiting; others cost nothing."""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def waiting_records(self) -> int:
        """How many records wait for a call that is under way."""
        return sum(len(lane.waiting) for lane in self._lanes.values())

    def publish(
        self,
        key: LaneKey,
        record: Outgoing,
        done: Callable[[Placed | Exception], None],
        identity: Identity = NOBODY,
    ) -> None:
        """Publish a record; `done` is called once, later. Raises `LimitExceeded`.

        One that has an identity is a batch by itself, because the batch is what is recognised.
        """
        size = ENVELOPE_BYTES + len(record[0] or b"") + len(record[1] or b"")
        if self.waiting_bytes + size > WAITING_BYTES_MAX:
            raise LimitExceeded("waiting_bytes_max", "too much waits to be published here")
        self.waiting_bytes += size
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane()
            # From the end of this turn on: what else the turn brings goes along.
            asyncio.get_running_loop().call_soon(self._begin, key, lane)
        lane.add(Waiting(record, size, done, identity))

    def _begin(self, key: LaneKey, lane: Lane) -> None:
        task = asyncio.get_running_loop().create_task(self._drive(key, lane))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _drive(self, key: LaneKey, lane: Lane) -> None:
        loop = asyncio.get_running_loop()
        try:
            while lane.waiting:
                began = loop.time()
                call = packed(lane.waiting, bytes_max=self._bytes_max(key.topic))
                for waiting, error in call.failures:
                    self._settle(waiting, error)
                if call.batches:
                    await self._call(key, call.batches, call.loads)
                answered = sum(map(len, call.loads))
                if answered >= GATHER_FROM:
                    took = loop.time() - began
                    await lane.gathered(
                        answered, seconds_max=min(GATHER_SECONDS_MAX, GATHER_SHARE * took)
                    )
        finally:
            del self._lanes[key]
            for one in lane.waiting:  # only if this task was cancelled
                self._settle(one, LimitExceeded("door", "the door was closed"))

    async def _call(self, key: LaneKey, batches: list[Buffer], loads: list[list[Waiting]]) -> None:
        topic, partition, mode = key
        outcome: tuple[Ack, ...] | Exception
        try:
            outcome = await self._broker.publish(
                PublishRequest(topic=topic, partition=partition, batches=tuple(batches), mode=mode)
            )
        except Exception as error:  # each is an answer for those who wait
            if isinstance(error, NotFound):
                self._shapes.forget(topic)
            outcome = error
        if isinstance(outcome, Exception):
            everybody = [one for load in loads for one in load]
            if len(everybody) > 1 and _is_about_one(outcome):
                await self._one_by_one(key, everybody)
            else:
                for one in everybody:
                    self._settle(one, outcome)
            return
        refused: list[tuple[Waiting, Ack]] = []
        for ack, load in zip(outcome, loads, strict=True):
            if ack.code:
                refused += [(one, ack) for one in load]
                continue
            for place, waiting in enumerate(load):
                self.waiting_bytes -= waiting.size
                waiting.done(Placed(ack, place))
        if len(refused) > 1:
            await self._one_by_one(key, [one for one, _ in refused])
        elif refused:
            self._settle(refused[0][0], error_of_ack(refused[0][1]))

    async def _one_by_one(self, key: LaneKey, some: list[Waiting]) -> None:
        """Publish records again that were refused together, each on its own account."""
        for waiting in some:
            try:
                batch = single_batch(waiting.record, waiting.identity)
            except AngariumError as error:
                self._settle(waiting, error)
            else:
                await self._call(key, [batch], [[waiting]])

    def _bytes_max(self, topic: str) -> int:
        shape = self._shapes.known(topic)
        return MERGED_BYTES if shape is None else min(MERGED_BYTES, shape.batch_bytes_max)

    def _settle(self, waiting: Waiting, outcome: Placed | Exception) -> None:
        self.waiting_bytes -= waiting.size
        waiting.done(outcome)


# --- packing -------------------------------------------------------------------------------------


class Call(NamedTuple):
    """What one call carries."""

    batches: list[Buffer]
    loads: list[list[Waiting]]
    """The records of each batch, in their order."""
    failures: list[tuple[Waiting, Exception]]
    """What fits into no batch."""


def packed(waiting: deque[Waiting], *, bytes_max: int) -> Call:
    """Take what one call carries from the front, as batches."""
    size = sum([one.size for one in waiting])
    if len(waiting) > 1 and size < bytes_max // 2 and all(map(_is_bare, waiting)):
        # Nothing but keys and values, and all fit into one batch: no need to count each.
        load = list(waiting)
        waiting.clear()
        values, keys, *_ = zip(*[one.record for one in load], strict=True)
        return Call([encode(values, keys=keys)], [load], [])
    return _packed_one_by_one(waiting, bytes_max=bytes_max)


def _is_bare(waiting: Waiting) -> bool:
    record = waiting.record
    return type(record) is Outgoing and record[2:] == _BARE and waiting.identity is NOBODY


def _packed_one_by_one(waiting: deque[Waiting], *, bytes_max: int) -> Call:
    call = Call([], [], [])
    builder = BatchBuilder(bytes_max=bytes_max)
    together: list[Waiting] = []
    size = 0

    def close() -> None:
        if together:
            call.batches.append(builder.build())
            call.loads.append(together.copy())
            together.clear()

    while waiting and size < CALL_BYTES:
        one = waiting.popleft()
        size += one.size
        record = one.record
        is_alone = (
            one.identity is not NOBODY
            or not record.is_plain
            or one.size > bytes_max // 2
            or not (waiting or call.batches or together)
        )
        try:
            if is_alone:
                batch = single_batch(record, one.identity)
                close()
                call.batches.append(batch)
                call.loads.append([one])
            else:
                if not _added(builder, record):
                    close()
                    _added(builder, record)
                together.append(one)
        except AngariumError as error:
            call.failures.append((one, error))
    close()
    return call


def _added(builder: BatchBuilder, record: Outgoing) -> bool:
    value, key, headers, timestamp, _, _ = record
    return builder.add(value, key=key, headers=headers, timestamp=timestamp)


def _is_about_one(error: Exception) -> bool:
    """Tell whether nothing was stored, and one of the records may be to blame."""
    if isinstance(error, LimitExceeded):
        return error.limit == "batch_bytes_max"
    return isinstance(error, InvalidArgument)
