"""A consumer group under load, for the scenarios that are about one.

Publishers are those of every scenario; what they publish is consumed by members of one queue group,
each with a connection of its own, over the protocol that is measured. Every id that comes is kept,
so that what is lost, invented or delivered twice shows, whatever the counts say; and in the end the
group itself is asked whether everything is settled.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Final

from angarium.bench.plan import Scenario
from angarium.errors import AngariumError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.bench.drivers.port import Driver, Lent, Member
    from angarium.bench.inbox import Inbox
    from angarium.bench.load import Window
    from angarium.bench.plan import Plan
    from angarium.client import Client
    from angarium.ids import TopicPartition

SLOW_S: Final = 0.002
"""How long a slow consumer takes for each record."""

AWAY_S: Final = 2.0
"""How long consumers that crashed stay away."""

CREDIT: Final = 2_000
"""Records that one consumer may have in hand."""

LOOK_S: Final = 0.05


class Consuming:
    """The consumers of one measurement."""

    def __init__(
        self,
        plan: Plan,
        client: Client,
        driver: Driver,
        partitions: Sequence[TopicPartition],
        inbox: Inbox,
    ) -> None:
        self.group = f"bench-{secrets.token_hex(4)}"
        self.in_hand = 0
        """Records that were in the hands of consumers when these crashed: they may come twice."""
        self._plan = plan
        self._client = client
        self._driver = driver
        self._inbox = inbox
        self._topics = sorted({partition.topic for partition in partitions})
        if plan.scenario is Scenario.ISOLATION:
            # Of the first topic somebody takes records and never settles any.
            self._stuck, *self._topics = self._topics
        self._members: list[Member] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._hostage: Member | None = None

    async def run(self, window: Window) -> None:
        """Do during the load what the scenario is about."""
        scenario = self._plan.scenario
        middle = (window.start + window.end) // 2
        if scenario is Scenario.ISOLATION:
            await self._take_hostages()
        if scenario in (Scenario.SLOW, Scenario.ISOLATION, Scenario.CRASH):
            await self.begin()
        if scenario in (Scenario.LATE, Scenario.CRASH):
            await asyncio.sleep(max(0.0, (middle - time.monotonic_ns()) / 1e9))
        if scenario is Scenario.LATE:
            await self.begin()
        if scenario is Scenario.CRASH:
            await self._crash()
            await asyncio.sleep(AWAY_S)
            await self.begin()

    async def begin(self) -> None:
        """Let the consumers join."""
        credit = CREDIT // 10 if self._is_slow else CREDIT
        for _ in range(self._plan.consumers):
            member = await self._driver.member(self.group, self._topics, credit=credit)
            self._members.append(member)
            work = self._slowly(member) if self._is_slow else self._quickly(member)
            self._tasks.append(asyncio.create_task(work))

    async def finish(self, *, quiet_s: float) -> int:
        """Wait until everything is settled, or nothing moves for so long; return what is not."""
        if self._hostage is not None:
            # A member that never settles is closed; the others get what it had.
            await self._hostage.close()
            self._hostage, self._topics = None, [self._stuck]
            await self.begin()
        left, since = -1, time.monotonic()
        while True:
            for member in self._members:
                await member.flush()
            now_left = (await self._client.describe_group(self.group)).lag
            if not now_left:
                return 0
            if now_left != left:
                left, since = now_left, time.monotonic()
            elif time.monotonic() - since > quiet_s:
                return now_left
            await asyncio.sleep(LOOK_S)

    async def close(self) -> None:
        """Leave, and forget the group."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        async with AsyncExitStack() as stack:
            for member in (*self._members, *filter(None, [self._hostage])):
                stack.push_async_callback(member.close)
        with suppress(AngariumError):
            await self._client.delete_group(self.group)

    # --- how they consume -------------------------------------------------------------------------

    @property
    def _is_slow(self) -> bool:
        return self._plan.scenario is Scenario.SLOW

    async def _quickly(self, member: Member) -> None:
        while (lent := await member.receive()) is not None:
            self._inbox.put(lent.partition, lent.values)
            await member.acknowledge(lent)

    async def _slowly(self, member: Member) -> None:
        while (lent := await member.receive()) is not None:
            for one in lent.one_by_one():
                await asyncio.sleep(SLOW_S)
                self._inbox.put(one.partition, one.values)
                await member.acknowledge(one)

    async def _crash(self) -> None:
        """Vanish without a word, all at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for member in self._members:
            self.in_hand += await member.vanish()
        self._tasks, self._members = [], []

    async def _take_hostages(self) -> None:
        hostage = await self._driver.member(self.group, [self._stuck], credit=CREDIT)
        taken: list[Lent] = []

        async def hold() -> None:
            while (lent := await hostage.receive()) is not None:
                taken.append(lent)

        self._hostage = hostage
        self._tasks.append(asyncio.create_task(hold()))
