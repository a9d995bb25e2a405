"""One stream of a subscription: some of its partitions, read from one node."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, cast

from angarium.client.publishing.verdicts import refusal
from angarium.client.records import Served
from angarium.errors import AngariumError, OutcomeUnknown
from angarium.wire.operations import Drop, Ended, Operation, Told, Want, Wants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from angarium.client.reading.cursor import Cursor
    from angarium.client.reading.mailbox import Mailbox
    from angarium.wire import Connection, Frame, Stream

_log = logging.getLogger(__name__)


class Link:
    """Reads from one node until the stream ends; then its partitions have to be read elsewhere."""

    def __init__(
        self,
        connection: Connection,
        mailbox: Mailbox,
        cursors: Iterable[Cursor],
        *,
        on_refused: Callable[[Cursor, AngariumError], None],
        on_ended: Callable[[Link, AngariumError | None], None],
    ) -> None:
        """Open the stream; raises `Unreachable` or `LimitExceeded`."""
        self.connection = connection
        self.cursors: dict[int, Cursor] = {}
        """By the number they have on this stream; none is used twice, so that what is on its way
        under a number that was dropped is recognised."""
        self._numbers = count(1)
        self._mailbox = mailbox
        self._on_refused = on_refused
        self._on_ended = on_ended
        wanted = {next(self._numbers): cursor for cursor in cursors}
        wants = Wants(tuple(_want(number, cursor) for number, cursor in wanted.items()))
        self._stream: Stream = connection.open_stream(Operation.SUBSCRIBE, wants)
        for number, cursor in wanted.items():
            self._take_on(number, cursor)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def add(self, cursor: Cursor) -> None:
        """Read one more partition over this stream."""
        number = next(self._numbers)
        await self._stream.send(_want(number, cursor))
        self._take_on(number, cursor)

    def drop(self, cursor: Cursor) -> None:
        """Read a partition no longer."""
        if self.cursors.pop(cursor.number, None) is not None:
            cursor.link = None
            # A node that does not even listen is not sending either.
            with suppress(AngariumError):
                self._stream.send_nowait(Drop(cursor.number))

    async def close(self) -> None:
        """Stop reading."""
        self._stream.cancel()
        self._task.cancel()
        await asyncio.wait([self._task])

    def _take_on(self, number: int, cursor: Cursor) -> None:
        cursor.number, cursor.link = number, self
        self.cursors[number] = cursor

    async def _run(self) -> None:
        error: AngariumError | None = None
        try:
            while (frame := await self._stream.receive()) is not None:
                self._take(frame)
                await self._mailbox.room()
        except AngariumError as ended:
            error = ended
        except Exception:
            _log.exception("reading from %s met a mistake of ours", self.connection.address)
            error = OutcomeUnknown("a delivery could not be read; the log says why")
        finally:
            self._stream.cancel()
            for cursor in self.cursors.values():
                cursor.link = None
            self._on_ended(self, error)

    def _take(self, frame: Frame) -> None:
        told: Told = frame.read(cast("type[Told]", Told))
        cursor = self.cursors.get(told.number)
        if cursor is None:
            return
        if isinstance(told, Ended):
            del self.cursors[told.number]
            cursor.link = None
            self._on_refused(cursor, refusal(told.code, told.message))
            return
        if told.live:
            batches = cursor.live(frame.payload)
        else:
            served = Served(told.node, told.region, told.staleness_ms)
            batches = cursor.stored(frame.payload, told.from_offset, told.expired, served)
        for batch in batches:
            self._mailbox.put(batch)


def _want(number: int, cursor: Cursor) -> Want:
    return Want(
        number,
        cursor.topic,
        cursor.partition,
        cursor.resumption,
        cursor.layout,
        cursor.max_staleness_ms,
        cursor.at_least,
    )
