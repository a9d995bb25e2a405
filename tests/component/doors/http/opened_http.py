"""An open HTTP door with a broker behind it and a plain client in front."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.unit.doors.grpc.memory_broker import MemoryBroker

from angarium.api import TopicConfig
from angarium.doors.http import HttpDoor, HttpLimits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["LOCALHOST", "Answered", "Opened", "opened"]

LOCALHOST = "127.0.0.1"


@dataclass
class Answered:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Wire:
    """One connection, spoken to byte by byte."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def hear(self, *, has_body: bool = True) -> Answered:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(head[0].split(" ")[1])
        headers = {}
        for line in head[1:-2]:
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
        length = int(headers.get("content-length", "0")) if has_body else 0
        return Answered(status, headers, await self.reader.readexactly(length))

    async def is_closed(self) -> bool:
        return await self.reader.read() == b""


@dataclass
class Opened:
    broker: MemoryBroker
    door: HttpDoor
    port: int
    wires: list[Wire] = field(default_factory=list)

    async def connect(self) -> Wire:
        wire = Wire(*await asyncio.open_connection(LOCALHOST, self.port, limit=1 << 24))
        self.wires.append(wire)
        return wire

    async def ask(
        self,
        method: str,
        target: str,
        body: object = None,
        *,
        headers: dict[str, str] | None = None,
        kind: str = "application/json",
        wire: Wire | None = None,
    ) -> Answered:
        """Send one request, with JSON or bytes for a body, and return the answer."""
        wire = wire or await self.connect()
        await wire.say(request_bytes(method, target, body, headers=headers, kind=kind))
        return await wire.hear(has_body=method != "HEAD")


def request_bytes(
    method: str,
    target: str,
    body: object = None,
    *,
    headers: dict[str, str] | None = None,
    kind: str = "application/json",
) -> bytes:
    data = b""
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if body is not None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines += [f"Content-Type: {kind}", f"Content-Length: {len(data)}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + data


@asynccontextmanager
async def opened(
    limits: HttpLimits | None = None, *, topics: dict[str, int] | None = None, **more: Any
) -> AsyncIterator[Opened]:
    """Open a door; `topics` by name and number of partitions, "orders" with four if not given."""
    broker = MemoryBroker()
    for name, partitions in ({"orders": 4} if topics is None else topics).items():
        await broker.create_topic(name, partitions=partitions, config=TopicConfig())
    door = HttpDoor(broker, host=LOCALHOST, port=0, limits=limits, **more)
    found = Opened(broker, door, await door.start())
    try:
        yield found
    finally:
        for wire in found.wires:
            wire.writer.close()
        await door.stop(grace_s=0)
