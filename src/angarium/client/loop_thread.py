"""An event loop in a thread of its own, for programs that have none."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, TypeVar

from angarium.wire import Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for other threads. uvloop carries it where that is installed."""

    def __init__(self, name: str) -> None:
        self._loop = _new_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` there and return what it returns; an interrupted caller cancels it."""
        future = self.submit(work)
        try:
            return future.result()
        except CancelledError:
            raise RuntimeError("the client was closed while this call was under way") from None
        except BaseException:
            future.cancel()
            raise

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run `work` there, and return what will hold its result; cancelling that cancels it."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            work.close()
            raise Unreachable("the client is closed") from None

    def soon(self, action: Callable[[], None]) -> None:
        """Have `action` called there, without waiting for it."""
        self._loop.call_soon_threadsafe(action)

    def stop(self) -> None:
        """End the loop and wait for its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            if left:
                self._loop.run_until_complete(asyncio.wait(left))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop  # noqa: PLC0415 (not there on every platform)
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
