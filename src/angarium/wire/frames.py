"""The frame: the unit of everything two processes say to each other, and its bytes.

A frame is a fixed prefix, a small header (msgpack, or bytes of the operation's own), and a payload
of raw bytes that begins on a multiple of eight, so that Arrow may read a batch in place. The whole
frame is under a CRC-32C. `docs/reference/wire.md` has it byte by byte.

Building a frame copies no payload: the caller's buffers are handed on as they are, and must be left
alone until they are written. `angarium.wire.decoder` is the way back.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import msgspec

from angarium.batch.checksum import PIECE_BYTES, crc32c_of_bytes, extend
from angarium.errors import InvalidArgument, TooLarge
from angarium.wire.wire_limits import FRAME_BYTES_LEAST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.ids import Buffer

T = TypeVar("T")

Header = msgspec.Struct | bytes
"""What a caller gives as a header: a Struct travels as msgpack, bytes as they are."""

PREFIX: Final = Struct("<IIBBHIQ")
"""length · checksum · kind · flags · operation · header length · id, little-endian."""

PREFIX_BYTES: Final = PREFIX.size
UNCHECKED_BYTES: Final = 8
"""The length and the checksum itself are not under the checksum; a wrong length shows anyway."""

FINAL: Final = 0x01
"""Flag of `STREAM_END`: this side no longer listens either."""

_pack_unchecked: Final = Struct("<II").pack
_pack_checked: Final = Struct("<BBHIQ").pack
_PADDING: Final = tuple(bytes(count) for count in range(8))
_NO_BYTES: Final = memoryview(b"")

_pack: Final = msgspec.msgpack.Encoder().encode
_unpackers: Final[dict[type, msgspec.msgpack.Decoder[Any]]] = {}
# msgspec crashes where two threads are the first to decode a type, and every synchronous client
# runs an event loop in a thread of its own.
_making_unpacker: Final = Lock()


class FrameKind(IntEnum):
    """What a frame is for. The numbers travel; they never change their meaning."""

    HELLO = 1
    """The first frame in each direction."""
    GOODBYE = 2
    """The last one: why its sender is about to close."""
    PING = 3
    PONG = 4
    MESSAGE = 5
    """One way: no answer, and dropped rather than queued without bound."""
    REQUEST = 6
    ANSWER = 7
    FAILURE = 8
    """Instead of an answer; on a stream, its end in both directions."""
    CANCEL = 9
    """The request with this id is no longer waited for."""
    STREAM_OPEN = 10
    STREAM_DATA = 11
    STREAM_CREDIT = 12
    STREAM_END = 13
    """No more data from this side."""


class Frame(msgspec.Struct, frozen=True, gc=False):
    """A frame that came in. `payload` is a read-only view; it keeps its whole frame in memory."""

    kind: int
    flags: int
    operation: int
    id: int
    header: bytes
    payload: memoryview = _NO_BYTES

    def read(self, header_type: type[T]) -> T:
        """Return the msgpack header as `header_type`; raises `InvalidArgument`."""
        try:
            return cast(T, _unpacker(header_type).decode(self.header))
        except (ValueError, RecursionError) as error:
            name = header_type.__name__
            raise InvalidArgument(f"the header is not a well-formed {name}: {error}") from None

    def unpack(self, content_type: type[T]) -> T:
        """Return what `packed` made, from the payload: for what may be larger than a header."""
        try:
            return cast(T, _unpacker(content_type).decode(self.payload))
        except (ValueError, RecursionError) as error:
            name = content_type.__name__
            raise InvalidArgument(f"the payload is not a well-formed {name}: {error}") from None

    def read_large(self, content_type: type[T]) -> T:
        """Return what `roomy` made: from the payload if it was too large for a header."""
        return self.read(content_type) if self.header else self.unpack(content_type)

    @property
    def size(self) -> int:
        """The length of the whole frame, as it travelled."""
        return payload_start(len(self.header)) + len(self.payload)


def packed(content: msgspec.Struct) -> bytes:
    """Return a payload for `Frame.unpack`."""
    return _pack(content)


def roomy(content: msgspec.Struct) -> tuple[bytes, tuple[bytes, ...]]:
    """Return header and payload for `Frame.read_large`.

    What every peer takes as a header is one, as older releases expect it; the rest is a payload.
    """
    data = _pack(content)
    return (data, ()) if len(data) <= FRAME_BYTES_LEAST // 2 else (b"", (data,))


def frame_head(
    kind: int,
    operation: int,
    frame_id: int,
    header: Header,
    payload: Sequence[Buffer],
    *,
    flags: int = 0,
    frame_bytes_max: int,
    header_bytes_max: int,
) -> tuple[bytes, int]:
    """Return everything of a frame but its payload, and the length of the whole.

    Raises `TooLarge` if the frame would be larger than its receiver takes.
    """
    packed = header if type(header) is bytes else _pack(header)
    header_bytes = len(packed)
    if header_bytes > header_bytes_max:
        raise TooLarge("header_bytes_max", f"{header_bytes} > {header_bytes_max} bytes")
    body = _pack_checked(kind, flags, operation, header_bytes, frame_id) + packed
    if header_bytes & 7:
        body += _PADDING[-header_bytes & 7]
    length = UNCHECKED_BYTES + len(body)
    checksum = crc32c_of_bytes(body)
    for buffer in payload:
        length += len(buffer)
        if type(buffer) is bytes:
            checksum = extend(checksum, buffer)
        else:
            checksum = _checksum_on(checksum, buffer)
    if length > frame_bytes_max:
        raise TooLarge("frame_bytes_max", f"{length} > {frame_bytes_max} bytes")
    return _pack_unchecked(length, checksum) + body, length


def payload_start(header_bytes: int) -> int:
    """Return where in a frame the payload begins: after the header, on a multiple of eight."""
    return PREFIX_BYTES + (header_bytes + 7 & ~7)


def _checksum_on(checksum: int, buffer: Buffer) -> int:
    # The C implementation takes only `bytes`; a piece stays in the cache while it is copied.
    view = memoryview(buffer)
    for start in range(0, len(view), PIECE_BYTES):
        checksum = extend(checksum, bytes(view[start : start + PIECE_BYTES]))
    return checksum


def _unpacker(header_type: type) -> msgspec.msgpack.Decoder[Any]:
    unpacker = _unpackers.get(header_type)
    if unpacker is None:
        with _making_unpacker:
            unpacker = _unpackers[header_type] = msgspec.msgpack.Decoder(header_type)
    return unpacker
