"""One handler: a function, the topics it is for, and what becomes of a record in its hands."""

from __future__ import annotations

import concurrent.futures.thread
import inspect
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from angarium.client.groups.group import GroupChoices
from angarium.client.handlers.binding import answers_nothing, outgoing_value, sources_of
from angarium.errors import InvalidArgument

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from concurrent.futures import ThreadPoolExecutor
    from datetime import timedelta
    from types import TracebackType

    from angarium.api import GroupConfig
    from angarium.client.client import Client
    from angarium.client.groups.group import KindLike
    from angarium.client.groups.group_records import GroupRecord
    from angarium.client.handlers.binding import Source
    from angarium.client.reading.starts import StartLike

_OURS: Final = frozenset((__file__, concurrent.futures.thread.__file__))

_log = logging.getLogger(__name__)


class Retry(Exception):
    """Raised by a handler: try this record again, `delay` seconds later; it counts."""

    def __init__(self, reason: str = "", *, delay: float | timedelta | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.delay = delay


class Reject(Exception):
    """Raised by a handler: this record can never be handled; it becomes a dead letter at once."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


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
        if self.publish_to is not None and answers_nothing(self.function):
            raise InvalidArgument(
                f"{self.name}: it returns None, so there is nothing to publish to"
                f" {self.publish_to!r}"
            )
        # What makes no sense about the group is said here, and not when the cluster is reached.
        self.choices.request(self.topics, ack="manual", credit=self.credit, member="")

    @property
    def choices(self) -> GroupChoices:
        """What was chosen about the group."""
        return GroupChoices(self.group, kind=self.kind, start=self.start, config=self.config)

    @property
    def name(self) -> str:
        """What the function is called."""
        return getattr(self.function, "__qualname__", repr(self.function))

    @property
    def is_async(self) -> bool:
        """Whether it runs on the event loop; otherwise each call has a thread of its own."""
        call = getattr(self.function, "__call__", None)  # noqa: B004 (of an object like a function)
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(call)

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
        except Exception as error:
            self._failed(record, error, trace=None)
            return
        try:
            if threads is None:
                answer = await self.function(*arguments)
            else:
                answer = await loop.run_in_executor(threads, self.function, *arguments)
                if inspect.isawaitable(answer):  # a coroutine function behind a plain one
                    answer = await answer
            if self.publish_to is not None and answer is not None:
                await client.publish(self.publish_to, outgoing_value(answer), key=record.key)
        except Retry as order:
            record.nack_nowait(order.delay, order.reason or "to be tried again")
        except Reject as order:
            record.reject_nowait(order.reason or "rejected")
        except Exception as error:
            self._failed(record, error, trace=_from_the_function_on(error.__traceback__))
        else:
            record.ack_nowait()

    def _failed(
        self, record: GroupRecord, error: Exception, *, trace: TracebackType | None
    ) -> None:
        _log.warning(
            "%s failed on %s/%d@%s (attempt %d): %s: %s",
            self.name,
            record.topic,
            record.partition,
            record.offset,
            record.attempt,
            type(error).__name__,
            error,
            exc_info=None if trace is None else (type(error), error, trace),
        )
        record.nack_nowait(reason=f"{type(error).__name__}: {error}")


def _from_the_function_on(trace: TracebackType | None) -> TracebackType | None:
    """Return what is the user's part of a traceback: ours, and that of threads, is in the way."""
    while trace is not None and trace.tb_frame.f_code.co_filename in _OURS:
        trace = trace.tb_next
    return trace
