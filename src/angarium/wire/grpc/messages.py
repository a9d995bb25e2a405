"""Messages of a call: cut out of a body, inflated never further than a message may be large.

A message is a byte that says whether it is compressed, its length, and itself.
"""

from __future__ import annotations

import zlib
from struct import Struct
from typing import TYPE_CHECKING, Final

from angarium.errors import InvalidArgument, TooLarge
from angarium.wire.grpc.codes import GrpcCode

if TYPE_CHECKING:
    from angarium.wire.grpc.metadata import Pairs

PREFIX_BYTES: Final = 5
_prefix: Final = Struct(">BI")
read_prefix: Final = _prefix.unpack_from
_write_prefix: Final = _prefix.pack
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS


class CallRefused(Exception):
    """Ends a call: with which code and sentence, and what goes along."""

    def __init__(self, code: GrpcCode, message: str, pairs: Pairs = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.pairs = pairs


class MessageReader:
    """Cuts messages out of the pieces of one request's body."""

    __slots__ = ("_bytes_max", "_held", "_wanted", "is_gzip")

    def __init__(self, *, bytes_max: int, gzip: bool) -> None:
        self._bytes_max = bytes_max
        self.is_gzip = gzip
        """Messages may be compressed."""
        self._held = bytearray()
        """What came of a message that is not whole, with its prefix. Not a list of pieces, which
        would take many times what they are counted for if they have two bytes each."""
        self._wanted = PREFIX_BYTES

    @property
    def held_bytes(self) -> int:
        """What came of a message that is not whole."""
        return len(self._held)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that are whole with `data`; raises what is wrong with one."""
        if self._held:
            self._held += data
            if len(self._held) < self._wanted:
                return []
            data = bytes(self._held)
            self._held = bytearray()
        found: list[bytes] = []
        position, size = 0, len(data)
        while size - position >= PREFIX_BYTES:
            flag, length = read_prefix(data, position)
            if length > self._bytes_max:
                what = f"a message has up to {self._bytes_max} bytes, and this one {length}"
                raise TooLarge("message_bytes_max", what)
            begin = position + PREFIX_BYTES
            if size - begin < length:
                self._wanted = PREFIX_BYTES + length
                break
            position = begin + length
            message = data[begin:position]
            found.append(message if flag == 0 else self._inflated(flag, message))
        else:
            self._wanted = PREFIX_BYTES
        if position < size:
            self._held += data[position:]
        return found

    def _inflated(self, flag: int, data: bytes) -> bytes:
        if flag != 1 or not self.is_gzip:
            raise CallRefused(GrpcCode.INTERNAL, "a compressed message, and no encoding was named")
        return inflated(data, self._bytes_max)


def is_one_plain(data: bytes, bytes_max: int) -> bool:
    """Tell whether a piece of a body is one whole message that is not compressed."""
    size = len(data) - PREFIX_BYTES
    return 0 <= size <= bytes_max and read_prefix(data) == (0, size)


def inflated(data: bytes, bytes_max: int) -> bytes:
    """Return a message as it was before it was compressed.

    Raises `TooLarge`, and `InvalidArgument` for what is no gzip. No more than `bytes_max` is ever
    inflated: a bomb of some kilobytes would take seconds, and a thousand times its size in memory.
    """
    inflating = zlib.decompressobj(_GZIP_WINDOW)
    try:
        found = inflating.decompress(data, bytes_max + 1)
    except zlib.error:
        raise InvalidArgument("a message is not the gzip that it should be") from None
    if len(found) > bytes_max:
        del found  # an error keeps its frames, and may be kept itself
        raise TooLarge("message_bytes_max", f"a message has up to {bytes_max} bytes when inflated")
    if not inflating.eof or inflating.unused_data:
        raise InvalidArgument("a message ends before or behind its gzip")
    return found


def framed(message: bytes) -> bytes:
    """Return a message as it stands in a body."""
    return _write_prefix(0, len(message)) + message


def framed_gzip(message: bytes) -> bytes:
    """Return a message as it stands in a body, compressed."""
    deflating = zlib.compressobj(wbits=_GZIP_WINDOW)
    data = deflating.compress(message) + deflating.flush()
    return _write_prefix(1, len(data)) + data
