"""What a sync costs beside an event loop, by who waits for the disk.

    python -m benchmarks.micro.syncs [--chunks 40] [--folder DIR]

Four ways to write 400 bytes and have the loop hear that they are synced, in alternation: a thread
in Python, as the node has it; a worker of the kernel (Linux AIO); a thread of glibc (POSIX AIO);
and the loop itself, which stands still meanwhile. *Processor* is this process'; kernel workers
are counted apart, those of the whole machine: compare the ways with each other. Decision 35 says
what became of it.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

import uvloop

from angarium.app.serving import SWITCH_INTERVAL_S

if TYPE_CHECKING:
    from collections.abc import Callable

DATA: Final = b"x" * 400
PER_CHUNK: Final = 50
KERNEL_CALLS: Final = {"x86_64": (206, 208, 209), "aarch64": (0, 4, 2)}
"""io_setup, io_getevents, io_submit."""

Long: Final = ctypes.c_long
LIBC: Final = ctypes.PyDLL(None, use_errno=True)


class Way:
    """Writes, and calls `done` on the loop when that is synced."""

    name = "the loop itself"

    def __init__(
        self, loop: asyncio.AbstractEventLoop, file: int, done: Callable[[], None]
    ) -> None:
        self.loop, self.file, self.done = loop, file, done

    def submit(self) -> None:
        """Begin one."""
        os.pwrite(self.file, DATA, 0)
        os.fdatasync(self.file)
        self.loop.call_soon(self.done)

    def close(self) -> None:
        """End."""


class Thread(Way):
    name = "a thread in Python"

    def __init__(
        self, loop: asyncio.AbstractEventLoop, file: int, done: Callable[[], None]
    ) -> None:
        super().__init__(loop, file, done)
        self._queue: SimpleQueue[bool] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def submit(self) -> None:
        self._queue.put(True)

    def close(self) -> None:
        self._queue.put(False)
        self._thread.join()

    def _run(self) -> None:
        while self._queue.get():
            os.pwrite(self.file, DATA, 0)
            os.fdatasync(self.file)
            self.loop.call_soon_threadsafe(self.done)


class Told(Way):
    """One who says by an eventfd that it is done."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, file: int, done: Callable[[], None]
    ) -> None:
        super().__init__(loop, file, done)
        self.eventfd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        loop.add_reader(self.eventfd, self._hear)

    def _hear(self) -> None:
        os.eventfd_read(self.eventfd)
        self.check()
        self.done()

    def check(self) -> None:
        """Find out what became of the sync."""

    def close(self) -> None:
        self.loop.remove_reader(self.eventfd)


class Kernel(Told):
    name = "a worker of the kernel"

    def __init__(
        self, loop: asyncio.AbstractEventLoop, file: int, done: Callable[[], None]
    ) -> None:
        super().__init__(loop, file, done)
        setup, self._getevents, self._submit = KERNEL_CALLS[os.uname().machine]
        LIBC.syscall.argtypes = (Long,) * 6
        context = ctypes.c_ulong()
        assert LIBC.syscall(setup, 4, ctypes.addressof(context), 0, 0, 0) == 0, "io_setup"
        self._context = context.value
        # struct iocb: opcode FDSYNC and descriptor at 16, flag and eventfd at 56.
        self._request = (ctypes.c_uint32 * 16)()
        self._request[4], self._request[5] = 3, file
        self._request[14], self._request[15] = 1, self.eventfd
        self._pointer = ctypes.c_void_p(ctypes.addressof(self._request))
        self._events = (ctypes.c_int64 * 16)()

    def submit(self) -> None:
        os.pwrite(self.file, DATA, 0)
        at = ctypes.addressof(self._pointer)
        assert LIBC.syscall(self._submit, self._context, 1, at, 0, 0) == 1, "io_submit"

    def check(self) -> None:
        room = ctypes.addressof(self._events)
        assert LIBC.syscall(self._getevents, self._context, 1, 4, room, 0) == 1, "io_getevents"
        assert self._events[2] == 0, "the sync failed"


