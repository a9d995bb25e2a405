"""Asking the cluster: any node, or a partition's leader, until somebody answers or time is up.

A request that may be repeated is repeated after every retriable error. One that may not (it would
take effect twice) is repeated only after errors that are definite: nothing had happened then.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from angarium.errors import AngariumError, LimitExceeded, NotLeader, OutcomeUnknown
from angarium.wire import DeadlineExceeded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.client.routes import Routes
    from angarium.client.settings import ClientSettings
    from angarium.ids import Buffer
    from angarium.wire import Connection, Frame, Header
    from angarium.wire.operations import Operation


class Calls:
    """Requests other than publishing."""

    def __init__(self, routes: Routes, settings: ClientSettings) -> None:
        self._routes = routes
        self._settings = settings

    async def ask(
        self,
        operation: Operation,
        header: Header = b"",
        payload: Sequence[Buffer] = (),
        *,
        partition: tuple[str, int] | None = None,
        may_repeat: bool = True,
        wait_s: float = 0.0,
        timeout_s: float | None = None,
    ) -> Frame:
        """Return the answer of the partition's leader, or without a partition of any node.

        `wait_s` is how long the node itself was asked to wait. Raises the last error when the
        time is up.
        """
        loop = asyncio.get_running_loop()
        time_s = self._settings.request_timeout_s if timeout_s is None else timeout_s
        deadline = loop.time() + time_s + wait_s
        failures = 0
        while True:
            connection: Connection | None = None
            left_s = deadline - loop.time()
            try:
                async with asyncio.timeout(left_s):
                    connection = await self._way(partition)
                patience_s = deadline - loop.time()
                if may_repeat:
                    # Losing patience early pays where another attempt follows, and only there.
                    attempt_s = wait_s + self._settings.attempt_timeout_s * 2**failures
                    patience_s = min(patience_s, attempt_s)
                return await connection.request(operation, header, payload, timeout_s=patience_s)
            except TimeoutError:
                raise DeadlineExceeded(f"no node could be reached within {time_s:g} s") from None
            except AngariumError as error:
                if not _is_worth_repeating(error, may_repeat=may_repeat):
                    raise
                self._learn(error, partition, connection)
                pause_s = self._settings.backoff.pause_s(failures, random.random())
                failures += 1
                if loop.time() + pause_s >= deadline:
                    raise
            await asyncio.sleep(pause_s)

    async def _way(self, partition: tuple[str, int] | None) -> Connection:
        if partition is None:
            return await self._routes.any_connection()
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


def _is_worth_repeating(error: AngariumError, *, may_repeat: bool) -> bool:
    # Whoever asks once wants to hear at once which limit it was; publishing is more patient.
    if not error.retriable or isinstance(error, LimitExceeded):
        return False
    return may_repeat or not isinstance(error, OutcomeUnknown)
