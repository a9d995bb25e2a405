"""Having a port back that this node had before.

Ports such as 50051 lie where the system takes ports for outgoing connections from, so while a node
is away its port may be somebody else's for a while. A node that comes back waits for it.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

PATIENCE_S: Final = 30.0
"""How long a node that comes back waits for a port; a new one finds out at once."""

PAUSE_S: Final = 0.25

T = TypeVar("T")

_log = logging.getLogger(__name__)


async def listening(
    listen: Callable[[], Awaitable[T]], *, patience_s: float = PATIENCE_S, pause_s: float = PAUSE_S
) -> T:
    """Return what `listen` returns; while its port is taken, try again for `patience_s`."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience_s
    is_told = False
    while True:
        try:
            return await listen()
        except OSError as error:
            if error.errno != errno.EADDRINUSE or loop.time() >= deadline:
                raise
            if not is_told:
                is_told = True
                _log.warning("%s; trying again for %.0f s", error, patience_s)
        await asyncio.sleep(pause_s)
