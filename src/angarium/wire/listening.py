"""One address on which clients are served: listening, looking at the clock for all, and stopping.

What the servers of HTTP/1.1 and HTTP/2 have in common.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Collection

SWEEP_SECONDS: Final = 0.5
"""How often deadlines are looked at; a limit in seconds is kept to within this."""

BACKLOG: Final = 1_024
"""Clients that wait to be accepted. The system lets further ones wait by themselves."""


class Client(Protocol):
    """Somebody who is connected."""

    def leave(self) -> None:
        """Take nothing new, and close when what is under way is done."""

    def abort(self) -> None:
        """Close at once."""


class ListeningServer:
    """Serves on one address, on the running event loop."""

    def __init__(self) -> None:
        self.is_stopping = False
        self._listener: asyncio.Server | None = None
        self._sweeping: asyncio.Task[None] | None = None

    def _clients(self) -> Collection[Client]:
        """Return who is connected; they leave by themselves."""
        raise NotImplementedError

    def _look(self, now: float) -> None:
        """Do what is right at this moment of the loop's clock."""
        raise NotImplementedError

    async def _listen(
        self,
        client_of: Callable[[], asyncio.BaseProtocol],
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        handshake_seconds_max: float | None = None,
    ) -> int:
        """Listen; return the port. `OSError` if the address cannot be had."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            client_of,
            host,
            port,
            backlog=BACKLOG,
            ssl=tls,
            # uvloop refuses a handshake's limit without TLS.
            ssl_handshake_timeout=None if tls is None else handshake_seconds_max,
        )
        self._sweeping = loop.create_task(self._sweep())
        bound: int = self._listener.sockets[0].getsockname()[1]
        return bound

    async def stop(self, grace_s: float) -> None:
        """Close: streams end at once, what else is under way has `grace_s`."""
        self.is_stopping = True
        if self._listener is None:
            return
        self._listener.close()
        for client in list(self._clients()):
            client.leave()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                while self._clients():  # noqa: ASYNC110  (they leave one by one, by themselves)
                    await asyncio.sleep(0.01)
        for client in list(self._clients()):
            client.abort()
        if self._sweeping is not None:
            self._sweeping.cancel()

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._look(loop.time())
