"""One connection to a Serf agent's RPC: commands in, answers out, all within bounds.

The protocol: the client greets, shows the agent's key if it has one, and sends commands; each is a
header and, for most, a body, and so is each answer. All are msgpack maps, one behind the other.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Self

import msgspec

from angarium.discovery.msgpack_stream import Unpacker, UnreadableValue
from angarium.discovery.port import DiscoveryFailed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from angarium.addresses import Address

RPC_VERSION: Final = 1
"""What every release of Serf speaks."""

ANSWER_BYTES_MAX: Final = 2 << 20
"""The longest value taken from an agent: some 3,000 members. Of larger clusters of agents some are
to be chosen by their tags."""

READ_BYTES: Final = 64 << 10

ANSWER_S_MAX: Final = 3.0
"""How long an agent may take to let us in, or to answer."""


class SerfRpc:
    """An open connection. Use it as an async context manager; one command at a time."""

    def __init__(self, agent: Address, key: str) -> None:
        """Talk to `agent`, showing `key` unless it is empty."""
        self._agent = agent
        self._key = key
        self._unpacker = Unpacker(value_bytes_max=ANSWER_BYTES_MAX)
        self._number = 0
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        try:
            async with self._in_time():
                self._reader, self._writer = await asyncio.open_connection(*self._agent)
        except OSError as error:
            raise self._failed(f"cannot be reached: {error.strerror or error}") from error
        try:
            await self.call("handshake", {"Version": RPC_VERSION})
            if self._key:
                await self.call("auth", {"AuthKey": self._key})
        except BaseException:
            self._close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._close()

    async def call(self, command: str, body: Mapping[str, object] | None = None) -> None:
        """Send a command that is answered without a body; raises `DiscoveryFailed`."""
        self._send(command, body)
        async with self._in_time():
            await self._hear_header()

    async def ask(
        self, command: str, body: Mapping[str, object] | None = None
    ) -> dict[object, object]:
        """Send a command and return the body of its answer; raises `DiscoveryFailed`."""
        self._send(command, body)
        async with self._in_time():
            await self._hear_header()
            return await self._hear()

    async def next_event(self) -> dict[object, object]:
        """Return the next event of a stream, however long that takes."""
        await self._hear_header()
        return await self._hear()

    def _send(self, command: str, body: Mapping[str, object] | None) -> None:
        assert self._writer is not None, "not connected"
        self._number += 1
        said = msgspec.msgpack.encode({"Command": command, "Seq": self._number})
        if body is not None:
            said += msgspec.msgpack.encode(body)
        self._writer.write(said)

    async def _hear_header(self) -> None:
        header = await self._hear()
        # Commands are answered in order, and a stream repeats its own number.
        if header.get(b"Seq") != self._number:
            raise self._failed("has answered something that was not asked; is it Serf's RPC port?")
        error = header.get(b"Error")
        if isinstance(error, bytes) and error:
            raise self._failed(_advice(error.decode(errors="replace")))

    async def _hear(self) -> dict[object, object]:
        assert self._reader is not None, "not connected"
        try:
            while (whole := self._unpacker.take()) is None:
                data = await self._reader.read(READ_BYTES)
                if not data:
                    raise self._failed("has closed the connection; is it Serf's RPC port?")
                self._unpacker.feed(data)
        except UnreadableValue as error:
            raise self._failed(f"has sent {error}; is it Serf's RPC port?") from error
        except OSError as error:
            raise self._failed(f"is gone: {error.strerror or error}") from error
        (value,) = whole
        if not isinstance(value, dict):
            raise self._failed("does not speak as an agent does; is it Serf's RPC port?")
        return value

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                yield
        except TimeoutError:
            raise self._failed(f"does not answer within {ANSWER_S_MAX:g} s") from None

    def _failed(self, what: str) -> DiscoveryFailed:
        return DiscoveryFailed(f"the Serf agent at {self._agent} {what}")

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _advice(error: str) -> str:
    if "uthentication required" in error:
        return "asks for its key: set serf_key_file in [discovery]"
    if "nvalid authentication" in error:
        return "does not take the key in serf_key_file of [discovery]"
    return f"refuses: {error[:200]}"
