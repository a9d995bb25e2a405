"""What one publish costs each door's loop, without a socket, beside an empty handler.

    python -m benchmarks.micro.door_calls [--rounds 9] [--turns 30] [--turn 20] [--only rest]
    python -m benchmarks.micro.door_calls --count

A node runs in this process, over a folder in memory. 60 connections of each door are driven as a
loop drives them: bytes in, bytes out, `--turn` of them at a time. What is shown is processor time
of the thread that the loop runs in, per call: the least of all rounds, which other load moves
little. An empty handler is the door's server with one that answers at once. With `--count` it is
how many bytecodes and functions of ours one call takes, which load moves by up to a tenth, so
that it tells on any machine whether a change is one; what the interpreter does in C is not in it.
Calls of gRPC look like those of gRPC's library for Go: a window update, a ping, headers with a
deadline of their own, and the message.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import time
from functools import partial
from pathlib import Path
from struct import pack
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import uvloop
from benchmarks.http2_load import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PING,
    PREFACE,
    SETTINGS,
    WINDOW_UPDATE,
    frame,
    headers,
    message,
)
from benchmarks.http_door import request_of

from angarium.api import TopicConfig
from angarium.doors.grpc import GrpcDoor
from angarium.doors.http import HttpDoor, HttpLimits
from angarium.doors.http.problems import problem
from angarium.proto.v1 import broker_pb2 as pb
from angarium.service.patience import patient
from angarium.testing.broker import MEMORY_FOLDER, in_process_broker
from angarium.wire.grpc import CallLimits, CallRefused, GrpcCode, GrpcServer, unary
from angarium.wire.http import HttpServer, Response
from angarium.wire.http.connection import Connection
from angarium.wire.http2.server import Http2Socket
from angarium_compat.hermes.door import HermesDoor
from angarium_compat.hermes.schema import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from angarium.wire.grpc import Call

CONNECTIONS: Final = 60
TOPIC: Final = "bench"
VALUE: Final = "x" * 100
MODES: Final = ("consistent", "eventual", "performance")
OURS: Final = "src/angarium"
MUTATION: Final = 'mutation($p: String!) { publish(topic: "bench", payload: $p) { success } }'


class FakeTransport(asyncio.Transport):
    """Counts what is written to it; whoever waits is woken when all have been answered."""

    def __init__(self, answered: Callable[[bytes], None]) -> None:
        super().__init__()
        self.write = answered  # type: ignore[method-assign,assignment]

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        del high, low

    def get_extra_info(self, name: str, default: object = None) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else default

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def abort(self) -> None: ...


class Http:
    """One connection of HTTP/1.1."""

    def __init__(self, server: HttpServer, body: bytes, answered: Callable[[bytes], None]) -> None:
        self.protocol = Connection(server)
        self.protocol.connection_made(FakeTransport(answered))
        self._body = body

    def prepare(self, calls: int) -> None:
        """Nothing: all requests are alike."""

    def call(self) -> None:
        """Send a request."""
        self.protocol.data_received(self._body)


class Grpc:
    """One connection of gRPC."""

    def __init__(
        self, server: GrpcServer, path: str, body: bytes, answered: Callable[[bytes], None]
    ) -> None:
        self.protocol = Http2Socket(server._server)
        self._answered = answered
        self.protocol.connection_made(FakeTransport(self._written))
        self._head, self._data = headers(path), message(body)
        self._stream = -1
        self._ready: list[bytes] = []
        self.protocol.data_received(PREFACE + frame(SETTINGS, 0, 0))

    def prepare(self, calls: int) -> None:
        """Make calls ready, so that making them is not measured."""
        self._ready = [self._next() for _ in range(calls)][::-1]

    def _written(self, data: bytes) -> None:
        if self._stream > 0 and len(data) > 40:  # else a greeting, or an answer to a ping
            self._answered(data)

    def call(self) -> None:
        """Make a call."""
        self.protocol.data_received(self._ready.pop())

    def _next(self) -> bytes:
        self._stream += 2
        timeout = b"%du" % (2_000_000 - self._stream)
        return (
            frame(WINDOW_UPDATE, 0, 0, pack(">I", 20))
            + frame(PING, 0, 0, bytes(8))
            + frame(
                HEADERS,
                END_HEADERS,
                self._stream,
                self._head + b"\x00\x0cgrpc-timeout" + bytes((len(timeout),)) + timeout,
            )
            + frame(DATA, END_STREAM, self._stream, self._data)
        )


class Tally:
    """Counts bytecodes and functions of ours, in this thread."""

    def __init__(self) -> None:
        self.bytecodes = self.functions = 0

    def __enter__(self) -> Tally:
        sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, event: str, _: object) -> Any:
        if OURS not in frame.f_code.co_filename:
            return None
        self.functions += event == "call"
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._went_on

    def _went_on(self, _: FrameType, event: str, __: object) -> Any:
        self.bytecodes += event == "opcode"
        return self._went_on


class Crowd:
    """The connections of one row."""

    def __init__(self, make: Callable[[Callable[[bytes], None]], Http | Grpc]) -> None:
        self._waiting = 0
        self._done = asyncio.Event()
        self._seen = b""
        self._all = [make(self._answered) for _ in range(CONNECTIONS)]

    def _answered(self, data: bytes) -> None:
        self._seen = data
        self._waiting -= 1
        if not self._waiting:
            self._done.set()

    def leave(self) -> None:
        """Hang up."""
        for one in self._all:
            one.protocol.connection_lost(None)

    async def us_per_call(self, *, turns: int, turn: int) -> float:
        """Have everybody call `turns` times, so many in each turn of the loop."""
        for one in self._all:
            one.prepare(turns)
        gc.collect()
        gc.disable()
        began = time.thread_time()
        for _ in range(turns):
            self._waiting = CONNECTIONS
            self._done.clear()
            for at in range(0, CONNECTIONS, turn):
                for one in self._all[at : at + turn]:
                    one.call()
                await asyncio.sleep(0)
            async with asyncio.timeout(10):
                await self._done.wait()
        spent = time.thread_time() - began
        gc.enable()
        good = (b"HTTP/1.1 200", b"\x00\x00")
        assert self._seen.startswith(good), self._seen
        assert b'"errors"' not in self._seen, self._seen
        return spent / turns / CONNECTIONS * 1e6


async def count(crowds: dict[str, Crowd], options: argparse.Namespace) -> None:
    """Print what one call of each takes, whatever else goes on here."""
    for name, crowd in crowds.items():
        if options.only in name:
            await crowd.us_per_call(turns=3, turn=options.turn)
            counts = []
            for _ in range(4):  # of which the least: the node's clocks go on meanwhile
                with Tally() as tally:
                    await crowd.us_per_call(turns=2, turn=options.turn)
                counts.append((tally.bytecodes, tally.functions))
            calls = 2 * CONNECTIONS
            bytecodes, functions = min(counts)
            each = f"{bytecodes / calls:>8.0f} bytecodes{functions / calls:>8.1f} functions"
            print(f"{name:<32}{each}", flush=True)


def empty_http() -> HttpServer:
    """Return the HTTP door's server with nothing behind it."""
    answer = Response(200, b"{}")
    server = HttpServer(lambda _: answer, problem, HttpLimits())
    server._note_date()
    return server


