"""One consumer's part in a group, on the node it talks to.

It keeps the consumer attached to the leaders of all its partitions: finds them, comes back after a
change of leader with what the consumer holds, follows a topic that gets more partitions, and
spreads the consumer's credit. Records are passed on one delivery at a time, partitions in turn,
when the consumer asks for them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from angarium.api import Handed, Settled
from angarium.errors import (
    AngariumError,
    GroupFenced,
    InvalidArgument,
    LimitExceeded,
    NotFound,
    NotLeader,
)
from angarium.ids import Index
from angarium.service.groups.credit import spread
from angarium.service.groups.limits import CREDIT_MAX, LINGER_S
from angarium.service.groups.part import Part
from angarium.service.groups.reaching import Reaching
from angarium.service.groups.settling import ask_parts
from angarium.wire import DeadlineExceeded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from angarium.api import GroupConfig, Settlement
    from angarium.kinds import GroupKind
    from angarium.lending.host import GroupHost
    from angarium.lending.ports import Lending, Membership, Opening
    from angarium.service.groups.settling import Told
    from angarium.service.own_node import OwnNode

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
"""Where a partition has lost its majority, the others have so long to be attached. Then the member
takes part in those, or is told what is missing if there are none."""


class LocalConsumption:
    """Implements `api.Consumption`, and `part.Keeper` for its parts."""

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
        self._opening = opening
        self._parts: dict[tuple[str, int], Part] = {}
        self._ready: deque[Part] = deque()
        """Parts with arrivals, each once, in turn."""
        self._is_ready: set[Part] = set()
        self._something = asyncio.Event()
        self._stirred = asyncio.Event()
        """Set when something happens that an agent at rest should look at."""
        self._error: AngariumError | None = None
        self._is_over = False
        self._has_begun = False
        self._due: dict[Part, float] = {}
        """Parts that are not attached, and when to try again."""
        self._joins: dict[Part, asyncio.Future[None]] = {}
        """Whoever waits for a part to be attached for the first time."""
        self._joining: asyncio.Timeout | None = None
        """Until when they wait."""
        self._refusal: AngariumError | None = None
        """Why a part that somebody waits for could not be attached yet."""
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

    async def begin(self, held: dict[tuple[str, int], list[tuple[int, int, int]]]) -> None:
        """Attach to all partitions; raises why the group cannot be joined.

        The first partition of each topic comes first: whatever two consumers that open the group
        at the same time want it to be, it is one thing there, and the others follow.
        """
        for name in self.membership.topics:
            self._add_partitions(name)
        for place, ranges in held.items():
            part = self._parts.get(place)
            if part is not None:
                for start, end, attempt in ranges:
                    part.holdings.add((start, end), attempt)
        self._task = asyncio.create_task(self._look_after())
        try:
            async with asyncio.timeout(self._node.config.request_timeout_s) as self._joining:
                firsts = [self._parts[name, 0] for name in self.membership.topics]
                for part in firsts:
                    await self._join(part)
                rest = [part for part in self._parts.values() if part not in firsts]
                await asyncio.gather(*map(self._join, rest))
        except TimeoutError:
            if not any(part.is_attached for part in self._parts.values()):
                await self.close()
                raise self._refusal or DeadlineExceeded(
                    f"no partition of {', '.join(self.membership.topics)} has a leader to attach to"
                ) from None
            # The others are attached as soon as they have leaders.
        except BaseException:
            await self.close()
            raise
        finally:
            self._joining = None
            self._has_begun = True

    async def _join(self, part: Part) -> None:
        joined: asyncio.Future[None] = self._loop.create_future()
        self._joins[part] = joined
        try:
            self._attach(part)
            await joined
        finally:
            del self._joins[part]

    def _add_partitions(self, name: str) -> list[Part]:
        """Return the parts of a topic that were not there before."""
        topic = self._node.catalog.topic(name)
        new = []
        for number, place in enumerate(topic.groups):
            if (name, number) not in self._parts:
                part = Part(self, name, number, place)
                self._parts[name, number] = part
                new.append(part)
        return new

    def _attach(self, part: Part) -> None:
        """Attach a part to whoever leads, or try again later."""
        if part.is_seated or self._is_over:
            return
        self._due.pop(part, None)
        try:
            leader = self._reaching.leader_of(part)
            credit = max(1, self._credit // len(self._parts))
            part.attach(self._reaching.post(leader), leader, self._opening, credit)
        except AngariumError as error:
            part.failures += 1
            self.left(part, error)

    # --- what parts tell ----------------------------------------------------------------------

    def now(self) -> float:
        """Return the event loop's time."""
        return self._loop.time()

    def joined(self, part: Part, kind: GroupKind, config: GroupConfig) -> None:
        """Hear that a part is attached."""
        # Where the group is not known yet it is to be as it is here.
        self._opening = self._opening._replace(kind=kind, config=config)
        waiting = self._joins.get(part)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def left(self, part: Part, error: AngariumError) -> None:
        """Hear that a part's leader let go: go on with the next, or end."""
        if self._is_over:
            return
        self._stirred.set()
        waiting = self._joins.get(part)
        if error.retriable and not (waiting is not None and isinstance(error, LimitExceeded)):
            pause = min(PAUSE_S_MAX, LOOK_S * 2 ** min(part.failures - 1, 10))
            self._due[part] = self._loop.time() + (pause if part.failures > 1 else 0.0)
            if waiting is not None:
                self._wait_no_longer_than_it_helps(part, error)
            if part.failures <= 1:
                self._loop.call_soon(self._attach, part)
            return
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)
        elif isinstance(error, NotFound) and self._is_deleted(part):
            del self._parts[part.topic, part.partition]
            if not self._parts:
                self.break_off(error)
        else:
            self.break_off(error)

    def _wait_no_longer_than_it_helps(self, part: Part, error: AngariumError) -> None:
        self._refusal = error
        joining = self._joining
        until = None if joining is None or joining.expired() else joining.when()
        if joining is not None and until is not None and self._node.quorum.trouble(part.place):
            joining.reschedule(min(until, self._loop.time() + VAIN_S))

    def _is_deleted(self, part: Part) -> bool:
        try:
            place = self._node.catalog.partition(part.topic, part.partition)
        except NotFound:
            return True
        return place.group != part.place

    def arrived(self, part: Part) -> None:
        """Hear that records have come."""
        self._stirred.set()
        if part not in self._is_ready:
            self._is_ready.add(part)
            self._ready.append(part)
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
            if self._error is not None:
                raise self._error
            if self._is_over:
                raise StopAsyncIteration
            handed = self._next()
            if handed is not None:
                return handed
            self._something.clear()
            await self._something.wait()

    def _next(self) -> Handed | None:
        while self._ready:
            part = self._ready[0]
            if part.arrivals and not self._has_room(part.arrivals[0][0]):
                return None
            self._ready.popleft()
            lending = part.take()
            if lending is None:
                self._is_ready.discard(part)
                continue
            if part.arrivals:
                self._ready.append(part)  # the others are next
            else:
                self._is_ready.discard(part)
            return Handed(
                topic=part.topic,
                partition=part.partition,
                batches=lending.batches,
                ranges=lending.ranges,
                attempt=lending.attempt,
                lease_ms=lending.lease_ms,
                generation=Index(lending.generation),
            )
        return None

    def _has_room(self, lending: Lending) -> bool:
        """Tell whether a delivery may be passed on; only a small credit is ever in the way."""
        if self._credit >= len(self._parts):
            return True
        passed_on = sum(part.holdings.count - part.waiting for part in self._parts.values())
        records = sum(lending.ranges[1::2]) - sum(lending.ranges[::2])
        return passed_on + records <= self._credit

    # --- settling -----------------------------------------------------------------------------

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        """Settle records; an answer for each, in their order, once it is committed."""
        future: asyncio.Future[tuple[Settled, ...]] = self._loop.create_future()

        def told(settled: tuple[Settled, ...]) -> None:
            if not future.done():
                future.set_result(settled)

        self.begin_settle(settlements, told)
        return await future

    def begin_settle(self, settlements: Sequence[Settlement], told: Told) -> None:
        """Do the same without a task; `told` is called once."""
        deadline = self._loop.time() + self._node.config.request_timeout_s
        parts = {} if self._is_over else self._parts
        ask_parts(parts, settlements, told, deadline=deadline)

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
            for part in list(self._parts.values()):
                due = self._due.get(part)
                # Until it has begun the others wait for the first partitions on purpose.
                is_due = self._has_begun if due is None else due <= now
                if is_due and not part.is_seated:
                    self._attach(part)
            late = NotLeader("no leader has answered in time; settle again")
            for part in self._parts.values():
                part.return_stale(now)
                part.expire_asks(now, late)
            self._spread()
            if now >= leaders_at:
                leaders_at = now + LEADERS_S
                self._follow_leaders()
            if now >= topics_at:
                topics_at = now + TOPICS_S
                self._follow_topics()

    async def _pause(self) -> None:
        """Wait until the next look; longer while nothing is going on, or until something is."""
        if not all(part.is_quiet for part in self._parts.values()):
            await asyncio.sleep(LOOK_S)
            return
        self._stirred.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(REST_S):
                await self._stirred.wait()

    def _spread(self) -> None:
        if self._lingering is not None:
            return
        parts = list(self._parts.values())
        busy = [part.was_busy or part.holdings.count > 0 for part in parts]
        for part, credit in zip(parts, spread(self._credit, busy), strict=True):
            part.was_busy = False
            part.allow(credit)

    def _follow_leaders(self) -> None:
        """Leave nodes that lead no more and do not say so: they may be paused, or cut off."""
        for part in list(self._parts.values()):
            leader = self._reaching.moved_to(part)
            if leader is not None:
                part.leave_for(NotLeader(f"node {leader} leads now", leader=leader))

    def _follow_topics(self) -> None:
        for name in self.membership.topics:
            try:
                new = self._add_partitions(name)
            except NotFound:
                continue  # deleted: its leaders say so, part by part
            for part in new:
                self._attach(part)

    # --- the end ------------------------------------------------------------------------------

    async def close(self, *, lost: bool = False) -> None:
        """Leave the group: what is on loan goes back untried; `lost`: unless it comes back soon."""
        if self._is_over or self._lingering is not None:
            return
        if lost and self._error is None:
            self._lingering = self._loop.call_later(LINGER_S, self._end, True)
            for part in self._parts.values():
                part.allow(0)
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
            self._error = GroupFenced(f"{self.member} takes part from another connection now")
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
        for part in self._parts.values():
            part.detach(lost=lost)
        self._reaching.close()

    def _finish(self) -> None:
        if self._lingering is not None:
            self._lingering.cancel()
        if self._task is not None:
            self._task.cancel()
        self._something.set()
        self._on_end(self)
