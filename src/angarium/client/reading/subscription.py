"""A subscription: all partitions of some topics, read wherever they can be, without a break."""

from __future__ import annotations

import asyncio
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from angarium.client.reading.mailbox import Mailbox
from angarium.client.reading.starts import start_in
from angarium.client.reading.steering import Steering
from angarium.client.reading.wishes import Wishes, is_pattern
from angarium.wire import DeadlineExceeded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from angarium.client.reach import Reach
    from angarium.client.reading.starts import StartLike
    from angarium.client.records import ReceivedBatch, Record
    from angarium.errors import AngariumError
    from angarium.ids import Offset


class Subscription:
    """Records of one or more topics, as they come. Made by `Client.subscribe`.

    One task reads it, in one of three ways: `async for record in subscription`, `batches()` or
    `arrow()`. It begins with `async with`, or when the first record is asked for. After a failure
    it goes on by itself: within a partition no record is missing, repeated or out of order.
    """

    def __init__(
        self,
        reach: Reach,
        topics: Sequence[str],
        start: StartLike,
        *,
        on_closed: Callable[[Subscription], None],
        max_staleness_ms: int | None = None,
        at_least: Mapping[tuple[str, int], Offset] = MappingProxyType({}),
    ) -> None:
        start_in(start, 0)  # a start that makes no sense is refused here, not later in a task
        self._reach = reach
        self._wishes = Wishes()
        self._wishes.add(topics, start)
        self._mailbox = Mailbox(reach.settings.delivery_bytes_max)
        self._steering = Steering(
            reach,
            self._wishes,
            self._mailbox,
            max_staleness_ms=max_staleness_ms,
            at_least=at_least,
        )
        self._running: asyncio.Task[None] | None = None
        self._records: Iterator[Record] = iter(())
        self._on_closed = on_closed
        self._is_closed = False

    async def __aenter__(self) -> Subscription:
        await self.begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def begin(self) -> None:
        """Begin, unless that has happened; returns once every partition is being read.

        Whatever is published after that is delivered. Partitions without a leader are left for
        later where others have one (`waiting_for`). Raises `NotFound` for a topic that is not
        there, what a partition was refused with all along if the time is up, and `DeadlineExceeded`
        if the cluster does not answer.
        """
        if self._running is None and not self._is_closed:
            self._running = asyncio.get_running_loop().create_task(self._steering.run())
            try:
                await self._settled()
            except BaseException:
                await self.close()
                raise

    def __aiter__(self) -> AsyncIterator[Record]:
        return self._each_record()

    async def next_batch(self) -> ReceivedBatch | None:
        """Return the next batch, or None once the subscription is closed."""
        await self.begin()
        return await self._mailbox.take()

    async def batches(self) -> AsyncIterator[ReceivedBatch]:
        """Yield batches as they are stored: the fast way to read."""
        while (batch := await self.next_batch()) is not None:
            yield batch

    async def arrow(self) -> AsyncIterator[Any]:
        """Yield each batch as a `pyarrow.RecordBatch`; needs the extra `angarium[arrow]`."""
        async for batch in self.batches():
            yield batch.to_arrow()

    async def add(self, *topics: str, start: StartLike = "live") -> None:
        """Deliver further topics or patterns, too; returns once they are being read."""
        start_in(start, 0)
        for topic in topics:
            if not is_pattern(topic):
                await self._reach.metadata.refresh(topic)  # a wrong name harms nothing but itself
        self._wishes.add(topics, start)
        if self._running is None:
            await self.begin()
        else:
            await self._settled()

    async def drop(self, *topics: str) -> None:
        """Deliver topics or patterns no longer; name them as they were added."""
        self._wishes.drop(topics)
        self._steering.forget_unwanted()

    async def close(self) -> None:
        """End it; the iteration ends."""
        self._is_closed = True
        try:
            if self._running is not None:
                self._running.cancel()
                await asyncio.wait([self._running])
        finally:
            self._mailbox.close()
            self._on_closed(self)

    @property
    def partitions(self) -> list[tuple[str, int]]:
        """The partitions being read at this moment."""
        cursors = self._steering.cursors.items()
        return sorted(key for key, cursor in cursors if cursor.link is not None)

    @property
    def waiting_for(self) -> dict[tuple[str, int], AngariumError]:
        """The partitions that are not read because they have no leader, each with the reason.

        The others are read meanwhile. These join by themselves once they have a leader again.
        """
        return self._steering.waiting_for()

    async def _settled(self) -> None:
        timeout_s = self._reach.settings.request_timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                await self._steering.settled()
        except TimeoutError:
            raise self._steering.hindrance or DeadlineExceeded(
                f"not all partitions can be read after {timeout_s:g} s"
            ) from None

    async def _each_record(self) -> AsyncIterator[Record]:
        await self.begin()
        while True:
            # Kept outside of this generator, so that a loop that is left and begun again goes
            # on with the next record.
            for record in self._records:
                yield record
            batch = await self._mailbox.take()
            if batch is None:
                return
            self._records = iter(batch)