def empty_grpc() -> GrpcServer:
    """Return the gRPC doors' server with one method that does nothing."""

    async def refusal_of(_: Exception) -> CallRefused:
        return CallRefused(GrpcCode.INTERNAL, "nothing is to go wrong here")

    def handler(_: bytes, call: Call) -> None:
        call.finish(b"")

    return GrpcServer({"/empty": unary(handler)}, CallLimits(), refusal_of=refusal_of)


def http_body(query: str) -> bytes:
    """Return a publish over REST."""
    return request_of(f"/v1/topics/{TOPIC}/records{query}", {"value": VALUE})


async def run(options: argparse.Namespace) -> None:
    """Measure, and print the table."""
    folder = TemporaryDirectory(prefix="angarium-", dir=MEMORY_FOLDER)
    with folder as place:
        async with in_process_broker(Path(place)) as broker:
            access = broker.accesses[0]
            assert access is not None
            assert access.anonymous is not None
            await access.service.create_topic(TOPIC, partitions=1, config=TopicConfig())
            behind = access.broker_for(access.anonymous)
            waiting: Any = patient(behind)
            http = HttpDoor(waiting, groups=waiting, host="127.0.0.1", port=0)
            grpc = GrpcDoor(waiting, host="127.0.0.1", port=0)
            hermes = HermesDoor(waiting, waiting, host="127.0.0.1", port=0)
            empty = empty_grpc()
            for door in (http, grpc, hermes):
                await door.start()
            await empty.start(host="127.0.0.1", port=0)
            crowds = {name: Crowd(make) for name, make in rows(http, grpc, hermes, empty).items()}
            found: dict[str, list[float]] = {name: [] for name in crowds}
            if options.count:
                await count(crowds, options)
            for turn in range(0 if options.count else options.rounds + 1):
                for name, crowd in crowds.items():
                    if options.only in name:
                        us = await crowd.us_per_call(
                            turns=options.turns if turn else 3, turn=options.turn
                        )
                        if turn:
                            found[name].append(us)
            for crowd in crowds.values():
                crowd.leave()
            for door in (http, grpc, hermes):
                await door.stop(grace_s=0)
            await empty.stop(0)
    for name, took in found.items():
        if took:
            print(f"{name:<32}{min(took):>8.2f} µs")


