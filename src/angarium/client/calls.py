"""Asking the cluster: any node, or a partition's leader, until somebody answers or time is up.

A request that may be repeated is repeated after every retriable error. One that may not (it would
take effect twice) is repeated only after errors that are definite: nothing had happened then.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from angarium.errors import (
    AngariumError,
    NotLeader,
    PreconditionFailed,
    QuotaExceeded,
    TooStale,
    retry_after_of,
)
from angarium.retrying import Tries, is_worth_repeating
from angarium.wire import DeadlineExceeded

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from angarium.client.routes import Routes
    from angarium.client.settings import ClientSettings
    from angarium.client.waiting import Waiting
    from angarium.ids import Buffer
    from angarium.wire import Connection, Frame, Header
    from angarium.wire.operations import Operation

STALE_S_MAX: Final = 0.5
"""How long a read is retried that no replica is new enough for. The node asks the leader each time;
after that the caller has to wait, or to accept older records."""


class Calls:
    """Requests other than publishing."""

    def __init__(self, routes: Routes, settings: ClientSettings, waiting: Waiting) -> None:
        self._routes = routes
        self._settings = settings
        self._waiting = waiting

    async def ask(
        self,
        operation: Operation,
        header: Header = b"",
        payload: Sequence[Buffer] = (),
        *,
        partition: tuple[str, int] | None = None,
        is_read: bool = False,
        may_repeat: bool = True,
        is_slow: bool = False,
        wait_s: float = 0.0,
        timeout_s: float | None = None,
        passing: Collection[str] = (),
        level: int = 1,
    ) -> Frame:
        """Return the answer of the partition's leader, or without a partition of any node.

        What `is_read` is asked of the nearest node instead, which forwards what it does not have.
        What `is_slow` may take all the time there is, and is repeated only if its node is lost.
        `wait_s` is how long the node itself was asked to wait. Limits in `passing` are waited out.
        A node of a release that does not know feature level `level` is not asked:
        `PreconditionFailed`. Raises the last error when the time is up.
        """
        loop = asyncio.get_running_loop()
        time_s = self._settings.request_timeout_s if timeout_s is None else timeout_s
        began = loop.time()
        deadline = began + time_s + wait_s
        tries = Tries(self._settings.backoff, deadline=deadline)
        last: AngariumError | None = None
        overdue = 0
        while True:
            connection: Connection | None = None
            left_s = deadline - loop.time()
            try:
                async with asyncio.timeout(left_s):
                    connection = await self._way(partition, is_read=is_read)
                _check_knows(connection, level)
                patience_s = deadline - loop.time()
                if may_repeat and not is_slow:
                    # Losing patience early pays where another attempt follows, and only there.
                    attempt_s = wait_s + self._settings.attempt_timeout_s * 2 ** min(overdue, 6)
                    patience_s = min(patience_s, attempt_s)
                return await connection.request(operation, header, payload, timeout_s=patience_s)
            except TimeoutError:
                if last is not None:
                    # What an attempt that had its time ran into says more than that time is up.
                    raise last from None
                raise DeadlineExceeded(f"no node could be reached within {time_s:g} s") from None
            except AngariumError as error:
                last = error
                overdue += isinstance(error, DeadlineExceeded)
                is_quota = isinstance(error, QuotaExceeded) and self._settings.waits_for_quota
                if not is_quota and not is_worth_repeating(
                    error, may_repeat=may_repeat, passing=passing
                ):
                    raise
                if isinstance(error, TooStale) and loop.time() - began >= STALE_S_MAX:
                    raise
                self._learn(error, partition, connection)
                pause_s = tries.next_pause_s(at_least_s=retry_after_of(error) or 0.0)
                if pause_s is None:
                    raise
                self._waiting.because(error, since=began, now=loop.time())
            await asyncio.sleep(pause_s)

    async def _way(self, partition: tuple[str, int] | None, *, is_read: bool) -> Connection:
        if partition is None:
            return await self._routes.any_connection()
        if is_read:
            return await self._routes.reading_connection(*partition)
        return await self._routes.connection_for(*partition)

    def _learn(
        self,
        error: AngariumError,
        partition: tuple[str, int] | None,
        connection: Connection | None,
    ) -> None:
        if isinstance(error, DeadlineExceeded) and connection is not None:
            self._routes.distrust(connection)
        if partition is not None:
            hint = getattr(error, "leader", None) if isinstance(error, NotLeader) else None
            self._routes.learn_leader(*partition, hint)


def _check_knows(connection: Connection, level: int) -> None:
    """Refuse what a node of an older release would read over, and do the rest without a word."""
    node = connection.peer.hello
    if node.level < level:
        raise PreconditionFailed(
            f"some of these settings need feature level {level}, node {node.node} (angarium "
            f"{node.software}) knows only {node.level}: upgrade every node, then `angarium cluster "
            "raise-level`"
        )
