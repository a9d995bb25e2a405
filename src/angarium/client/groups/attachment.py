"""The keeper's half of a consumer: its stream to a node, and what it holds while it has one.

It runs on an event loop that no user's code ever blocks. It brings deliveries, sends what the user
said about them, renews every lease that is in use, and when the stream breaks it joins again at
another node under the same name, says what it still has, and goes on.
"""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Final, cast

from msgspec.structs import replace

from angarium.api import ConsumeRequest, Held, Settled, Verb
from angarium.client.groups.handover import Handover, Parcel
from angarium.client.groups.lent_partition import LentPartition, Said
from angarium.client.groups.loans import Loan
from angarium.client.groups.spans import count_in
from angarium.errors import AngariumError, NotFound, OutcomeUnknown, retry_after_of
from angarium.ids import TopicPartition
from angarium.retrying import Tries
from angarium.wire import DeadlineExceeded, Unreachable
from angarium.wire.error_codec import Failure, error_of
from angarium.wire.operations import (
    Answered,
    ConsumeHeader,
    HandedOver,
    Heard,
    Joined,
    Operation,
    Settle,
)

if TYPE_CHECKING:
    from angarium.client.reach import Reach
    from angarium.wire import Connection, Frame, Stream

STRIKES_MAX: Final = 3
"""So often in a row a join may be refused with an error that should not pass by itself: a node may
not have heard of a new topic yet. Then the consumer ends with that error."""

RENEWALS_PER_LEASE: Final = 3
"""A lease is renewed when a third of it is over, so that two attempts may fail."""

LOOKS_PER_RENEWAL: Final = 4
LOOK_S_MAX: Final = 1.0
"""Leases and deadlines are looked at this often at the least."""

HELD_BYTES_MAX: Final = 160 * 1024
"""How much a member that comes again says about what it holds. What does not fit goes back."""

_log = logging.getLogger(__name__)