def rows(
    http: HttpDoor, grpc: GrpcDoor, hermes: HermesDoor, empty: GrpcServer
) -> dict[str, Callable[[Callable[[bytes], None]], Http | Grpc]]:
    """Return what is measured."""
    made: dict[str, Callable[[Callable[[bytes], None]], Http | Grpc]] = {}
    made["http, empty handler"] = partial(Http, empty_http(), http_body("?partition=0"))
    for mode in MODES:
        body = http_body(f"?mode={mode}")
        made[f"rest, {mode}"] = partial(Http, http.server, body)
    for mode in MODES:
        query = MUTATION
        if mode != "consistent":
            query = query.replace("payload: $p", f"payload: $p, mode: {mode.upper()}")
        said = {"query": query, "variables": {"p": VALUE}}
        made[f"graphql, {mode}"] = partial(Http, http.server, request_of("/graphql", said))
    record = pb.NewRecord(value=VALUE.encode())
    made["grpc, empty handler"] = partial(Grpc, empty, "/empty", b"x" * 110)
    for mode in MODES:
        request = pb.PublishRequest(
            topic=TOPIC, record=record, mode=f"DELIVERY_MODE_{mode.upper()}"
        )
        body = request.SerializeToString()
        made[f"grpc, {mode}"] = partial(
            Grpc,
            grpc._server,
            "/angarium.v1.Broker/Publish",
            body,
        )
    for number, mode in enumerate(MODES):
        request = SCHEMA["PublishRequest"](topic=TOPIC, payload=VALUE.encode(), mode=number)
        body = request.SerializeToString()
        made[f"hermes grpc, {mode}"] = partial(
            Grpc,
            hermes._listener._server,
            "/broker.BrokerService/Publish",
            body,
        )
    return made


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--turns", type=int, default=30, help="calls of each connection, a round")
    parser.add_argument("--turn", type=int, default=20, help="calls in one turn of the loop")
    parser.add_argument("--only", default="", help="rows whose names have this in them")
    parser.add_argument("--count", action="store_true", help="bytecodes instead of time")
    uvloop.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
