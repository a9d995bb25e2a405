"""One handler: a function, the topics it is for, and what becomes of a record in its hands."""

from __future__ import annotations

import inspect
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from angarium.client.handlers.binding import outgoing_value, sources_of

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from concurrent.futures import ThreadPoolExecutor
    from datetime import timedelta

    from angarium.api import GroupConfig
    from angarium.client.client import Client
    from angarium.client.groups.group import KindLike
    from angarium.client.groups.records import GroupRecord
    from angarium.client.handlers.binding import Source
    from angarium.client.reading.starts import StartLike

_log = logging.getLogger(__name__)


class Retry(Exception):
    """Raised by a handler: try this record again, `delay` seconds later; it counts."""

    def __init__(self, reason: str = "", *, delay: float | timedelta | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.delay = delay


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """What `App.subscriber` was told."""

    function: Callable[..., Any]
    topics: tuple[str, ...]
    group: str
    kind: KindLike | None = None
    start: StartLike = "earliest"
    config: GroupConfig | None = None
    concurrency: int = 1
    credit: int = 1_000
    publish_to: str | None = None
    sources: tuple[Source, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", sources_of(self.function))

    @property
    def name(self) -> str:
        """What the function is called."""
        return getattr(self.function, "__qualname__", repr(self.function))

    @property
    def is_async(self) -> bool:
        """Whether it runs on the event loop; otherwise each call has a thread of its own."""
        return inspect.iscoroutinefunction(self.function)

    async def handle(
        self,
        record: GroupRecord,
        client: Client,
        loop: asyncio.AbstractEventLoop,
        threads: ThreadPoolExecutor | None,
    ) -> None:
        """Call the function with a record, and say what became of it.

        What it returns is published before the record is acknowledged, so that a crash in between
        publishes it twice rather than never. An exception gives the record back as failed.
        """
        try:
            arguments = [find(record, client) for find in self.sources]
            if threads is None:
                answer = await self.function(*arguments)
            else:
                answer = await loop.run_in_executor(threads, self.function, *arguments)
            if self.publish_to is not None and answer is not None:
                await client.publish(self.publish_to, outgoing_value(answer), key=record.key)
        except Retry as order:
            record.nack_nowait(order.delay, order.reason or "to be tried again")
        except Exception as error:
            _log.warning(
                "%s failed on %s/%d@%s (attempt %d): %s: %s",
                self.name,
                record.topic,
                record.partition,
                record.offset,
                record.attempt,
                type(error).__name__,
                error,
                exc_info=_log.isEnabledFor(logging.DEBUG),
            )
            record.nack_nowait(reason=f"{type(error).__name__}: {error}")
        else:
            record.ack_nowait()
