"""The least a quorum write costs in Python: three processes that frame, append, sync and count.

    python -m benchmarks.bare_quorum follower PORT FILE
    python -m benchmarks.bare_quorum leader PORT FILE FOLLOWER_PORT FOLLOWER_PORT

No Raft, no batches, no checks, no reading back: what is left is what the event loop, the sockets, a
thread for the disk and `fdatasync` take in this minute on this machine. What Angarium costs is
divided by that.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, cast

import uvloop

from angarium.app.parent import die_with
from angarium.app.serving import SWITCH_INTERVAL_S
from angarium.bench.cluster import HOST, free_ports
from angarium.bench.resources import Watched

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from angarium.ids import TopicPartition

HEAD: Final = struct.Struct("<IQ")
"""The length of what follows, and its number."""

START_SECONDS_MAX: Final = 30.0


class Numbered(asyncio.Protocol):
    """A connection on which numbered pieces of data go either way."""

    def __init__(self, take: Callable[[Numbered, int, bytes], None]) -> None:
        self._take = take
        self._data = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        held = self._data
        held += data
        at = 0
        while len(held) - at >= HEAD.size:
            length, number = HEAD.unpack_from(held, at)
            end = at + HEAD.size + length
            if end > len(held):
                break
            self._take(self, number, bytes(held[at + HEAD.size : end]))
            at = end
        del held[:at]

    def send(self, number: int, data: bytes = b"") -> None:
        """Send one piece."""
        self.transport.write(HEAD.pack(len(data), number) + data)


class Log:
    """A file to which everything that came during one sync is written by the next."""

    def __init__(self, path: str, synced: Callable[[int], None]) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_APPEND, 0o600)
        self._synced = synced
        self._thread = ThreadPoolExecutor(1)
        self._waiting: list[bytes] = []
        self._last = 0
        self._is_busy = False

    def append(self, number: int, data: bytes) -> None:
        """Have `data` written; `synced` hears the last number that is on disk."""
        self._waiting.append(data)
        self._last = number
        if not self._is_busy:
            self._is_busy = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        data, self._waiting = b"".join(self._waiting), []
        last = self._last
        written = asyncio.get_running_loop().run_in_executor(self._thread, self._write, data)
        written.add_done_callback(lambda _: self._done(last))

    def _write(self, data: bytes) -> None:
        os.write(self._file, data)
        os.fdatasync(self._file)

    def _done(self, last: int) -> None:
        self._synced(last)
        if self._waiting:
            self._begin()
        else:
            self._is_busy = False


async def follow(port: int, path: str) -> None:
    """Write what the leader sends, and say how far that is on disk."""
    leaders: list[Numbered] = []
    log = Log(path, lambda last: leaders[-1].send(last))  # noqa: PLW0108  (whoever it is then)

    def take(leader: Numbered, number: int, data: bytes) -> None:
        leaders[:] = [leader]
        log.append(number, data)

    await asyncio.get_running_loop().create_server(lambda: Numbered(take), HOST, port)
    await asyncio.Event().wait()


async def lead(port: int, path: str, followers: Sequence[int]) -> None:
    """Answer what two of three have on disk."""
    loop = asyncio.get_running_loop()
    reached = [0] * (1 + len(followers))
    asked: dict[int, tuple[Numbered, int]] = {}
    last = committed = 0

    def confirmed(member: int, number: int) -> None:
        nonlocal committed
        reached[member] = number
        agreed = sorted(reached)[len(reached) // 2]
        while committed < agreed:
            committed += 1
            caller, their_number = asked.pop(committed)
            caller.send(their_number)

    def link(member: int) -> Numbered:
        return Numbered(lambda _, number, __: confirmed(member, number))

    log = Log(path, lambda number: confirmed(0, number))
    links = []
    for member, one in enumerate(followers, 1):
        _, linked = await loop.create_connection(lambda member=member: link(member), HOST, one)  # type: ignore[misc]
        links.append(linked)

    def take(caller: Numbered, number: int, data: bytes) -> None:
        nonlocal last
        last += 1
        asked[last] = caller, number
        for linked in links:
            linked.send(last, data)
        log.append(last, data)

    await loop.create_server(lambda: Numbered(take), HOST, port)
    await asyncio.Event().wait()


class BarePublisher:
    """A caller of the leader, as `angarium.bench` has them."""

    _link: Numbered

    def __init__(self) -> None:
        self._answers: dict[int, asyncio.Future[None]] = {}
        self._last = 0

    @classmethod
    async def connected(cls, port: int) -> BarePublisher:
        """Return one with a connection of its own."""
        publisher = cls()
        loop = asyncio.get_running_loop()
        _, publisher._link = await loop.create_connection(
            lambda: Numbered(publisher._hear), HOST, port
        )
        return publisher

    def _hear(self, _: Numbered, number: int, __: bytes) -> None:
        self._answers.pop(number).set_result(None)

    async def publish(self, _: TopicPartition, values: Sequence[bytes]) -> None:
        """Send a record and wait until two of three have it on disk."""
        self._last += 1
        answer = self._answers[self._last] = asyncio.get_running_loop().create_future()
        self._link.send(self._last, values[0])
        await answer

    async def close(self) -> None:
        """Hang up."""
        self._link.transport.close()


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[tuple[int, list[Watched]]]:
    """Run the three processes; yield the leader's port, and all of them, the leader first."""
    ports = free_ports(3)
    folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240  (before anything is measured)
    processes: list[asyncio.subprocess.Process] = []

    async def start(role: str, *arguments: str) -> None:
        module = (sys.executable, "-m", "benchmarks.bare_quorum")
        processes.append(await asyncio.create_subprocess_exec(*module, role, *arguments))

    try:
        for port in ports[1:]:
            await start("follower", str(port), str(folder / f"{port}.log"))
        for port in ports[1:]:
            await answers(port)
        await start("leader", str(ports[0]), str(folder / "leader.log"), *map(str, ports[1:]))
        await answers(ports[0])
        yield ports[0], [Watched(processes[at].pid) for at in (2, 0, 1)]
    finally:
        for process in processes:
            process.kill()
            await process.wait()


async def answers(port: int) -> None:
    """Wait until somebody listens at `port`."""
    async with asyncio.timeout(START_SECONDS_MAX):
        while True:
            try:
                _, writer = await asyncio.open_connection(HOST, port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            return


def main(role: str, port: str, path: str, *followers: str) -> None:
    """Be one of the processes."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    die_with(os.getppid())
    if role == "leader":
        uvloop.run(lead(int(port), path, [int(one) for one in followers]))
    else:
        uvloop.run(follow(int(port), path))


if __name__ == "__main__":
    main(*sys.argv[1:])
