"""The lanes: single records for one partition travel together while they wait anyway.

A publish that comes while another one for the same partition is under way could not be stored
before it, so it waits, and everything that waited goes in one call, packed into as few batches as
possible. Thus sixty clients that publish one by one cost the cluster little more than one that
publishes batches. Nobody pays for a neighbour's mistake: a batch of several that is refused is
published again record by record.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.api import Ack, PublishRequest
from angarium.batch import BatchBuilder
from angarium.doors.http.contract_values import error_of_ack
from angarium.doors.http.records import NOBODY, single_batch
from angarium.errors import AngariumError, InvalidArgument, LimitExceeded, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.api import Broker
    from angarium.doors.http.records import Identity, Outgoing
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


class _Share(NamedTuple):
    """Where a record is in a call."""

    waiting: Waiting
    batch: int
    place: int


class Lanes:
    """All lanes of a door."""

    def __init__(self, broker: Broker, shapes: TopicShapes) -> None:
        self.waiting_bytes = 0
        self._broker = broker
        self._shapes = shapes
        self._lanes: dict[LaneKey, deque[Waiting]] = {}
        """Those with something under way or waiting; others cost nothing."""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def waiting_records(self) -> int:
        """How many records wait for a call that is under way."""
        return sum(map(len, self._lanes.values()))

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
        size = ENVELOPE_BYTES + len(record.value or b"") + len(record.key or b"")
        if self.waiting_bytes + size > WAITING_BYTES_MAX:
            raise LimitExceeded("waiting_bytes_max", "too much waits to be published here")
        self.waiting_bytes += size
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = deque()
            # From the end of this turn on: what else the turn brings goes along.
            asyncio.get_running_loop().call_soon(self._begin, key, lane)
        lane.append(Waiting(record, size, done, identity))

    def _begin(self, key: LaneKey, lane: deque[Waiting]) -> None:
        task = asyncio.get_running_loop().create_task(self._drive(key, lane))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _drive(self, key: LaneKey, lane: deque[Waiting]) -> None:
        try:
            while lane:
                batches, shares, failures = _packed(lane, bytes_max=self._bytes_max(key.topic))
                for waiting, error in failures:
                    self._settle(waiting, error)
                if shares:
                    await self._call(key, batches, shares)
        finally:
            del self._lanes[key]
            for one in lane:  # only if this task was cancelled
                self._settle(one, LimitExceeded("door", "the door was closed"))

    async def _call(self, key: LaneKey, batches: list[Buffer], shares: list[_Share]) -> None:
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
            if len(shares) > 1 and _is_about_one(outcome):
                await self._one_by_one(key, shares)
            else:
                for share in shares:
                    self._settle(share.waiting, outcome)
            return
        refused = []
        for share in shares:
            ack = outcome[share.batch]
            if not ack.code:
                self._settle(share.waiting, Placed(ack, share.place))
            else:
                refused.append(share)
        if len(refused) > 1:
            await self._one_by_one(key, refused)
        elif refused:
            self._settle(refused[0].waiting, error_of_ack(outcome[refused[0].batch]))

    async def _one_by_one(self, key: LaneKey, shares: list[_Share]) -> None:
        """Publish records again that were refused together, each on its own account."""
        for share in shares:
            try:
                batch = single_batch(share.waiting.record, share.waiting.identity)
            except AngariumError as error:
                self._settle(share.waiting, error)
            else:
                await self._call(key, [batch], [_Share(share.waiting, 0, 0)])

    def _bytes_max(self, topic: str) -> int:
        shape = self._shapes.known(topic)
        return MERGED_BYTES if shape is None else min(MERGED_BYTES, shape.batch_bytes_max)

    def _settle(self, waiting: Waiting, outcome: Placed | Exception) -> None:
        self.waiting_bytes -= waiting.size
        waiting.done(outcome)


def _packed(
    lane: deque[Waiting], *, bytes_max: int
) -> tuple[list[Buffer], list[_Share], list[tuple[Waiting, Exception]]]:
    """Take what one call carries from the front of a lane, as batches; and what fits into none."""
    batches: list[Buffer] = []
    shares: list[_Share] = []
    failures: list[tuple[Waiting, Exception]] = []
    builder = BatchBuilder(bytes_max=bytes_max)
    size = 0
    while lane and size < CALL_BYTES:
        waiting = lane.popleft()
        size += waiting.size
        record = waiting.record
        try:
            if (
                waiting.identity is not NOBODY
                or not record.is_plain
                or waiting.size > bytes_max // 2
                or not (lane or shares)
            ):
                batch = single_batch(record, waiting.identity)
                if len(builder):
                    batches.append(builder.build())
                batches.append(batch)
                shares.append(_Share(waiting, len(batches) - 1, 0))
                continue
            if not _added(builder, record):
                batches.append(builder.build())
                _added(builder, record)
            shares.append(_Share(waiting, len(batches), len(builder) - 1))
        except AngariumError as error:
            failures.append((waiting, error))
    if len(builder):
        batches.append(builder.build())
    return batches, shares, failures


def _added(builder: BatchBuilder, record: Outgoing) -> bool:
    value, key, headers, timestamp, _, _ = record
    return builder.add(value, key=key, headers=headers, timestamp=timestamp)


def _is_about_one(error: Exception) -> bool:
    """Tell whether nothing was stored, and one of the records may be to blame."""
    if isinstance(error, LimitExceeded):
        return error.limit == "batch_bytes_max"
    return isinstance(error, InvalidArgument)