class Glibc(Told):
    name = "a thread of glibc"

    def __init__(
        self, loop: asyncio.AbstractEventLoop, file: int, done: Callable[[], None]
    ) -> None:
        super().__init__(loop, file, done)
        for call in (LIBC.aio_write, LIBC.aio_error, LIBC.aio_return):
            call.argtypes = (ctypes.c_void_p,)
        LIBC.aio_fsync.argtypes = (ctypes.c_int, ctypes.c_void_p)
        # struct aioinit: one thread, so that the word comes behind the sync; it stays for a day.
        LIBC.aio_init(ctypes.byref((ctypes.c_int * 8)(1, 32, 0, 0, 0, 0, 86_400, 0)))
        self._one = ctypes.c_uint64(1)
        self._sync, self._word = self._request(file), self._request(self.eventfd)
        self._word[2], self._word[3] = ctypes.addressof(self._one), 8

    @staticmethod
    def _request(descriptor: int) -> ctypes.Array[ctypes.c_int64]:
        """Return a struct aiocb of 168 bytes, which asks for no signal."""
        request = (ctypes.c_int64 * 21)()
        request[0] = descriptor
        request[5] = 1 << 32  # SIGEV_NONE
        return request

    def submit(self) -> None:
        os.pwrite(self.file, DATA, 0)
        assert LIBC.aio_fsync(os.O_DSYNC, ctypes.addressof(self._sync)) == 0, "aio_fsync"
        assert LIBC.aio_write(ctypes.addressof(self._word)) == 0, "aio_write"

    def check(self) -> None:
        assert LIBC.aio_error(ctypes.addressof(self._sync)) == 0, "the sync failed"
        LIBC.aio_return(ctypes.addressof(self._sync))


def workers_s() -> float:
    """Return the processor time of the kernel's workers."""
    total = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "comm").read_text().startswith("kworker"):
                total += int((process / "schedstat").read_text().split()[0])
        except OSError:
            continue  # it has ended
    return total / 1e9


async def measured(folder: Path, chunks: int) -> None:
    """Alternate, and print a line for each."""
    loop = asyncio.get_running_loop()
    file = os.open(folder / "log", os.O_CREAT | os.O_RDWR)
    os.pwrite(file, bytes(1 << 20), 0)
    os.fsync(file)
    ended = asyncio.Event()
    ways = [kind(loop, file, ended.set) for kind in (Thread, Kernel, Glibc, Way)]
    took: dict[Way, list[float]] = {way: [] for way in ways}
    used, used_by_workers = dict.fromkeys(ways, 0.0), dict.fromkeys(ways, 0.0)
    for _ in range(chunks):
        for way in ways:
            workers, processor = workers_s(), time.process_time()
            for _ in range(PER_CHUNK):
                began = time.perf_counter()
                ended.clear()
                way.submit()
                await ended.wait()
                took[way].append(time.perf_counter() - began)
            used[way] += time.process_time() - processor
            used_by_workers[way] += workers_s() - workers
    count = chunks * PER_CHUNK
    print(f"{'µs a sync':24}{'p50':>8}{'p90':>8}{'processor':>11}{'workers':>9}")
    for way in ways:
        way.close()
        p50, p90 = statistics.median(took[way]) * 1e6, sorted(took[way])[count * 9 // 10] * 1e6
        own, theirs = used[way] / count * 1e6, used_by_workers[way] / count * 1e6
        print(f"{way.name:24}{p50:8.0f}{p90:8.0f}{own:11.1f}{theirs:9.1f}")
    os.close(file)


def main() -> None:
    """Measure."""

    sys.setswitchinterval(SWITCH_INTERVAL_S)
    parser = argparse.ArgumentParser(description="Measure ways to wait for the disk.")
    parser.add_argument("--chunks", type=int, default=40, help=f"of {PER_CHUNK} syncs, each way")
    parser.add_argument("--folder", type=Path, help="where to write; a temporary folder if absent")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        uvloop.run(measured(Path(folder), options.chunks))


if __name__ == "__main__":
    main()
