"""The thread that waits for the disk, so that the event loop never does.

One sync at a time, in order. While one is under way the loop goes on, and whatever it appends
meanwhile shares the next one: that is the whole of group commit.
"""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from angarium.replica.host import Sync


class Syncer:
    """Writes and fsyncs the WAL in a thread of its own."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        done: Callable[[Sync, BaseException | None], None],
    ) -> None:
        self._loop = loop
        self._done = done
        self._queue: SimpleQueue[Sync | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="angarium-sync", daemon=True)

    def start(self) -> None:
        """Begin to wait for work."""
        self._thread.start()

    def submit(self, sync: Sync) -> None:
        """Write `sync`; the loop hears of it when it is on disk."""
        self._queue.put(sync)

    def stop(self) -> None:
        """Finish what was submitted and end."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (sync := self._queue.get()) is not None:
            failure: BaseException | None = None
            try:
                sync.write()
            except BaseException as error:
                failure = error
            self._loop.call_soon_threadsafe(self._done, sync, failure)
