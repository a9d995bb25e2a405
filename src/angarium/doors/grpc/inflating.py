"""Compressed messages: inflated here, and never further than a message may be large.

gRPC itself inflates a message as a whole before it looks at its size; a bomb of some kilobytes
would take seconds and a thousand times its size in memory. So it is told to leave them as they are.
What is compressed shows: no protobuf message begins with the byte that gzip begins with, for its
lowest three bits are a kind of field that does not exist.
"""

from __future__ import annotations

import zlib
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import grpc
import grpc.aio

from angarium.errors import InvalidArgument, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

GZIP: Final = b"\x1f\x8b"
"""How gzip begins."""

_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS


def inflated(data: bytes, bytes_max: int) -> bytes:
    """Return a message as it was before it was compressed, if it was.

    Raises `TooLarge` as soon as that is more than `bytes_max`, and `InvalidArgument` for what
    begins like gzip and goes on as something else.
    """
    if not data.startswith(GZIP):
        return data
    inflating = zlib.decompressobj(_GZIP_WINDOW)
    try:
        found = inflating.decompress(data, bytes_max + 1)
    except zlib.error:
        raise InvalidArgument("the message is not the gzip that it begins as") from None
    if len(found) > bytes_max:
        del found  # an error keeps its frames, and may be kept itself
        raise TooLarge("message_bytes_max", f"a message has up to {bytes_max} bytes when inflated")
    if not inflating.eof or inflating.unused_data:
        raise InvalidArgument("the message ends before or behind its gzip")
    return found


class Inflating:
    """A server as the services that come with gRPC see it: what they get is inflated, too."""

    def __init__(self, server: grpc.aio.Server, bytes_max: int) -> None:
        self._server = server
        self._inflated = partial(inflated, bytes_max=bytes_max)

    def add_generic_rpc_handlers(self, _: object) -> None:
        """Leave them: the same come by name."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        """Add handlers of a service."""
        inflating = {
            name: one._replace(request_deserializer=self._before(one.request_deserializer))
            for name, one in handlers.items()
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, inflating),)
        )

    def _before(self, parse: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
        return lambda data: parse(self._inflated(data))
