"""A lane: the way of records into one partition, in order, each stored once.

While nothing goes wrong, records gather for as long as a batch is on its way; a full batch follows
at once, up to a small window. When something does go wrong, the lane stops sending, waits until
every attempt under way has ended, and repeats what is unanswered in its order (`_recover`).

Why that is exactly once: a partition takes a producer's batches only in sequence, so a repeated
batch is recognised, and one behind a missing batch is refused. `Numbers` says when a batch may get
another number; where it may not, its publisher hears `OutcomeUnknown`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from angarium.batch import BatchBuilder
from angarium.client.publishing.verdicts import Verdict, refusal, unknown_after, verdict_of
from angarium.errors import (
    AngariumError,
    HomeLost,
    LayoutChanged,
    NotFound,
    NotLeader,
    ProducerFenced,
    QuotaExceeded,
    SequenceGap,
    UnknownProducer,
    retry_after_of,
)
from angarium.retrying import later
from angarium.wire import DeadlineExceeded, Unreachable
from angarium.wire.operations import Operation, PublishAnswer, PublishHeader

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.api import Ack
    from angarium.batch.columns import HeadersOf
    from angarium.client.publishing.numbers import Numbers
    from angarium.client.publishing.packs import Pack
    from angarium.client.publishing.sending import Sending
    from angarium.ids import Buffer
    from angarium.modes import DeliveryMode
    from angarium.wire import Connection, Frame

GAPS_MAX: Final = 3
"""So often the first batch in line may be refused as too early before we look whether the ones
before it were lost: a deposed leader that does not know it yet says the same."""

NOT_FOUND_MAX: Final = 3
"""So often a topic may be unknown before we believe it: a node may not have heard of it yet."""

_log = logging.getLogger(__name__)


class Lane:
    """Batches of one partition, from the records that publishers add to their answers."""

    def __init__(
        self,
        sending: Sending,
        topic: str,
        partition: int,
        numbers: Numbers,
        *,
        bytes_max: int,
        on_outdated: Callable[[], None] = lambda: None,
        stand_in: Callable[[], Lane | HomeLost | None] = lambda: None,
    ) -> None:
        """Begin empty.

        `on_outdated` hears that records are to be dealt by another layout. `stand_in` says what
        becomes of what waits while nobody leads the partition: it goes to another lane, is refused,
        or waits on.
        """
        self._stand_in = stand_in
        self.topic = topic
        self.partition = partition
        self._sending = sending
        self._settings = sending.settings
        self._numbers = numbers
        self._bytes_max = bytes_max
        self._gathering: Pack | None = None
        self._builder = self._new_builder()
        self._waiting: deque[Pack] = deque()
        self._sent: deque[Pack] = deque()
        self._attempts = 0
        self._detour: Connection | None = None
        self._is_scheduled = False
        self._recovery: asyncio.Task[None] | None = None
        self._quiet: asyncio.Future[None] | None = None
        self._on_outdated = on_outdated
        self.is_frozen = False
        """Whether nothing new is sent for now."""

    # --- what publishers do ---------------------------------------------------------------------

    @property
    def is_gathering(self) -> bool:
        """Tell whether a record added now would join others."""
        return self._gathering is not None

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing waits here and nothing is under way."""
        is_empty = self._gathering is None and not self._waiting and not self._sent
        return is_empty and not self._attempts and self._recovery is None

    @property
    def holds_back(self) -> bool:
        """Tell whether there are records here that another lane would be handed, if one stood in.

        What is to come behind them has to take the same way.
        """
        gathering = () if self._gathering is None else (self._gathering,)
        left = (*gathering, *self._waiting, *islice(self._sent, self._kept, None))
        return not all(pack.is_pinned for pack in left)

    def add(
        self,
        value: Buffer | None,
        *,
        mode: DeliveryMode,
        key: Buffer | None,
        headers: HeadersOf | None,
        times: tuple[int, int, int],
        layout: int | None = None,
        is_pinned: bool = False,
    ) -> tuple[Pack, int]:
        """Let a record join the batch that is being gathered; return that and its position.

        `layout` is that by which its key has sent it here. What `is_pinned` stays with this lane,
        and so does its batch, until there is another layout.

        `LimitExceeded` if it is too large for any batch; nothing has happened then.
        """
        timestamp, expires_at, deliver_at = times
        pack, builder = self._gathering, self._builder
        is_joining = (
            pack is not None
            and pack.mode is mode
            and pack.is_pinned is is_pinned
            # What its publisher has sent here stays when what keys have sent here is dealt anew.
            and (not is_pinned or pack.layout == layout)
        )
        if not is_joining:
            builder = self._new_builder()
        while not builder.add(
            value,
            key=key,
            headers=headers,
            timestamp=timestamp,
            expires_at=expires_at,
            deliver_at=deliver_at,
        ):
            is_joining = False
            builder = self._new_builder()
        if pack is None or not is_joining:
            self.seal()
            pack = self._gathering = self._sending.new_pack(builder, mode)
            pack.is_pinned = is_pinned
            self._builder = builder
            self._wake()
        if layout is not None:
            pack.layout = layout
        position = len(builder) - 1
        if builder.bytes_estimate >= self._settings.batch_bytes:
            self.seal()
            self._wake()
        return pack, position

    def seal(self) -> None:
        """Let no more records into the batch that is being gathered."""
        if self._gathering is not None:
            self._waiting.append(self._gathering)
            self._gathering = None

    def put(self, pack: Pack) -> None:
        """Send a batch that is complete."""
        self.seal()
        self._waiting.append(pack)
        self._wake()

    def abandon(self, error: AngariumError) -> None:
        """Fail everything that waits; what may be stored is said to be unknown."""
        self.seal()
        for pack in [*self._sent, *self._waiting]:
            self._give_up(pack, self._last_word(pack) if pack.may_be_stored else error)

    # --- from one layout to the next -------------------------------------------------------------

    @property
    def is_at_rest(self) -> bool:
        """Tell whether nothing is on its way: what was sent is answered, or known not to be stored.

        What has had its time is told so.
        """
        if self._attempts or self._recovery is not None:
            return False
        self.expire()
        return not self._kept or self._sent[0].is_outdated

    def take_back(self, layout: int) -> list[Pack]:
        """Take what keys have sent here by another layout out of a lane at rest, in order.

        The rest is sent anew.
        """
        self.seal()
        if self._sent:
            # It is not stored, so nothing behind it is: a partition takes a producer's batches
            # only in sequence.
            if any(pack.may_be_stored for pack in self._sent):
                # Yet it may still be on its way, and would be stored under a number that by then
                # is the next one, in the place of another batch. Under this identity none is.
                self._numbers.spoil()
            else:
                self._numbers.rewind(self._sent[0])
        left = [*self._sent, *self._waiting]
        self._sent.clear()
        self._waiting.clear()
        for pack in left:
            pack.is_outdated = pack.may_be_stored = False
        self._waiting.extend(pack for pack in left if pack.layout in {None, layout})
        return [pack for pack in left if pack.layout not in {None, layout}]

    def thaw(self) -> None:
        """Send again."""
        self.is_frozen = False
        if self._sent and self._sent[0].is_outdated:
            self._waiting.extendleft(reversed(self._sent))
            self._numbers.rewind(self._sent[0])
            self._sent.clear()
            for pack in self._waiting:
                pack.is_outdated = pack.may_be_stored = False
        self._wake()

    # --- while nothing goes wrong ----------------------------------------------------------------

    def _wake(self) -> None:
        # Everything published in this turn of the event loop leaves together.
        if not self._is_scheduled:
            self._is_scheduled = True
            self._sending.loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._is_scheduled = False
        while self._recovery is None and self._has_next():
            connection = self._way()
            if connection is None or connection.is_congested or not self._numbers.are_known:
                self._begin_recovery()
                return
            pack = self._take_next()
            if self._numbered(pack):
                self._sent.append(pack)
                self._send(pack, connection, self._settings.attempt_timeout_s)

    def _way(self) -> Connection | None:
        """Return the leader's connection, or that of the node that forwarded last."""
        connection = self._sending.routes.leader_connection(self.topic, self.partition)
        if connection is not None:
            self._detour = None
        elif self._detour is not None and self._detour.is_open:
            connection = self._detour
            self._sending.refresh_soon(self.topic)
        return connection

    def _has_next(self) -> bool:
        if self.is_frozen or len(self._sent) >= self._settings.batches_in_flight_max:
            return False
        if self._waiting:
            return True
        # A batch on its way is time for the next one to grow.
        is_gathering = self._gathering is not None
        return is_gathering and len(self._sent) < self._settings.gather_from_in_flight

    def _new_builder(self) -> BatchBuilder:
        return BatchBuilder(
            bytes_max=self._bytes_max,
            records_max=self._settings.batch_records_max,
            codec=self._settings.codec,
        )

    def _take_next(self) -> Pack:
        if not self._waiting:
            self.seal()
        return self._waiting.popleft()

    def _numbered(self, pack: Pack) -> bool:
        """Give `pack` the next number; False if its records make no batch."""
        try:
            self._numbers.number(pack)
        except Exception as error:
            self._finish(pack, error)
            return False
        return True

    def _send(self, pack: Pack, connection: Connection, patience_s: float) -> None:
        assert pack.batch is not None
        pack.is_outdated = False  # what counts is what becomes of the last attempt
        left_s = max(pack.deadline - self._sending.loop.time(), 0.001)
        try:
            answer = connection.begin_request(
                Operation.PUBLISH,
                PublishHeader(
                    self.topic,
                    self.partition,
                    pack.mode,
                    pack.layout,
                    self._sending.routes.nearby.region.name,
                ),
                (pack.batch,),
                timeout_s=min(patience_s, left_s),
            )
        except AngariumError as error:
            self._failed(pack, error, connection)
            return
        self._attempts += 1
        answer.add_done_callback(partial(self._answered, pack, connection))

    def _answered(self, pack: Pack, connection: Connection, answer: asyncio.Future[Frame]) -> None:
        self._attempts -= 1
        if pack in self._sent:
            self._hear(pack, connection, answer)
        elif not answer.cancelled():
            answer.exception()  # the client was closed, and its publisher has been told so
        if self._quiet is not None and not self._attempts and not self._quiet.done():
            self._quiet.set_result(None)

    def _hear(self, pack: Pack, connection: Connection, answer: asyncio.Future[Frame]) -> None:
        try:
            told = answer.result().read(PublishAnswer)
            (ack,) = told.acks
            self._sending.note_partitions(self.topic, told.partitions)
            if ack.code:
                raise refusal(ack.code, ack.message)
        except AngariumError as error:
            self._failed(pack, error, connection)
        except Exception:  # a mistake of ours must not leave anybody waiting
            _log.exception("publishing to %s[%d] met a mistake", self.topic, self.partition)
            timeout_s = self._settings.attempt_timeout_s
            self._failed(pack, unknown_after(None, timeout_s), connection)
        else:
            self._acked(pack, ack)

    def _acked(self, pack: Pack, ack: Ack) -> None:
        self._sent.remove(pack)
        self._numbers.note(pack, ack)
        self._finish(pack, ack)
        self._pump()

    def _finish(self, pack: Pack, outcome: Ack | Exception) -> None:
        if isinstance(outcome, Exception):
            pack.fail(outcome)
            self._sending.note_failure(outcome, pack.unattended)
        else:
            pack.succeed(outcome)
        self._sending.settle(pack)

    # --- when something goes wrong ----------------------------------------------------------------

    def _failed(self, pack: Pack, error: AngariumError, connection: Connection) -> None:
        pack.error = error
        verdict = verdict_of(error)
        if isinstance(error, DeadlineExceeded):
            self._sending.routes.distrust(connection)
        if verdict is Verdict.UNKNOWN:
            pack.may_be_stored = True
            if not self._numbers.is_numbered:
                verdict = Verdict.FINAL
        if isinstance(error, LayoutChanged):
            # A fence lets nothing older pass any more, nor what may still be on its way.
            pack.is_outdated, pack.may_be_stored = True, False
        if isinstance(error, QuotaExceeded) and not self._settings.waits_for_quota:
            verdict = Verdict.FINAL
        if verdict is Verdict.FINAL:
            self._give_up(pack, error)
        self._begin_recovery()

    def _give_up(self, pack: Pack, error: Exception) -> None:
        """Fail one pack. What comes behind it needs other numbers, and so another identity."""
        if pack in self._sent:
            self._sent.remove(pack)
            self._numbers.spoil()
        elif pack in self._waiting:
            self._waiting.remove(pack)
        else:
            return
        if isinstance(error, ProducerFenced) and self._sending.producer_identities.is_named:
            self._sending.fenced = error
        self._finish(pack, error)

    def _begin_recovery(self) -> None:
        if self._recovery is None:
            self._recovery = self._sending.start(self._recover())
            self._recovery.add_done_callback(self._recovered)

    def _recovered(self, done: asyncio.Task[None]) -> None:
        self._recovery = None
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            _log.error("publishing to %s[%d] failed", self.topic, self.partition, exc_info=error)
            self.abandon(unknown_after(None, self._settings.publish_timeout_s))
        self._pump()

    async def _recover(self) -> None:
        """Repeat what is unanswered, in order, until nothing is; then sending goes on."""
        failures = overdue = 0
        is_ready = False
        while True:
            await self._until_quiet()
            if is_ready and any(isinstance(one.error, DeadlineExceeded) for one in self._sent):
                overdue += 1
            self.expire()
            if self._sent and self._sent[0].is_outdated:
                self._on_outdated()
                return
            if not self.is_frozen:
                self._hand_over()
            elif self._sent and not self._kept:
                # Nothing of it is stored, so nobody has to wait for it. It may go another way next.
                self._numbers.rewind(self._sent[0])
                self._waiting.extendleft(reversed(self._sent))
                self._sent.clear()
            if not self._sent and (
                is_ready or self.is_frozen or (not self._waiting and self._gathering is None)
            ):
                return
            is_ready = False
            self._tell_what_is_waited_for()
            await self._pause(failures)
            try:
                async with asyncio.timeout_at(self._first_deadline()):
                    connection = await self._prepare(failures)
            except TimeoutError:
                # What has had its time is told why it was refused, if it ever was.
                for pack in (*self._sent, *self._waiting):
                    pack.error = pack.error or Unreachable("the leader was not found in time")
            except AngariumError as error:
                self._hindered(error, failures)
            else:
                is_ready = True
                # Refusals, which come at once, are no reason to wait longer for an answer: after
                # an election's worth of them one that is lost would take all the time there is.
                patience_s = self._settings.attempt_timeout_s * 2 ** min(overdue, 6)
                for pack in list(self._sent):
                    self._send(pack, connection, patience_s)
            failures += 1

    async def _until_quiet(self) -> None:
        while self._attempts:
            self._quiet = self._sending.loop.create_future()
            await self._quiet
        self._quiet = None

    def _hand_over(self) -> None:
        """Let another lane send what is certain not to be stored, if one stands in for this.

        Whatever may be stored stays, and with it what came before it: only under its own number is
        it stored once.
        """
        other = self._stand_in()
        if other is None:
            return
        kept = self._kept
        self.seal()
        behind = [*self._sent][kept:]
        numbered = [one for one in behind if not one.is_pinned]
        if numbered:
            # Nothing of these is stored, and nothing under way: their numbers are free again.
            self._sent = deque([*self._sent][:kept])
            self._numbers.rewind(behind[0])
            for pack in behind:
                # Without an identity they get their numbers with the next one (`_prepare`).
                if pack.is_pinned and (not self._numbers.are_known or self._numbered(pack)):
                    self._sent.append(pack)
        moved = numbered + [one for one in self._waiting if not one.is_pinned]
        self._waiting = deque(one for one in self._waiting if one.is_pinned)
        for pack in moved:
            if isinstance(other, Lane):
                other.put(pack)
            else:
                self._finish(pack, other)

    @property
    def _kept(self) -> int:
        """How many of those that were sent no other lane may send."""
        return max((at for at, one in enumerate(self._sent, 1) if one.may_be_stored), default=0)

    def _first_deadline(self) -> float:
        """Return when the first of all that waits has had its time."""
        waiting = [*self._sent, *self._waiting]
        if self._gathering is not None:
            waiting.append(self._gathering)
        return min(pack.deadline for pack in waiting)

    def _tell_what_is_waited_for(self) -> None:
        first = next(iter((*self._sent, *self._waiting)), None)
        if first is not None and first.error is not None:
            since = first.deadline - self._settings.publish_timeout_s
            now = self._sending.loop.time()
            self._sending.waiting.because(first.error, since=since, now=now)

    def expire(self) -> None:
        """Fail what has had its time, and what cannot be repeated since another one failed."""
        if self._sending.fenced is not None:
            self.abandon(self._sending.fenced)
        now = self._sending.loop.time()
        if self._gathering is not None and self._gathering.deadline <= now:
            self.seal()
        for pack in [pack for pack in (*self._sent, *self._waiting) if pack.deadline <= now]:
            self._give_up(pack, self._last_word(pack))
        if not self._numbers.are_known:
            for pack in [pack for pack in self._sent if pack.may_be_stored]:
                self._give_up(pack, self._last_word(pack))

    def _last_word(self, pack: Pack) -> AngariumError:
        timeout_s = self._settings.publish_timeout_s
        if pack.may_be_stored:
            return unknown_after(pack.error, timeout_s)
        return pack.error or Unreachable(
            f"not sent within {timeout_s:g} s: earlier batches got no answer"
        )

    async def _pause(self, failures: int) -> None:
        pause_s, chance = 0.0, random.random()
        if failures and (self._hint() is None or failures > 1):
            pause_s = self._settings.backoff.pause_s(failures - 1, chance)
        error = self._sent[0].error if self._sent else None
        asked_s = None if error is None else retry_after_of(error)
        if asked_s is not None:
            # Not beyond what the first in line has left: it is told why then.
            left_s = self._first_deadline() - self._sending.loop.time()
            pause_s = max(pause_s, min(later(asked_s, chance), left_s))
        if pause_s > 0:
            await asyncio.sleep(pause_s)

    def _hint(self) -> int | None:
        """Return who leads, if the first batch in line was refused with that."""
        error = self._sent[0].error if self._sent else None
        return getattr(error, "leader", None) if isinstance(error, NotLeader) else None

    async def _prepare(self, failures: int) -> Connection:
        """Return the connection to repeat over, once everything has its number."""
        hint = self._hint()
        if hint is not None:
            self._sending.routes.learn_leader(self.topic, self.partition, hint)
        if failures > 1 or (self._sent and hint is None):
            await self._sending.metadata.refresh(self.topic)
        if self._sent:
            await self._judge_head(self._sent[0])
        if not self._numbers.are_known:
            self.expire()  # gives up what may be stored under the identity we had
            await self._numbers.renew()
            for pack in self._sent:
                pack.gaps = 0
                self._numbers.number(pack)
        connection = await self._sending.routes.connection_for(self.topic, self.partition)
        await connection.room()
        self._detour = connection
        return connection

    async def _judge_head(self, head: Pack) -> None:
        """Look whether the first batch in line can ever be taken under its present number."""
        if isinstance(head.error, UnknownProducer):
            self._numbers.spoil()
        elif isinstance(head.error, SequenceGap):
            head.gaps += 1
            if head.gaps >= GAPS_MAX:
                await self._numbers.look_for_loss(self._sent)

    def _hindered(self, error: AngariumError, failures: int) -> None:
        """Note why nothing could be sent, and fail everything if that will not change."""
        for pack in (*self._sent, *self._waiting):
            pack.error = error
        if isinstance(error, NotFound):
            is_lasting = failures >= NOT_FOUND_MAX
        else:
            is_lasting = not error.retriable
        if is_lasting:
            self.seal()
            self.abandon(error)
