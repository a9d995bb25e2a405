"""One node as a process: started, watched over, and stopped in good order.

SIGTERM, SIGINT and SIGHUP stop it gracefully: leadership is handed over and what is under way
finishes. A second signal ends it at once, which costs nothing but a longer recovery at the next
start. SIGUSR2 switches debug logging on and off.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import itertools
import logging
import signal
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final, Protocol

import uvloop

from angarium.app.descriptors import allow_descriptors
from angarium.app.memory import give_back_freed_memory, keep_freed_memory
from angarium.app.stopping import done_before
from angarium.errors import AngariumError
from angarium.telemetry.logs import Logs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.app.settings import LogSettings

SWITCH_INTERVAL_S: Final = 0.000_1
"""How long a thread may keep the interpreter while another one waits for it.

The disk's thread returns from fdatasync while the event loop is busy, and cannot say so before it
has the interpreter. With Python's own 5 ms the median of a write and fdatasync beside a busy loop
was 10.7 ms; with this it was 0.32 ms."""

YOUNG_OBJECTS: Final = 20_000
"""How many more objects there may be before the garbage collector looks for rings among them.

What waits in memory for its segment, its answer or its reader is many small objects without rings,
and looking at them again after every 700 new ones, as Python does by itself, is a share of the
work of a busy node; a few megabytes of rings may as well wait a little."""

DESCRIPTORS_MIN: Final = 16_384
"""Enough for every connection that the doors take by themselves, and for the files of a node. With
fewer a warning is logged."""

COLLECT_SECONDS: Final = 1.0
"""How often that is done by the clock as well, however few there are: what was refused within a
second is all that waits."""

STOP_SECONDS_MAX: Final = 20.0
"""A graceful stop that takes longer is given up: the process ends, and recovery does the rest."""

_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_log = logging.getLogger(__name__)


class ServingPart(Protocol):
    """Something of a node that runs: the node itself, a door."""

    async def start(self) -> object:
        """Begin; everything that was started before it is running."""

    async def stop(self) -> None:
        """End in good order; everything that was started before it is still running."""


def serve(parts: Callable[[Signals], Sequence[ServingPart]], log: LogSettings) -> int:
    """Run what `parts` builds until a signal says stop; return the process's exit status."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    keep_freed_memory()
    descriptors = allow_descriptors()
    faulthandler.enable()  # a crash in native code would else leave no word behind
    logs = Logs(level=log.level, stream=sys.stderr, style=log.format)
    logs.start()
    if descriptors < DESCRIPTORS_MIN:
        _log.warning(
            "few open files are allowed (ulimit -n): connections may take them from the log",
            extra={"allowed": descriptors, "enough": DESCRIPTORS_MIN},
        )
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run_until_stopped(parts, Signals(on_debug=logs.toggle_debug)))
    except Exception as error:
        # A mistake of ours comes with its traceback; what the error tree knows needs none.
        trace = None if isinstance(error, AngariumError | OSError) else error
        _log.critical("the node cannot go on", extra={"reason": str(error)}, exc_info=trace)
        raise
    finally:
        logs.stop()
    return 0


async def run_until_stopped(
    parts: Callable[[Signals], Sequence[ServingPart]], signals: Signals
) -> None:
    """Start the parts in order, wait for a signal, stop them in the opposite order.

    Raises what made a part give up, after everything has been stopped.
    """
    signals.listen()
    stop_deadline: asyncio.Timeout | None = None
    try:
        async with asyncio.timeout(None) as stop_deadline, AsyncExitStack() as running:
            for part in parts(signals):
                # Pushed first: a part that failed half-way through its start is stopped, too.
                running.push_async_callback(part.stop)
                if not await done_before(signals.stop, _started(part)):
                    break
            else:
                # All that exists by now lives as long as the process, so the garbage collector
                # need not visit it again; each of its full rounds would be a pause.
                gc.collect()
                gc.freeze()
                give_back_freed_memory()
                gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
                _log.info("serving")
                collecting = asyncio.create_task(_collect())
                await signals.stop.wait()
                collecting.cancel()
            _log.info("stopping", extra={"seconds_max": STOP_SECONDS_MAX})
            stop_deadline.reschedule(asyncio.get_running_loop().time() + STOP_SECONDS_MAX)
    except TimeoutError:
        if stop_deadline is None or not stop_deadline.expired():
            raise
        _log.warning("the stop took too long and was given up")
    _log.info("stopped")
    if signals.failure is not None:
        raise signals.failure


async def _collect() -> None:
    """Look for rings among young objects by the clock, too.

    An error that was told to a client is often one end of a ring, with megabytes of the request in
    it; a few hundred such requests are too few objects for the collector to come by itself.
    """
    for seconds in itertools.count(1):
        await asyncio.sleep(COLLECT_SECONDS)
        gc.collect(1 if seconds % 10 == 0 else 0)


async def _started(part: ServingPart) -> None:
    await part.start()


class Signals:
    """What the process is told from outside."""

    def __init__(self, *, on_debug: Callable[[], str]) -> None:
        self.stop = asyncio.Event()
        """Set once the process is to stop."""
        self.failure: BaseException | None = None
        """What made a part give up, if one did."""
        self._on_debug = on_debug

    def listen(self) -> None:
        """Hear signals on the running loop."""
        loop = asyncio.get_running_loop()
        for number in _STOP_SIGNALS:
            loop.add_signal_handler(number, self._stop)
        loop.add_signal_handler(signal.SIGUSR2, self._switch_debug)

    def fail(self, failure: BaseException) -> None:
        """Stop the process because a part of it cannot go on."""
        self.failure = self.failure or failure
        self.stop.set()

    def _stop(self) -> None:
        loop = asyncio.get_running_loop()
        for number in _STOP_SIGNALS:
            # From here on a signal does what it does to any program: it ends it.
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)
        self.stop.set()

    def _switch_debug(self) -> None:
        _log.warning("log level changed", extra={"level": self._on_debug()})
