"""One consumer's part in a group, on the node it talks to.

It keeps the consumer attached to the leaders of all its partitions: finds them, comes back after a
change of leader with what the consumer holds, follows a topic that gets more partitions, and
spreads the consumer's credit. Records are passed on one delivery at a time, partitions in turn,
when the consumer asks for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from angarium.api import Handed, Settled, Start, StartAt
from angarium.errors import (
    AngariumError,
    GroupFenced,
    InvalidArgument,
    LimitExceeded,
    NotFound,
    NotLeader,
)
from angarium.ids import Index
from angarium.service.groups.attachment import Attachment
from angarium.service.groups.consumer_limits import CREDIT_MAX, LINGER_S
from angarium.service.groups.credit import spread
from angarium.service.groups.reaching import Reaching
from angarium.service.groups.settling import ask_attachments
from angarium.settling import settling
from angarium.wire import Unreachable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Sequence

    from angarium.api import GroupConfig, Settlement
    from angarium.kinds import GroupKind
    from angarium.lending.host import GroupHost
    from angarium.lending.ports import Lending, Membership, Opening
    from angarium.service.groups.settling import Told
    from angarium.service.own_node import OwnNode
    from angarium.service.pacing import Paced

LOOK_S: Final = 0.05
"""How often the agent looks after its partitions: who is not attached, and whose credit is idle."""

REST_S: Final = 0.5
"""The same while nothing is on loan and all are attached, so that many idle consumers cost little.
What comes meanwhile ends the rest."""

PAUSE_S_MAX: Final = 0.25
"""Attaching again waits longer after each failure, up to this: how late a new leader is noticed."""

LEADERS_S: Final = 0.5
"""How often it is looked for leaders that changed without a word."""

TOPICS_S: Final = 1.0
"""How often the topics are looked up, for new partitions."""

VAIN_S: Final = 2.0
"""Where a partition has lost its majority, or a group that exists is attached in each topic, the
other partitions have so long to be attached. Then the member takes part in those that are, or is
told what is missing if there are none."""

JOIN_SHARE: Final = 0.7
"""Of the time that a request may take, what joining may. The rest is for asking what the group is:
a caller that waits as long is told why it cannot be joined before it gives up."""

NAMED_MAX: Final = 10
"""Partitions that a line of the log names."""

_log = logging.getLogger(__name__)


class LocalConsumption:
    """Implements `api.Consumption`, and `attachment.Keeper` for its attachments."""

    def __init__(
        self,
        node: OwnNode,
        host: GroupHost,
        membership: Membership,
        opening: Opening,
        *,
        credit: int,
        on_end: Callable[[LocalConsumption], None],
    ) -> None:
        self.membership = membership
        self._node = node
        self._reaching = Reaching(node, host, membership)
        self._credit = credit
        self._on_end = on_end
        self.on_closed: Callable[[], None] = _unheard
        """Called when it is over, for who keeps an eye on it."""
        self.paced: Paced | None = None
        """Whoever consumes, if it may be allowed only so much."""
        self._opening = opening
        self._attachments: dict[tuple[str, int], Attachment] = {}
        self._ready: deque[Attachment] = deque()
        """Parts with arrivals, each once, in turn."""
        self._is_ready: set[Attachment] = set()
        self._something = asyncio.Event()
        self._stirred = asyncio.Event()
        """Set when something happens that an agent at rest should look at."""
        self._error: AngariumError | None = None
        self._is_over = False
        self._has_begun = False
        self._is_known = False
        """Whether a leader of each topic has said that the group exists."""
        self._settled: set[str] = set()
        """Topics in which a leader has attached it: what the group is there is settled."""
        self._due: dict[Attachment, float] = {}
        """Parts that are not attached, and when to try again."""
        self._joins: dict[Attachment, asyncio.Future[None]] = {}
        """Those who wait for an attachment's first leader."""
        self._joining: asyncio.Timeout | None = None
        """Until when they wait."""
        self._refusal: AngariumError | None = None
        """Why an attachment that somebody waits for could not be attached yet."""
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._lingering: asyncio.TimerHandle | None = None

    # --- what it is ---------------------------------------------------------------------------

    @property
    def member(self) -> str:
        """Under which name it takes part."""
        return self.membership.member

    @property
    def kind(self) -> GroupKind:
        """How the group consumes."""
        return self._opening.kind

    @property
    def config(self) -> GroupConfig:
        """The group's settings."""
        return self._opening.config

    # --- joining ------------------------------------------------------------------------------

    async def begin(
        self,
        held: dict[tuple[str, int], list[tuple[int, int, int]]],
        *,
        known_in: Collection[str] = (),
    ) -> None:
        """Attach to all partitions; raises why the group cannot be joined.

        In the topics of `known_in` a leader has said that the group exists. There all partitions
        are attached at once, and those without a leader join when they have one. In the others
        partition 0 comes first and settles what the group is, so that two consumers that declare
        it with different kinds at once end with one kind. It is not opened anywhere without that.
        """
        for name in self.membership.topics:
            self._add_partitions(name)
        for topic_partition, ranges in held.items():
            attachment = self._attachments.get(topic_partition)
            if attachment is not None:
                for start, end, attempt in ranges:
                    attachment.holdings.add((start, end), attempt)
        self._task = asyncio.create_task(self._look_after())
        try:
            timeout_s = JOIN_SHARE * self._node.config.request_timeout_s
            async with asyncio.timeout(timeout_s) as self._joining:
                topics = self.membership.topics
                self._is_known = all(one in known_in for one in topics)
                firsts = [self._attachments[one, 0] for one in topics if one not in known_in]
                for attachment in firsts:
                    await self._join(attachment)
                rest = [one for one in self._attachments.values() if one not in firsts]
                await asyncio.gather(*map(self._join, rest))
        except TimeoutError:
            # In all topics where something is attached the rest follows as soon as it has leaders.
            lacking = [one for one in self.membership.topics if one not in self._settled]
            if lacking:
                await self.close()
                raise self._unjoined(lacking[0], is_known=lacking[0] in known_in) from None
            self._say_what_joins_later()
        except BaseException:
            await self.close()
            raise
        finally:
            self._joining = None
            self._has_begun = True
        self._begin_from_now_on()

    def _begin_from_now_on(self) -> None:
        """Let partitions that join later begin where they would have begun now.

        Their end then lies behind records that were published after the consumer had joined.
        """
        if self._opening.start.at is StartAt.LATEST:
            skew_micros = self._node.config.clock_skew_max_ms * 1_000
            since = Start(StartAt.TIMESTAMP, self.membership.session - skew_micros)
            self._opening = self._opening._replace(start=since)

    def _say_what_joins_later(self) -> None:
        later = [
            f"{one.topic}/{one.partition}"
            for one in self._attachments.values()
            if not one.is_attached
        ]
        _log.warning(
            "%s of the group %s goes on without %d partitions, which join when they have a leader:"
            " %s (%s)",
            self.member,
            self.membership.group,
            len(later),
            ", ".join(later[:NAMED_MAX]) + (", …" if len(later) > NAMED_MAX else ""),
            self._refusal,
        )

    def _unjoined(self, topic: str, *, is_known: bool) -> AngariumError:
        """Return why the group cannot be joined in a topic."""
        refusal = self._refusal
        if refusal is not None and not isinstance(refusal, NotLeader | Unreachable):
            return refusal
        reason = "no leader has answered in time" if refusal is None else str(refusal)
        if is_known:
            return NotLeader(f"{reason}; no partition of {topic} has a leader to attach to")
        return NotLeader(
            f"{reason}; no leader of {topic} knows the group {self.membership.group}, and only "
            "partition 0 settles what a new group is"
        )

    async def _join(self, attachment: Attachment) -> None:
        joined: asyncio.Future[None] = self._loop.create_future()
        self._joins[attachment] = joined
        try:
            self._attach(attachment)
            await joined
        finally:
            del self._joins[attachment]

    def _add_partitions(self, name: str) -> list[Attachment]:
        """Return the attachments of a topic that were not there before."""
        topic = self._node.catalog.topic(name)
        new = []
        for number, raft_group in enumerate(topic.groups):
            if (name, number) not in self._attachments:
                attachment = Attachment(self, name, number, raft_group)
                self._attachments[name, number] = attachment
                new.append(attachment)
        return new

    def _attach(self, attachment: Attachment) -> None:
        """Attach to the leader of a partition, or try again later."""
        if attachment.is_seated or self._is_over:
            return
        self._due.pop(attachment, None)
        try:
            leader = self._reaching.leader_of(attachment)
            credit = max(1, self._credit // len(self._attachments))
            may_open = attachment.partition == 0 or attachment.topic in self._settled
            post = self._reaching.post(leader)
            attachment.attach(post, leader, self._opening, credit, may_open=may_open)
        except AngariumError as error:
            attachment.failures += 1
            self.left(attachment, error)

    # --- what attachments tell ----------------------------------------------------------------

    def now(self) -> float:
        """Return the event loop's time."""
        return self._loop.time()

    def joined(self, attachment: Attachment, kind: GroupKind, config: GroupConfig) -> None:
        """Hear that an attachment is attached."""
        # Where the group is not known yet it is to be as it is here.
        self._opening = self._opening._replace(kind=kind, config=config)
        self._settled.add(attachment.topic)
        if self._is_known and self._settled.issuperset(self.membership.topics):
            # A node that is cut off silently neither attaches nor refuses.
            self._wait_at_most(VAIN_S)
        waiting = self._joins.get(attachment)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def left(self, attachment: Attachment, error: AngariumError) -> None:
        """Hear that an attachment's leader let go: go on with the next, or end."""
        if self._is_over:
            return
        self._stirred.set()
        waiting = self._joins.get(attachment)
        if error.retriable and not (waiting is not None and isinstance(error, LimitExceeded)):
            pause = min(PAUSE_S_MAX, LOOK_S * 2 ** min(attachment.failures - 1, 10))
            self._due[attachment] = self._loop.time() + (pause if attachment.failures > 1 else 0.0)
            if waiting is not None:
                self._wait_no_longer_than_it_helps(attachment, error)
            if attachment.failures <= 1:
                self._loop.call_soon(self._attach, attachment)
            return
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)
        elif isinstance(error, NotFound) and self._is_deleted(attachment):
            del self._attachments[attachment.topic, attachment.partition]
            if not self._attachments:
                self.break_off(error)
        else:
            self.break_off(error)

    def _wait_no_longer_than_it_helps(self, attachment: Attachment, error: AngariumError) -> None:
        self._refusal = error
        if self._node.quorum.trouble(attachment.raft_group):
            self._wait_at_most(VAIN_S)

    def _wait_at_most(self, seconds: float) -> None:
        """Let joining wait no longer than this for partitions that are not attached yet."""
        joining = self._joining
        until = None if joining is None or joining.expired() else joining.when()
        if joining is not None and until is not None:
            joining.reschedule(min(until, self._loop.time() + seconds))

    def _is_deleted(self, attachment: Attachment) -> bool:
        try:
            known = self._node.catalog.partition(attachment.topic, attachment.partition)
        except NotFound:
            return True
        return known.group != attachment.raft_group

    def arrived(self, attachment: Attachment) -> None:
        """Hear that records have come."""
        self._stirred.set()
        if attachment not in self._is_ready:
            self._is_ready.add(attachment)
            self._ready.append(attachment)
            self._something.set()

    def freed(self) -> None:
        """Hear that fewer records are on loan: more may be passed on."""
        if self._ready:
            self._something.set()

    # --- passing on ---------------------------------------------------------------------------

    def __aiter__(self) -> AsyncIterator[Handed]:
        return self

    async def __anext__(self) -> Handed:
        """Return the next delivery, waiting for one if need be."""
        while True:
            if self.paced is not None and self.paced.toll is not None:
                # What waits here goes back to the leader in time (`return_stale`).
                await self.paced.toll.until_paid()
            if self._error is not None:
                raise self._error
            if self._is_over:
                raise StopAsyncIteration
            handed = self._next()
            if handed is not None:
                if self.paced is not None and self.paced.toll is not None:
                    self.paced.toll.read(sum(map(len, handed.batches)))
                return handed
            self._something.clear()
            await self._something.wait()

    def _next(self) -> Handed | None:
        while self._ready:
            attachment = self._ready[0]
            if attachment.arrivals and not self._has_room(attachment.arrivals[0][0]):
                return None
            self._ready.popleft()
            lending = attachment.take()
            if lending is None:
                self._is_ready.discard(attachment)
                continue
            if attachment.arrivals:
                self._ready.append(attachment)  # the others are next
            else:
                self._is_ready.discard(attachment)
            return Handed(
                topic=attachment.topic,
                partition=attachment.partition,
                batches=lending.batches,
                ranges=lending.ranges,
                attempt=lending.attempt,
                lease_ms=lending.lease_ms,
                generation=Index(lending.generation),
            )
        return None

    def _has_room(self, lending: Lending) -> bool:
        """Tell whether a delivery may be passed on; only a small credit is ever in the way."""
        if self._credit >= len(self._attachments):
            return True
        passed_on = sum(one.holdings.count - one.waiting for one in self._attachments.values())
        records = sum(lending.ranges[1::2]) - sum(lending.ranges[::2])
        return passed_on + records <= self._credit

    # --- settling -----------------------------------------------------------------------------

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        """Settle records; an answer for each, in their order, once it is committed."""
        future: asyncio.Future[tuple[Settled, ...]] = self._loop.create_future()
        self.begin_settle(settlements, settling(future))
        return await future

    def begin_settle(self, settlements: Sequence[Settlement], told: Told) -> None:
        """Do the same without a task; `told` is called once."""
        deadline = self._loop.time() + self._node.config.request_timeout_s
        attachments = {} if self._is_over else self._attachments
        ask_attachments(attachments, settlements, told, deadline=deadline)

    async def set_credit(self, credit: int) -> None:
        """Change how many records may be on loan at a time."""
        if not 0 < credit <= CREDIT_MAX:
            raise InvalidArgument(f"a credit is from 1 to {CREDIT_MAX}, not {credit}")
        self._credit = credit
        self._spread()
        self._something.set()

    # --- looking after ------------------------------------------------------------------------

    async def _look_after(self) -> None:
        leaders_at = topics_at = self._loop.time()
        while not self._is_over:
            await self._pause()
            now = self._loop.time()
            for attachment in list(self._attachments.values()):
                due = self._due.get(attachment)
                # Until it has begun the others wait for the first partitions on purpose.
                is_due = self._has_begun if due is None else due <= now
                if is_due and not attachment.is_seated:
                    self._attach(attachment)
            late = NotLeader("no leader has answered in time; settle again")
            for attachment in self._attachments.values():
                attachment.return_stale(now)
                attachment.expire_asks(now, late)
            self._spread()
            if now >= leaders_at:
                leaders_at = now + LEADERS_S
                self._follow_leaders()
            if now >= topics_at:
                topics_at = now + TOPICS_S
                self._follow_topics()

    async def _pause(self) -> None:
        """Wait until the next look; longer while nothing is going on, or until something is."""
        if not all(attachment.is_quiet for attachment in self._attachments.values()):
            await asyncio.sleep(LOOK_S)
            return
        self._stirred.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(REST_S):
                await self._stirred.wait()

    def _spread(self) -> None:
        if self._lingering is not None:
            return
        attachments = list(self._attachments.values())
        busy = [attachment.was_busy or attachment.holdings.count > 0 for attachment in attachments]
        for attachment, credit in zip(attachments, spread(self._credit, busy), strict=True):
            attachment.was_busy = False
            attachment.allow(credit)

    def _follow_leaders(self) -> None:
        """Leave nodes that lead no more and do not say so: they may be paused, or cut off."""
        for attachment in list(self._attachments.values()):
            leader = self._reaching.moved_to(attachment)
            if leader is not None:
                attachment.leave_for(NotLeader(f"node {leader} leads now", leader=leader))

    def _follow_topics(self) -> None:
        for name in self.membership.topics:
            try:
                new = self._add_partitions(name)
            except NotFound:
                continue  # deleted: its leaders say so, one by one
            for attachment in new:
                # They were added since it began, so none of what they hold may be missed.
                attachment.start = Start(StartAt.EARLIEST)
                self._attach(attachment)

    # --- the end ------------------------------------------------------------------------------

    async def close(self, *, lost: bool = False) -> None:
        """Leave the group: what is on loan goes back untried; `lost`: unless it comes back soon."""
        if self._is_over or self._lingering is not None:
            return
        if lost and self._error is None:
            self._lingering = self._loop.call_later(LINGER_S, self._end, True)
            for attachment in self._attachments.values():
                attachment.allow(0)
            self._something.set()
        else:
            self._end(False)

    def break_off(self, error: AngariumError) -> None:
        """End with an error, which the consumer meets."""
        if self._error is None and not self._is_over:
            self._error = error
            self._end(False)

    def superseded(self) -> None:
        """End, because the member has come again; its leases go on with the new consumer."""
        if not self._is_over:
            self._error = GroupFenced(f"{self.member} is attached through another connection now")
            self._is_over = True
            # The leaders hear of the new one first; what is left here then counts as lost.
            self._loop.call_later(LINGER_S, self._let_go, True)
            self._finish()

    def _end(self, lost: bool) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._let_go(lost)
        self._finish()

    def _let_go(self, lost: bool) -> None:
        for attachment in self._attachments.values():
            attachment.detach(lost=lost)
        self._reaching.close()

    def _finish(self) -> None:
        if self._lingering is not None:
            self._lingering.cancel()
        if self._task is not None:
            self._task.cancel()
        self._something.set()
        self._on_end(self)
        self.on_closed()


def _unheard() -> None:
    pass
