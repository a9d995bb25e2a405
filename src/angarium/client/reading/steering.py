"""Steering a subscription: which partitions, from which node, and where to go on after a failure.

One task works in rounds. A round finds the partitions of all wanted topics, looks up where to begin
in those that are new, and spreads whatever has no stream over one stream per node. It is repeated
when a stream ends, when the wishes change, and every few seconds.
"""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from angarium.api.fences import Gates
from angarium.client.reading.absent import RECHECK_S, Absent, start_of_copy
from angarium.client.reading.cursor import Cursor
from angarium.client.reading.link import Link
from angarium.client.reading.starts import start_in
from angarium.errors import AngariumError, LayoutChanged, OffsetOutOfRange, retry_after_of
from angarium.ids import TopicPartition
from angarium.retrying import later
from angarium.wire.operations import FindOffsetAnswer, FindOffsetHeader, Operation, TopicHeader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from angarium.api import TopicInfo
    from angarium.client.reach import Reach
    from angarium.client.reading.mailbox import Mailbox
    from angarium.client.reading.wishes import Wishes
    from angarium.ids import Offset
    from angarium.wire import Connection

STRIKES_MAX: Final = 3
"""So often a partition may be refused with an error that should not pass by itself: a node may not
have heard of a new topic yet. Then the subscription ends with that error."""

HELD_S: Final = 0.1
"""How often it is looked whether a partition that waits at a gate may go on."""

CALM_S: Final = 1.0
"""After so long without a failure the next one is again met with the shortest pause."""

_log = logging.getLogger(__name__)


