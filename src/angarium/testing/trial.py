"""Trying out the handlers of an app without a cluster: what became of a record, and what was said.

The handlers run as they would, with their arguments, threads and exceptions. Only what they say
and publish goes nowhere but into the outcome.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from angarium.api import Verb
from angarium.client.groups.group_records import GroupRecord
from angarium.client.groups.lent_partition import LentPartition
from angarium.client.groups.loans import Loan
from angarium.client.headers import RecordHeaders
from angarium.errors import NotFound
from angarium.ids import Offset

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from angarium.client.client import Client
    from angarium.client.groups.lent_partition import Said
    from angarium.client.handlers.app import App
    from angarium.client.handlers.handler import Handler


@dataclass(slots=True)
class Outcome:
    """What became of a record in the hands of one handler."""

    handler: str
    verb: Verb | None = None
    """None if nothing was said: the lease would run out."""
    reason: str = ""
    delay_ms: int | None = None
    published: list[tuple[str, Any]] = field(default_factory=list)
    """Topics and values, in the order in which the handler published them."""

    @property
    def is_acked(self) -> bool:
        """Whether the handler was done with it."""
        return self.verb is Verb.ACK


class Trial:
    """An app without a cluster."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._offset = 0

    async def publish(
        self,
        topic: str,
        value: bytes | str | None,
        *,
        key: bytes | str | None = None,
        headers: Mapping[str, bytes | str | None] | None = None,
        attempt: int = 1,
    ) -> list[Outcome]:
        """Call every handler of a topic with a record, and return what became of it, for each."""
        handlers = [one for one in self._app.handlers if topic in one.topics]
        if not handlers:
            raise NotFound(f"no handler is for {topic!r}")
        offset = self._offset
        self._offset += 1
        outcomes = []
        for handler in handlers:
            partition = _SilentPartition(topic, handler.group)
            loan = Loan(
                partition,
                1,
                ranges=(offset, offset + 1),
                attempt=attempt,
                generation=0,
                renew_at=0.0,
                keep_until=0.0,
            )
            record = GroupRecord(
                topic,
                0,
                Offset(offset),
                _bytes(key),
                _bytes(value),
                RecordHeaders((name, _bytes(one)) for name, one in (headers or {}).items()),
                attempt=attempt,
                loan=loan,
            )
            outcomes.append(await _tried(handler, record, partition))
        return outcomes


@asynccontextmanager
async def trial(app: App) -> AsyncIterator[Trial]:
    """Call the app's `on_start` functions, let its handlers be tried, and call `on_stop`."""
    await app.call_hooks(starting=True)
    try:
        yield Trial(app)
    finally:
        await app.call_hooks(starting=False)


async def _tried(handler: Handler, record: GroupRecord, partition: _SilentPartition) -> Outcome:
    outcome = Outcome(handler.name)
    client = _SilentClient(outcome)
    threads = None if handler.is_async else ThreadPoolExecutor(1)
    try:
        loop = asyncio.get_running_loop()
        await handler.handle(record, cast("Client", client), loop, threads)
    finally:
        if threads is not None:
            threads.shutdown()
    if partition.said is not None:
        outcome.verb = partition.said.verb
        outcome.reason, outcome.delay_ms = partition.said.reason, partition.said.delay_ms
    elif record.loan.acked:
        outcome.verb = Verb.ACK
    return outcome


def _bytes(text: bytes | str | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


class _SilentPartition(LentPartition):
    """Keeps the first thing that is said, and has nobody to send it to."""

    def __init__(self, topic: str, group: str) -> None:
        super().__init__(
            topic, 0, group=group, is_ordered=False, call=lambda: None, now=lambda: 0.0
        )
        self.said: Said | None = None

    def say(self, said: Said) -> None:
        """Keep it."""
        if said.ranges and said.verb is not Verb.EXTEND:
            self.said = said

    async def hear(self, say: Any, loan: Loan | None = None, ranges: Any = ()) -> None:
        """Say it; nobody has to be waited for."""
        del loan, ranges
        say()


class _SilentClient:
    """Publishes into an outcome."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome

    async def publish(self, topic: str, value: Any, **_: Any) -> None:
        """Keep it."""
        self._outcome.published.append((topic, value))

    def publish_nowait(self, topic: str, value: Any, **_: Any) -> None:
        """Keep it."""
        self._outcome.published.append((topic, value))
