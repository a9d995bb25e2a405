"""What the wire costs, beside a bare asyncio protocol doing the same in the same run.

    python -m benchmarks.micro.wire [--format json] [--seconds 0.4] [--rounds 3]

Both ends of every connection run in this one process, on uvloop, so a figure holds for one core
that does the work of both. Ours and the baseline take turns; the best round counts, because other
work on the machine can only slow a round down. The baseline keeps no ids, deadlines, checksums or
limits: it is what the same bytes cost when nothing is promised about them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, cast

import uvloop

from angarium.ids import Index, RaftGroupId, ReplicaId, Term
from angarium.raft.messages import Entry, EntryKind, Message, MessageKind
from angarium.wire import Connection, Frame, Handlers, Hello, Request, Role, Server, dial
from angarium.wire.decoder import FrameDecoder
from angarium.wire.frames import FrameKind, frame_head
from angarium.wire.raft_codec import Addressed, packed_messages, unpacked_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from angarium.ids import Buffer

SMALL: Final = b"x" * 100
LARGE: Final = b"y" * 65_536
BURST: Final = 64
"""Frames put in one turn of the event loop, as by a node that serves many groups."""

WORKERS: Final = 60
LOCALHOST: Final = "127.0.0.1"
MESSAGE, ECHO = 1, 2

_LENGTH: Final = Struct("<I")


def main() -> None:
    """Measure and print."""
    arguments = _arguments()
    rows = uvloop.run(_measure(arguments.seconds, arguments.rounds))
    rows |= _measure_codec(arguments.rounds)
    if arguments.format == "json":
        print(json.dumps(rows, indent=2))
        return
    print(f"{'':<44}{'ours':>12}{'baseline':>12}{'ratio':>8}")
    for key, row in rows.items():
        print(f"{key:<44}{row['ours']:>12,.1f}{row['baseline']:>12,.1f}{row['ratio']:>8.2f}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--seconds", type=float, default=0.4, help="per measurement and round")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


# --- over sockets -------------------------------------------------------------------------------


async def _measure(seconds: float, rounds: int) -> dict[str, dict[str, float]]:
    rows: dict[str, dict[str, float]] = {}
    small = await _best(seconds, rounds, _our_frames(SMALL), _bare_frames(SMALL))
    rows["small_frames_per_s (100 B, one way)"] = _row(small)
    large = await _best(seconds, rounds, _our_frames(LARGE), _bare_frames(LARGE))
    rows["bulk_mb_per_s (64 KiB, one way)"] = _row([value * len(LARGE) / 1e6 for value in large])
    ours, bare = [], []
    for _ in range(rounds):
        ours.append(await _our_round_trips(seconds))
        bare.append(await _bare_round_trips(seconds))
    for name, position in (("p50", 0), ("p99", 1)):
        best = [min(values[position] for values in side) for side in (ours, bare)]
        rows[f"round_trip_us_{name}"] = _row(best)
    many = await _best(seconds, rounds, _our_workers, _bare_workers)
    rows[f"requests_per_s ({WORKERS} workers, one connection)"] = _row(many)
    for size, name in ((len(SMALL), "100 B"), (len(LARGE), "64 KiB")):
        paths = await _best(seconds, rounds, _received(size, _Filled), _received(size, _Fed))
        rows[f"received_per_s ({name}; get_buffer / data_received)"] = _row(paths)
    return rows


def _row(sides: list[float]) -> dict[str, float]:
    ours, baseline = sides
    return {"ours": round(ours, 1), "baseline": round(baseline, 1), "ratio": ours / baseline}


async def _best(
    seconds: float, rounds: int, *sides: Callable[[float], Coroutine[Any, Any, float]]
) -> list[float]:
    best = [0.0] * len(sides)
    for _ in range(rounds):
        for number, side in enumerate(sides):
            best[number] = max(best[number], await side(seconds))
    return best


async def _joined(handlers: Handlers) -> tuple[Server, Connection]:
    server = await Server.listen(
        host=LOCALHOST,
        port=0,
        greeting=lambda: Hello(role=Role.PEER, node=1),
        welcome=lambda _: handlers,
    )
    client = await dial(host=LOCALHOST, port=server.port, hello=Hello(role=Role.CLIENT))
    return server, client


def _our_frames(body: bytes) -> Callable[[float], Coroutine[Any, Any, float]]:
    async def measure(seconds: float) -> float:
        heard = 0

        def take(_: Connection, __: Frame) -> None:
            nonlocal heard
            heard += 1

        server, client = await _joined(Handlers(messages={MESSAGE: take}))
        payload = (body,)
        burst = BURST if body is SMALL else 4
        started = time.perf_counter()
        while time.perf_counter() - started < seconds:
            for _ in range(burst):
                client.send(MESSAGE, b"", payload)
            await asyncio.sleep(0)
            if client.is_congested:
                await client.room()
        rate = heard / (time.perf_counter() - started)
        await client.close()
        await server.drain()
        return rate

    return measure


async def _our_round_trips(seconds: float) -> tuple[float, float]:
    server, client = await _joined(Handlers(requests={ECHO: _echo}))

    async def ask() -> None:
        await client.request(ECHO, b"", (SMALL,), timeout_s=5)

    times = await _times(ask, seconds)
    await client.close()
    await server.drain()
    return times


async def _our_workers(seconds: float) -> float:
    server, client = await _joined(Handlers(requests={ECHO: _echo}))

    async def ask() -> None:
        await client.request(ECHO, b"", (SMALL,), timeout_s=5)

    rate = await _work(ask, seconds)
    await client.close()
    await server.drain()
    return rate


def _echo(request: Request) -> None:
    request.answer(b"", (request.payload,))


async def _times(
    ask: Callable[[], Coroutine[Any, Any, None]], seconds: float
) -> tuple[float, float]:
    times = []
    started = time.perf_counter()
    while (before := time.perf_counter()) - started < seconds:
        await ask()
        times.append(time.perf_counter() - before)
    times.sort()
    return times[len(times) // 2] * 1e6, times[len(times) * 99 // 100] * 1e6


async def _work(ask: Callable[[], Coroutine[Any, Any, None]], seconds: float) -> float:
    done = 0
    started = time.perf_counter()

    async def worker() -> None:
        nonlocal done
        while time.perf_counter() - started < seconds:
            await ask()
            done += 1

    async with asyncio.TaskGroup() as workers:
        for _ in range(WORKERS):
            workers.create_task(worker())
    return done / (time.perf_counter() - started)


# --- the baseline -------------------------------------------------------------------------------


class _Bare(asyncio.Protocol):
    """Counts length-prefixed frames; echoes bytes if told to; answers futures in order."""

    def __init__(self, *, is_echo: bool = False) -> None:
        self.heard = 0
        self.waiting: deque[asyncio.Future[None]] = deque()
        self.may_write = asyncio.Event()
        self.may_write.set()
        self._is_echo = is_echo
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def pause_writing(self) -> None:
        self.may_write.clear()

    def resume_writing(self) -> None:
        self.may_write.set()

    def data_received(self, data: bytes) -> None:
        if self._is_echo:
            self.transport.write(data)
            return
        if self._rest:
            data = self._rest + data
        at = 0
        while len(data) - at >= 4:
            end = at + 4 + _LENGTH.unpack_from(data, at)[0]
            if end > len(data):
                break
            at = end
            self.heard += 1
            if self.waiting:
                self.waiting.popleft().set_result(None)
        self._rest = data[at:]


async def _bare_pair(*, is_echo: bool) -> tuple[asyncio.Server, _Bare, _Bare]:
    loop = asyncio.get_running_loop()
    accepted: list[_Bare] = []

    def accept() -> _Bare:
        accepted.append(_Bare(is_echo=is_echo))
        return accepted[0]

    server = await loop.create_server(accept, LOCALHOST, 0)
    port = server.sockets[0].getsockname()[1]
    _, client = await loop.create_connection(_Bare, LOCALHOST, port)
    async with asyncio.timeout(5):
        while not accepted:  # noqa: ASYNC110  (the kernel decides when)
            await asyncio.sleep(0.001)
    return server, client, accepted[0]


def _bare_frames(body: bytes) -> Callable[[float], Coroutine[Any, Any, float]]:
    frame = _LENGTH.pack(len(body)) + body

    async def measure(seconds: float) -> float:
        server, client, accepted = await _bare_pair(is_echo=False)
        burst = BURST if body is SMALL else 4
        started = time.perf_counter()
        while time.perf_counter() - started < seconds:
            for _ in range(burst):
                client.transport.write(frame)
            await asyncio.sleep(0)
            await client.may_write.wait()
        rate = accepted.heard / (time.perf_counter() - started)
        client.transport.abort()
        server.close()
        return rate

    return measure


async def _bare_round_trips(seconds: float) -> tuple[float, float]:
    server, client, _ = await _bare_pair(is_echo=True)
    times = await _times(_bare_asker(client), seconds)
    client.transport.abort()
    server.close()
    return times


async def _bare_workers(seconds: float) -> float:
    server, client, _ = await _bare_pair(is_echo=True)
    rate = await _work(_bare_asker(client), seconds)
    client.transport.abort()
    server.close()
    return rate


def _bare_asker(client: _Bare) -> Callable[[], Coroutine[Any, Any, None]]:
    loop = asyncio.get_running_loop()
    frame = _LENGTH.pack(len(SMALL)) + SMALL

    async def ask() -> None:
        answer = loop.create_future()
        client.waiting.append(answer)
        client.transport.write(frame)
        await answer

    return ask


# --- two ways to receive ------------------------------------------------------------------------


class _Filled(asyncio.BufferedProtocol):
    """Lets the event loop write straight into the decoder: what `Channel` does."""

    def __init__(self) -> None:
        self.heard = 0
        self._decoder = FrameDecoder(frame_bytes_max=1 << 26, header_bytes_max=1 << 18)

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self._decoder.writable()

    def buffer_updated(self, nbytes: int) -> None:
        self.heard += len(self._decoder.advance(nbytes))


class _Fed(asyncio.Protocol):
    """Takes `bytes` from the event loop and feeds them to the decoder."""

    def __init__(self) -> None:
        self.heard = 0
        self._decoder = FrameDecoder(frame_bytes_max=1 << 26, header_bytes_max=1 << 18)

    def data_received(self, data: bytes) -> None:
        self.heard += len(self._decoder.feed(data))


def _received(
    size: int, kind: type[_Filled] | type[_Fed]
) -> Callable[[float], Coroutine[Any, Any, float]]:
    body = bytes(size)
    head, _ = frame_head(
        FrameKind.MESSAGE, 0, 0, b"", (body,), frame_bytes_max=1 << 26, header_bytes_max=1 << 18
    )
    burst = (head + body) * (BURST if size < 1000 else 4)

    async def measure(seconds: float) -> float:
        loop = asyncio.get_running_loop()
        accepted: list[_Filled | _Fed] = []

        def accept() -> _Filled | _Fed:
            accepted.append(kind())
            return accepted[0]

        server = await loop.create_server(accept, LOCALHOST, 0)
        port = server.sockets[0].getsockname()[1]
        _, client = await loop.create_connection(_Bare, LOCALHOST, port)
        started = time.perf_counter()
        while time.perf_counter() - started < seconds:
            client.transport.write(burst)
            await asyncio.sleep(0)
            await client.may_write.wait()
        rate = accepted[0].heard / (time.perf_counter() - started)
        client.transport.abort()
        server.close()
        return rate

    return measure


# --- Raft messages ------------------------------------------------------------------------------

_RECORD: Final = Struct("<QBBHIQQQQQQQQ")
_ENTRY_RECORD: Final = Struct("<QQII")
_KINDS: Final = {int(kind): kind for kind in MessageKind}
_ENTRY_KINDS: Final = {int(kind): kind for kind in EntryKind}


def _measure_codec(rounds: int) -> dict[str, dict[str, float]]:
    """Compare with fixed-size records of `struct`, the layout that was not taken."""
    replica, peer = ReplicaId((1 << 48) + 1), ReplicaId((2 << 48) + 2)
    beat = Message(kind=MessageKind.HEARTBEAT, to=peer, sender=replica, term=Term(7))
    append = Message(
        kind=MessageKind.APPEND,
        to=peer,
        sender=replica,
        term=Term(7),
        log_term=Term(7),
        index=Index(1000),
        commit=Index(999),
        entries=(Entry(Term(7), Index(1001), b"d" * 1000),),
    )
    rows = {}
    for name, message in (("heartbeat", beat), ("append", append)):
        messages = [(RaftGroupId(group), message) for group in range(100)]
        header, payload, _ = next(packed_messages(messages, frame_bytes_max=1 << 26))
        view = memoryview(b"".join(payload))
        records, gathered = _struct_packed(messages)
        data = memoryview(b"".join(gathered))
        assert unpacked_messages(header, view) == messages == list(_struct_unpacked(records, data))

        def pack(messages: list[Addressed] = messages) -> object:
            return list(packed_messages(messages, frame_bytes_max=1 << 26))

        def unpack(header: bytes = header, view: memoryview = view) -> object:
            return unpacked_messages(header, view)

        def struct_pack(messages: list[Addressed] = messages) -> object:
            return _struct_packed(messages)

        def struct_unpack(records: bytes = records, data: memoryview = data) -> object:
            return list(_struct_unpacked(records, data))

        for way, ours, theirs in (("pack", pack, struct_pack), ("unpack", unpack, struct_unpack)):
            best = [float("inf")] * 2
            for _ in range(rounds * 3):
                for number, run in enumerate((ours, theirs)):
                    best[number] = min(best[number], _ns_per_message(run))
            rows[f"raft_{name}_{way}_ns (baseline: struct)"] = _row(best)
    return rows


def _ns_per_message(run: Callable[[], object], loops: int = 50) -> float:
    # The processor's time, not the clock's: nothing here waits, and the machine may be shared.
    started = time.process_time()
    for _ in range(loops):
        run()
    return (time.process_time() - started) / loops / 100 * 1e9


def _struct_packed(messages: list[Addressed]) -> tuple[bytes, list[Buffer]]:
    records: list[bytes] = []
    data: list[Buffer] = []
    for group, message in messages:
        records.append(
            _RECORD.pack(
                group,
                message.kind,
                message.reject,
                len(message.context),
                len(message.entries),
                message.to,
                message.sender,
                message.term,
                message.log_term,
                message.index,
                message.commit,
                message.vote,
                message.reject_hint,
            )
        )
        for entry in message.entries:
            data.append(entry.data)
            records.append(_ENTRY_RECORD.pack(entry.term, entry.index, len(entry.data), entry.kind))
    return b"".join(records), data


def _struct_unpacked(records: bytes, data: memoryview) -> Iterator[Addressed]:
    at = data_at = 0
    while at < len(records):
        group, kind, reject, _, count, to, sender, term, log_term, index, commit, vote, hint = (
            _RECORD.unpack_from(records, at)
        )
        at += _RECORD.size
        entries = []
        for _ in range(count):
            entry_term, entry_index, size, entry_kind = _ENTRY_RECORD.unpack_from(records, at)
            at += _ENTRY_RECORD.size
            entries.append(
                Entry(
                    entry_term,
                    entry_index,
                    data[data_at : data_at + size],
                    _ENTRY_KINDS[entry_kind],
                )
            )
            data_at += size
        yield (
            group,
            Message(
                kind=_KINDS[kind],
                to=to,
                sender=sender,
                term=term,
                log_term=log_term,
                index=index,
                entries=tuple(entries),
                commit=commit,
                vote=vote,
                reject=bool(reject),
                reject_hint=hint,
            ),
        )


if __name__ == "__main__":
    main()
