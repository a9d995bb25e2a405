"""One address on which clients are served: listening, looking at the clock for all, and stopping.

What the servers of HTTP/1.1 and HTTP/2 have in common.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final, Protocol

from angarium.wire.descriptors import own_descriptors
from angarium.wire.listening import listen, port_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from angarium.wire.listening import Context, HandshakeLimits, Listening

SWEEP_SECONDS: Final = 0.5
"""How often deadlines are looked at; a limit in seconds is kept to within this."""


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
        self.descriptors = own_descriptors()
        self._listener: Listening | None = None
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
        tls: Context | None = None,
        limits: HandshakeLimits | None = None,
    ) -> int:
        """Listen; return the port. `OSError` if the address cannot be had."""
        self._listener = await listen(client_of, host, port, tls=tls, limits=limits)
        self._sweeping = asyncio.get_running_loop().create_task(self._sweep())
        return port_of(self._listener)

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