class Attachment:
    """One consumer, as the keeper sees it."""

    def __init__(
        self, reach: Reach, request: ConsumeRequest, handover: Handover, *, keep_s: float
    ) -> None:
        self.request = request
        self.partitions: dict[TopicPartition, LentPartition] = {}
        self._joined: Joined | None = None
        # Settlements that were refused and nobody waited for, and the first one's error.
        self._failed = 0
        self._failure: AngariumError | None = None
        self._loop = asyncio.get_running_loop()
        self._reach = reach
        self.handover = handover
        self._keep_s = keep_s
        self._serials = count(1)
        self._numbers = count(1)
        self._flights: dict[int, LentPartition] = {}
        self._stream: Stream | None = None
        self._last_error: AngariumError | None = None
        self._is_called = False
        self._is_leaving = False
        self._beginning: asyncio.Future[Joined] = self._loop.create_future()
        self._task: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None

    # --- its life -------------------------------------------------------------------------------

    async def begin(self) -> Joined:
        """Join, and return what the group is; raises why it cannot be joined."""
        timeout_s = self._reach.settings.request_timeout_s
        self._task = self._loop.create_task(self._run())
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.shield(self._beginning)
        except TimeoutError:
            raise self._last_error or DeadlineExceeded(
                f"the group {self.request.group!r} could not be joined within {timeout_s:g} s"
            ) from None

    async def leave(self, *, settle_s: float) -> None:
        """Send what was said, leave the group and end; what is on loan goes back untried."""
        with suppress(TimeoutError):
            async with asyncio.timeout(settle_s):
                while self._stream is not None and not self._is_quiet:
                    self._send_all()
                    await asyncio.gather(
                        *(partition.hear(_nothing) for partition in self.partitions.values())
                    )
        self._is_leaving = True
        if self._stream is not None:
            self._stream.end()
            assert self._task is not None
            await asyncio.wait([self._task], timeout=self._reach.settings.attempt_timeout_s)
        tasks = [task for task in (self._task, self._looking) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for partition in self.partitions.values():
            self._give_up(partition, Unreachable("the consumer was closed"))
        self.handover.end()

    async def cut_off(self) -> None:
        """Do nothing more, and say nothing about it."""
        tasks = [task for task in (self._task, self._looking) if task is not None]
        self._stream = None
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for partition in self.partitions.values():
            self._give_up(partition, Unreachable("the consumer was cut off"))

    @property
    def in_hand(self) -> int:
        """How many records are on loan and not known to be settled."""
        return sum(
            count_in(partition.unsettled(loan))
            for partition in self.partitions.values()
            for loan in list(partition.loans.values())
        )

    async def flush(self) -> None:
        """Wait until all that was said has its answer."""
        while not self._is_quiet:
            await asyncio.gather(
                *(partition.hear(_nothing) for partition in list(self.partitions.values()))
            )

    def raise_failure(self) -> None:
        """Raise the first error that nobody heard, with a note of how many, and forget them."""
        failure, failed = self._failure, self._failed
        self._failure, self._failed = None, 0
        if failure is not None:
            failure.add_note(f"{failed} settlements were refused since the last flush")
            raise failure

    @property
    def group(self) -> Joined:
        """What the group said when it was joined last."""
        assert self._joined is not None, "nobody hears of an attachment before it has begun"
        return self._joined

    def call(self) -> None:
        """Have what was said sent; any thread. Calls until that happens cost nothing more."""
        if not self._is_called:
            self._is_called = True
            # A loop that has been closed has nobody to send to either.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._send_all)

    @property
    def _is_quiet(self) -> bool:
        return all(partition.is_quiet for partition in self.partitions.values())

    # --- joining, again and again ---------------------------------------------------------------

    async def _run(self) -> None:
        strikes = 0
        tries = Tries(self._reach.settings.backoff)
        apart_since = self._loop.time()
        while True:
            connection: Connection | None = None
            asked_s = 0.0
            try:
                connection = await self._way(tries.failures)
                await self._stay_joined(connection)
                # It ended in good order: the node is going away, or we are.
                tries.succeeded()
                strikes = 0
                apart_since = self._loop.time()
            except AngariumError as error:
                if self._stream is not None:
                    tries.succeeded()
                    strikes = 0
                    apart_since = self._loop.time()
                strikes += not error.retriable
                if strikes >= (STRIKES_MAX if isinstance(error, NotFound) else 1):
                    self._end(error)
                    return
                self._last_error = error
                asked_s = retry_after_of(error) or 0.0
                _log.debug("group %s: %s", self.request.group, error)
                self._reach.waiting.because(error, since=apart_since, now=self._loop.time())
            except Exception:
                _log.exception("a consumer of %s met a mistake of ours", self.request.group)
                self._end(
                    OutcomeUnknown("the consumer met a bug in angarium; the log has the details")
                )
                return
            finally:
                self._stream = None
                self._flights.clear()
            if self._is_leaving:
                return
            if connection is not None and connection.is_open:
                self._reach.routes.distrust(connection)
            await tries.pause(at_least_s=asked_s)

    async def _way(self, failures: int) -> Connection:
        """Return a connection to a node: at first one that leads some of the partitions.

        A client that has a region goes to no other as long as it can: a member counts as being
        where the node is that it joined, and is given the partitions that live there.
        """
        if not failures:
            with suppress(AngariumError):
                routes = self._reach.routes
                topic = await self._reach.metadata.topic(random.choice(self.request.topics))
                near = [one for one in topic.partitions if not routes.nearby.is_far(one.leader)]
                if near:
                    return await routes.connection_for(topic.name, random.choice(near).number)
        return await self._reach.routes.any_connection()

    async def _stay_joined(self, connection: Connection) -> None:
        request = replace(self.request, held=self._held())
        stream = connection.open_stream(Operation.CONSUME, ConsumeHeader(request))
        try:
            async with asyncio.timeout(self._reach.settings.request_timeout_s):
                first = await stream.receive()
            if first is None:
                raise Unreachable(f"{connection.address} does not accept consumers now")
            self._join(stream, first.read(Joined))
            while (frame := await stream.receive()) is not None:
                self._take(frame)
        except TimeoutError:
            raise DeadlineExceeded(f"{connection.address} did not answer in time") from None
        finally:
            stream.cancel()

    def _join(self, stream: Stream, joined: Joined) -> None:
        self._joined = joined
        self.request = replace(self.request, member=joined.member, kind=joined.kind, config=None)
        self._stream = stream
        now = self._loop.time()
        for partition in self.partitions.values():
            for loan in partition.loans.values():
                loan.renew_at = now  # what was claimed is renewed first of all
            if partition.flight is not None:
                self._send(partition)
        self._send_all()
        if self._looking is None:
            self._looking = self._loop.create_task(self._look())
        if not self._beginning.done():
            self._beginning.set_result(joined)

    def _held(self) -> tuple[Held, ...]:
        found: list[Held] = []
        size = 0
        for partition in self.partitions.values():
            for loan in list(partition.loans.values()):
                held = Held(
                    partition.topic, partition.number, partition.unsettled(loan), loan.attempt
                )
                size += 32 + len(held.topic) + 9 * len(held.ranges)
                if size > HELD_BYTES_MAX:
                    return tuple(found)
                if held.ranges:
                    found.append(held)
        return tuple(found)

    def _end(self, error: AngariumError) -> None:
        if not self._beginning.done():
            self._beginning.set_exception(error)
            self._beginning.exception()  # whoever waits still gets it
        for partition in self.partitions.values():
            self._give_up(partition, error)
        self.handover.end(error)

    # --- what comes -------------------------------------------------------------------------------

    def _take(self, frame: Frame) -> None:
        heard = frame.read(cast("type[Heard]", Heard))
        if isinstance(heard, HandedOver):
            self._take_delivery(heard, frame.payload)
        elif isinstance(heard, Answered):
            partition = self._flights.pop(heard.number, None)
            if partition is not None:
                self._take_answers(partition, heard.settled)

    def _take_delivery(self, handed: HandedOver, payload: memoryview) -> None:
        named = TopicPartition(handed.topic, handed.partition)
        partition = self.partitions.get(named)
        if partition is None:
            partition = self.partitions[named] = LentPartition(
                *named,
                group=self.request.group,
                is_ordered=self.group.kind.is_ordered,
                call=self.call,
                now=self._loop.time,
            )
        if partition.is_stale(handed.ranges[0]):
            return
        now = self._loop.time()
        loan = Loan(
            partition,
            next(self._serials),
            ranges=handed.ranges,
            attempt=handed.attempt,
            generation=handed.generation,
            renew_at=now + handed.lease_ms / 1000 / RENEWALS_PER_LEASE,
            keep_until=now + self._keep_s,
        )
        partition.loans[loan.serial] = loan
        self.handover.put(Parcel(loan, payload))

    def _take_answers(self, partition: LentPartition, settled: tuple[Settled, ...]) -> None:
        flight = partition.flight
        assert flight is not None
        errors = [error_of(Failure(one.code, one.message)) if one.code else None for one in settled]
        if partition.answer(errors):
            self._land(partition)
            return
        if any(error is not None and error.retriable for error in errors):
            flight.attempts += 1
            pause_s = self._reach.settings.backoff.pause_s(flight.attempts, random.random())
            self._loop.call_later(pause_s, self._send_again, partition)
        else:
            self._send(partition)

    # --- what goes --------------------------------------------------------------------------------

    def _send_all(self) -> None:
        # First this, then the partitions: what is said in between calls again.
        self._is_called = False
        deadline = self._loop.time() + self._reach.settings.request_timeout_s
        for partition in list(self.partitions.values()):
            if (
                partition.flight is None
                and not partition.is_quiet
                and partition.board(deadline) is not None
            ):
                self._send(partition)

    def _send_again(self, partition: LentPartition) -> None:
        if partition.flight is not None and partition not in self._flights.values():
            self._send(partition)

    def _send(self, partition: LentPartition) -> None:
        """Send a partition's flight; without a stream it waits for the next one."""
        flight = partition.flight
        assert flight is not None
        if not flight.said:
            self._land(partition)
            return
        if self._stream is None:
            return
        number = next(self._numbers)
        # Settlements are small and at most one frame per partition is under way: no need to wait
        # for credit, and where a node takes nothing at all the stream ends soon.
        with suppress(AngariumError):
            if self._stream.send_nowait(Settle(number, flight.settlements(partition))):
                self._flights[number] = partition
                return
            flight.attempts += 1
            self._loop.call_later(0.01, self._send_again, partition)

    def _land(self, partition: LentPartition) -> None:
        for said, error in partition.land():
            self._failed += 1
            self._failure = self._failure or error
            _log.debug("%s of %s was refused: %s", said.verb.name, partition.topic, error)
        if not partition.is_quiet:
            self.call()

    def _give_up(self, partition: LentPartition, error: AngariumError) -> None:
        while partition.board(0.0) is not None:
            assert partition.flight is not None
            partition.flight.refused += [(said, error) for said in partition.flight.said]
            self._land(partition)

    # --- leases and deadlines ---------------------------------------------------------------------

    async def _look(self) -> None:
        """Look, again and again, at what has to be renewed, and at what has waited too long."""
        while True:
            lease_s = self.group.config.ack_timeout_ms / 1000
            renew_s = lease_s / RENEWALS_PER_LEASE
            await asyncio.sleep(min(renew_s / LOOKS_PER_RENEWAL, LOOK_S_MAX))
            now = self._loop.time()
            for partition in list(self.partitions.values()):
                self._renew(partition, now, renew_s)
                if partition.flight is not None and partition.flight.deadline < now:
                    self._give_up_late(partition)

    def _renew(self, partition: LentPartition, now: float, renew_s: float) -> None:
        for loan in list(partition.loans.values()):
            if loan.renew_at > now or loan.keep_until < now:
                continue
            loan.renew_at = now + renew_s
            partition.say(Said(loan, Verb.EXTEND, loan.renewable(now)))

    def _give_up_late(self, partition: LentPartition) -> None:
        assert partition.flight is not None
        timeout_s = self._reach.settings.request_timeout_s
        error = OutcomeUnknown(
            f"no answer about {partition.topic}/{partition.number} came within {timeout_s:g} s; the"
            " settlements may or may not count, and the records may come again"
        )
        self._flights = {
            number: one for number, one in self._flights.items() if one is not partition
        }
        partition.flight.refused += [(said, error) for said in partition.flight.said]
        self._land(partition)


def _nothing() -> None:
    """Say nothing: only wait for what was said before."""
