"""A member of a group over HTTP: a WebSocket, records in, acknowledgements out."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any, Final

import msgspec
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Message, Ping, Request, TextMessage

from angarium.batch.deadlines import ranges_of
from angarium.bench.drivers.members import Hands
from angarium.bench.drivers.port import Lent
from angarium.errors import OutcomeUnknown
from angarium.ids import TopicPartition
from angarium.security.tls.client import connection_arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

READ_BYTES: Final = 1 << 18
ID: Final = "bench"
"""Of the one subscription that each of these sockets carries."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


class SocketMember:
    """Consumes through the HTTP door of one node."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Not for callers: use `joined`."""
        self._reader = reader
        self._writer = writer
        self._frames = WSConnection(ConnectionType.CLIENT)
        self._text = ""
        self._hands = Hands()
        self._opened = asyncio.Event()
        self._joined: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    async def joined(
        cls, address: str, *, group: str, topics: Sequence[str], credit: int
    ) -> SocketMember:
        """Join the group; raises `OutcomeUnknown` with what the door says."""
        host, _, port = address.rpartition(":")
        tls = connection_arguments(host)
        member = cls(*await asyncio.open_connection(host, int(port), limit=1 << 24, **tls))
        opening = Request(host=address, target="/v1/socket", subprotocols=["angarium.v1"])
        member._writer.write(member._frames.send(opening))
        member._reading = asyncio.create_task(member._read())
        wish = {"type": "consume", "id": ID, "group": group, "topics": list(topics)}
        await member._say({**wish, "credit": credit, "encoding": "base64"})
        await member._joined
        return member

    async def receive(self) -> Lent | None:
        """Return what was handed over next."""
        return await self._hands.take()

    async def acknowledge(self, lent: Lent) -> None:
        """Say that these are done with."""
        topic, number = lent.partition
        self._hands.say((topic, number, lent.offsets[0]), lent)
        settled = {"topic": topic, "partition": number, "ranges": ranges_of(lent.offsets)}
        await self._say({"type": "settle", "id": ID, **settled})

    async def flush(self) -> None:
        """Wait until everything that was said has been answered."""
        await self._hands.flush()

    async def vanish(self) -> int:
        """Hang up."""
        await self._hang_up()
        return self._hands.in_hand

    async def close(self) -> None:
        """Leave in good order."""
        if self._reading is not None and not self._reading.done():
            await self._say({"type": "unsubscribe", "id": ID})
            await asyncio.wait([self._reading], timeout=0.5)
        await self._hang_up()

    async def _hang_up(self) -> None:
        self._writer.transport.abort()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def _say(self, message: dict[str, Any]) -> None:
        await self._opened.wait()
        self._writer.write(self._frames.send(TextMessage(data=_encode(message).decode())))
        await self._writer.drain()

    async def _read(self) -> None:
        try:
            while data := await self._reader.read(READ_BYTES):
                self._frames.receive_data(data)
                for event in self._frames.events():
                    await self._take(event)
        except (OSError, EOFError):
            pass
        finally:
            self._hands.end()
            if not self._joined.done():
                self._joined.set_exception(OutcomeUnknown("the socket was closed"))
            self._opened.set()

    async def _take(self, event: object) -> None:
        match event:
            case AcceptConnection():
                self._opened.set()
            case Ping():
                self._writer.write(self._frames.send(event.response()))
            case TextMessage():
                self._text += event.data
                if event.message_finished:
                    text, self._text = self._text, ""
                    await self._hear(_decode(text))
            case CloseConnection() | Message():
                self._reader.feed_eof()

    async def _hear(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "subscribed":
                self._joined.set_result(None)
            case "records":
                records = message["records"]
                values = [base64.b64decode(one["value_base64"]) for one in records]
                offsets = [one["offset"] for one in records]
                partition = TopicPartition(message["topic"], message["partition"])
                await self._hands.hand(Lent(partition, values, offsets))
            case "settled":
                topic, partition = message["topic"], message["partition"]
                self._hands.hear((topic, partition, message["ranges"][0]))
            case "error" if not self._joined.done():
                self._joined.set_exception(OutcomeUnknown(str(message)))
            case _:
                pass