class Steering:
    """Keeps every wanted partition flowing into a mailbox."""

    def __init__(
        self,
        reach: Reach,
        wishes: Wishes,
        mailbox: Mailbox,
        *,
        max_staleness_ms: int | None = None,
        at_least: Mapping[tuple[str, int], Offset] = MappingProxyType({}),
    ) -> None:
        self._max_staleness_ms = max_staleness_ms
        self._at_least = at_least
        self.cursors: dict[tuple[str, int], Cursor] = {}
        self._reach = reach
        self._wishes = wishes
        self._mailbox = mailbox
        self._links: dict[Connection, Link] = {}
        self._news = asyncio.Event()
        self._is_due = True
        self._failures = 0
        self.hindrance: AngariumError | None = None
        """Why the last round came to nothing; None after one that did not."""
        self._waiting: list[asyncio.Future[None]] = []
        self._fatal: AngariumError | None = None
        self._is_over = False
        self._infos: dict[str, TopicInfo] = {}
        self._gates: dict[str, Gates] = {}
        self._is_held = False
        """Whether some partition waits at a gate."""
        self._time = asyncio.get_running_loop().time
        # A caller that waits for the subscription has to hear why before the time is up.
        patience_s = reach.settings.request_timeout_s / 2
        self._absent = Absent(reach.waiting, patience_s=patience_s, clock=self._time)

    async def run(self) -> None:
        """Work until cancelled, or until an error that no repetition will help against."""
        error: AngariumError | None = None
        watchers = self._reach.routes.watchers
        watchers.add(self.look_again)
        try:
            while True:
                await self._round_and_rest()
        except AngariumError as ended:
            error = ended
            self._mailbox.fail(ended)
        finally:
            self._is_over = True
            watchers.discard(self.look_again)
            # Closed while somebody waited for it to begin: they go on, and see its end.
            _tell(self._waiting, error)
            for link in list(self._links.values()):
                await link.close()

    async def settled(self) -> None:
        """Wait until every partition wanted by now is being read; raises what ended it."""
        if self._is_over:
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self.look_again()
        await turn

    def waiting_for(self) -> dict[tuple[str, int], AngariumError]:
        """Return the partitions that are not read until they have a leader, and why."""
        found = self._absent.among(self.cursors.values())
        return {(one.topic, one.partition): why for one, why in found.items() if one.is_waited_for}

    def look_again(self) -> None:
        """Begin another round soon, finding topics and leaders anew."""
        self._is_due = True
        self._news.set()

    def forget_unwanted(self) -> None:
        """Let go of the partitions of topics that are no longer wanted."""
        for cursor in list(self.cursors.values()):
            if not self._wishes.covers(cursor.topic):
                self._forget(cursor)

    # --- a round --------------------------------------------------------------------------------

    async def _round_and_rest(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._news.clear()
        try:
            if self._fatal is not None:
                raise self._fatal
            await self._round()
        except AngariumError as error:
            self._waiting = waiting + self._waiting
            if not error.retriable:
                raise
            self.hindrance = error
            self._failures += 1
            _log.info("a subscription is tried again: %s", error)
            self._is_due = True
        except BaseException:
            self._waiting = waiting + self._waiting
            raise
        else:
            self._absent.look(self.cursors.values(), self._infos)
            self.hindrance = self._essential()
            if self.hindrance is None:
                _tell(waiting, None)
                await self._rest()
            else:
                self._waiting = waiting + self._waiting
                self._failures += 1
                self._is_due = True
        if self._failures:
            backoff, chance = self._reach.settings.backoff, random.random()
            pause_s = backoff.pause_s(self._failures - 1, chance)
            asked_s = None if self.hindrance is None else retry_after_of(self.hindrance)
            await asyncio.sleep(max(pause_s, later(asked_s or 0.0, chance)))

    def _essential(self) -> AngariumError | None:
        """Return the first error for which the subscription cannot go on without a partition.

        Partitions are done without only for as long as others are read.
        """
        hindered = self._absent.among(self.cursors.values())
        is_reading = len(hindered) < len(self.cursors)
        return next(
            (why for one, why in hindered.items() if not (is_reading and one.is_waited_for)), None
        )

    async def _rest(self) -> None:
        if self._is_held:
            # Others are on their way to their fences; how far, only their cursors know.
            with suppress(TimeoutError):
                async with asyncio.timeout(HELD_S):
                    await self._news.wait()
            self._is_due = True
            return
        if not self._absent.is_empty:
            with suppress(TimeoutError):
                async with asyncio.timeout(RECHECK_S * random.uniform(0.75, 1.0)):
                    await self._news.wait()
            self._is_due = True
            return
        # Apart from each other, so that many subscribers do not all ask in one moment.
        discover_s = self._reach.settings.discover_s * random.uniform(0.75, 1.25)
        try:
            async with asyncio.timeout(min(CALM_S, discover_s)):
                await self._news.wait()
                return
        except TimeoutError:
            self._failures = 0
        try:
            async with asyncio.timeout(max(discover_s - CALM_S, 0)):
                await self._news.wait()
        except TimeoutError:
            self._is_due = True

    async def _round(self) -> None:
        if self._is_due:
            self._is_due = False
            await self._discover()
        now = self._time()
        idle = [one for one in self.cursors.values() if one.link is None and one.retry_at <= now]
        unknown = [cursor for cursor in idle if cursor.next_offset is None]
        await asyncio.gather(*map(self._look_up, unknown))
        idle = [cursor for cursor in idle if cursor.next_offset is not None]
        # Of this moment: nothing that comes while connections are made opens a gate.
        for topic in {cursor.topic for cursor in idle}:
            self._look_at_gates(topic)
        free = [cursor for cursor in idle if self._may_go_on(cursor)]
        self._is_held = len(free) < len(idle)
        await self._read(free)

    async def _read(self, cursors: list[Cursor]) -> None:
        """Open streams for partitions, each as soon as the connection to its node is open.

        A node that cannot be reached, or does not answer, delays the partitions read from it alone.
        Raises an error of a stream, or a dial's that is not retriable, after all have been tried.
        """
        way = self._reach.routes.reading_connection
        began = self._time()
        dials = {asyncio.create_task(way(one.topic, one.partition)): one for one in cursors}
        readings: set[asyncio.Task[None]] = set()
        errors: list[AngariumError] = []
        try:
            while dials or readings:
                done, _ = await asyncio.wait(
                    {*dials, *readings}, return_when=asyncio.FIRST_COMPLETED
                )
                ways: dict[Connection, list[Cursor]] = {}
                for dial in [one for one in dials if one in done]:
                    cursor = dials.pop(dial)
                    try:
                        connection = dial.result()
                        if self.cursors.get((cursor.topic, cursor.partition)) is cursor:
                            ways.setdefault(connection, []).append(cursor)
                    except AngariumError as error:
                        if not error.retriable:
                            errors.append(error)
                        self._absent.refused(cursor, error, after_s=self._time() - began)
                for reading in readings & done:
                    readings.discard(reading)
                    try:
                        reading.result()
                    except AngariumError as error:
                        errors.append(error)
                for connection, found in ways.items():
                    readings.add(asyncio.create_task(self._read_over(connection, found)))
        finally:
            left = {*dials, *readings}
            for task in left:
                task.cancel()
            if left:
                await asyncio.gather(*left, return_exceptions=True)
        if errors:
            raise next((one for one in errors if not one.retriable), errors[0])

    async def _discover(self) -> None:
        """Find the partitions of all wanted topics, and which of them are read the long way."""
        wishes = self._wishes.current()
        metadata = self._reach.metadata
        infos = [await metadata.refresh(name) for name in self._wishes.names()]
        if self._wishes.has_patterns:
            infos += await self._matching()
            there = {info.name for info in infos}
            for cursor in list(self.cursors.values()):
                if cursor.topic not in there:
                    self._forget(cursor)
        for info in infos:
            if self._wishes.covers(info.name):
                self._learn(info)
                self._add_partitions(info)
        self._wishes.have_begun(wishes)
        await self._follow_the_nearest()

    async def _matching(self) -> list[TopicInfo]:
        listed = await self._reach.metadata.topics()
        infos = [info for info in listed if self._wishes.matches(info.name)]
        for info in infos:
            self._reach.routes.learn_topic(info)
        return infos

    def _learn(self, info: TopicInfo) -> None:
        known = self._infos.get(info.name)
        if known is not None and known.id != info.id:
            self._gates.pop(info.name, None)
        self._infos[info.name] = info

    def _look_at_gates(self, topic: str) -> None:
        """Open the gates of a topic by how far it is read: what is delivered is delivered in the
        order in which it comes to the mailbox."""
        positions = {
            number: one.next_offset
            for (name, number), one in self.cursors.items()
            if name == topic and one.next_offset is not None
        }
        self._gates.setdefault(topic, Gates()).look(self._infos[topic], positions)

    def _may_go_on(self, cursor: Cursor) -> bool:
        """Tell whether no gate is in the way of a partition."""
        gates = self._gates.get(cursor.topic)
        if gates is None:
            return False  # forgotten a moment ago
        cursor.layout = gates.opened
        return gates.is_open(self._infos[cursor.topic], cursor.partition)

    def _add_partitions(self, info: TopicInfo) -> None:
        start = self._wishes.start_of(info.name)
        for partition in info.partitions:
            key = (info.name, partition.number)
            if key not in self.cursors:
                begin = start_in(start, partition.number)
                self.cursors[key] = Cursor(
                    *key,
                    begin,
                    max_staleness_ms=self._max_staleness_ms,
                    at_least=self._at_least.get(key),
                )

    async def _follow_the_nearest(self) -> None:
        """Let go of streams to nodes that are no longer the ones to read from.

        Those are the nearest ones, or leaders, which have new records first.
        """
        routes = self._reach.routes
        for cursor in list(self.cursors.values()):
            link, node = cursor.link, routes.reading_node(cursor.topic, cursor.partition)
            if link is None or node in {None, link.connection.peer.hello.node}:
                continue
            connection = await routes.reading_connection(cursor.topic, cursor.partition)
            if cursor.link is link and connection is not link.connection:
                link.drop(cursor)

    async def _look_up(self, cursor: Cursor) -> None:
        """Turn a start into an offset, once."""
        partition = TopicPartition(cursor.topic, cursor.partition)
        began = self._time()
        try:
            frame = await self._reach.calls.ask(
                Operation.FIND_OFFSET,
                FindOffsetHeader(*partition, cursor.start),
                partition=partition,
                timeout_s=self._absent.time_for(cursor),
            )
        except AngariumError as error:
            if not error.retriable:
                raise
            cursor.next_offset = start_of_copy(cursor, self._infos.get(cursor.topic))
            if cursor.next_offset is not None:
                return
            _log.info("a partition of a subscription is tried again: %s", error)
            self._absent.refused(cursor, error, after_s=self._time() - began)
            return
        cursor.next_offset = frame.read(FindOffsetAnswer).offset

    async def _read_over(self, connection: Connection, cursors: list[Cursor]) -> None:
        link = self._links.get(connection)
        if link is None:
            self._links[connection] = Link(
                connection,
                self._mailbox,
                cursors,
                on_refused=self._refused,
                on_ended=self._ended,
            )
        else:
            for cursor in cursors:
                await link.add(cursor)
        # An answer on the same connection means that the node has seen the stream before it.
        await connection.request(
            Operation.DESCRIBE_TOPIC,
            TopicHeader(cursors[0].topic),
            timeout_s=self._reach.settings.attempt_timeout_s,
        )

    # --- failures -------------------------------------------------------------------------------

    def _refused(self, cursor: Cursor, error: AngariumError) -> None:
        """Hear that a node does not go on with a partition."""
        if isinstance(error, LayoutChanged):
            gates = self._gates.setdefault(cursor.topic, Gates())
            gates.stop(cursor.partition, layout=cursor.layout)
            self.look_again()
            return
        if not error.retriable:
            cursor.strikes += 1
            if isinstance(error, OffsetOutOfRange) or cursor.strikes >= STRIKES_MAX:
                self._fatal = error
        self._absent.refused(cursor, error)
        if not cursor.is_waited_for:
            self._failures += 1
            self.look_again()

    def _ended(self, link: Link, error: AngariumError | None) -> None:
        """Hear that a stream is over."""
        if self._links.get(link.connection) is link:
            del self._links[link.connection]
        if self._is_over:
            return
        if error is None:
            self._failures += 1
            self.look_again()
            return
        for cursor in link.cursors.values():
            self._refused(cursor, error)

    def _forget(self, cursor: Cursor) -> None:
        del self.cursors[cursor.topic, cursor.partition]
        self._gates.pop(cursor.topic, None)  # who wants it again may begin earlier
        if cursor.link is not None:
            cursor.link.drop(cursor)
        self._mailbox.discard(
            lambda batch: (batch.topic, batch.partition) == (cursor.topic, cursor.partition)
        )


def _tell(waiting: list[asyncio.Future[None]], error: AngariumError | None) -> None:
    for turn in waiting:
        if turn.done():
            continue
        if error is None:
            turn.set_result(None)
        else:
            turn.set_exception(error)
