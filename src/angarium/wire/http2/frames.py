"""Frames of HTTP/2: their kinds, flags, settings and error codes, and how they are written."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What every client says first (RFC 9113, section 3.4)."""

HEAD_BYTES: Final = 9
"""What stands before every payload."""

STREAM_ID_MAX: Final = (1 << 31) - 1
WINDOW_MAX: Final = (1 << 31) - 1
WINDOW_INITIAL: Final = 65_535
"""Both windows before anybody has said anything about them."""
FRAME_BYTES_INITIAL: Final = 16_384
"""The largest payload before the other side has said that it takes more."""

# Kinds, plain numbers: they are compared for every frame.
DATA: Final = 0
HEADERS: Final = 1
PRIORITY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9

# Flags. What a bit means depends on the kind.
ACK: Final = 0x1
END_STREAM: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
HAS_PRIORITY: Final = 0x20


class Setting(IntEnum):
    """What the two sides tell each other at the beginning."""

    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6


class ErrorCode(IntEnum):
    """Why a stream was reset, or a connection ended (RFC 9113, section 7)."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


class ConnectionFailed(Exception):
    """What the other side sent ends the connection."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


def protocol_error(reason: str) -> ConnectionFailed:
    """Return what ends a connection whose client does what nobody may do."""
    return ConnectionFailed(ErrorCode.PROTOCOL_ERROR, reason)


class StreamFailed(Exception):
    """What the other side sent ends one stream."""

    def __init__(self, stream_id: int, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.stream_id = stream_id
        self.code = code


_HEAD: Final = Struct(">IBI")
read_head: Final = _HEAD.unpack_from
"""Length and kind in one number, flags, and the stream with a reserved bit before it."""
read_long: Final = Struct(">I").unpack_from
long_bytes: Final = Struct(">I").pack
_write_head: Final = _HEAD.pack
head_before_stream: Final = Struct(">IB").pack
"""The first five bytes of a frame: length and kind in one number, and flags."""
_setting: Final = Struct(">HI")
read_settings: Final = _setting.iter_unpack


def frame_head(kind: int, flags: int, stream_id: int, length: int) -> bytes:
    """Return what stands before a payload of `length` bytes."""
    return _write_head(length << 8 | kind, flags, stream_id)


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    """Return a whole frame."""
    return _write_head(len(payload) << 8 | kind, flags, stream_id) + payload


def settings_frame(settings: dict[Setting, int]) -> bytes:
    """Return the frame that tells the other side `settings`."""
    return frame(SETTINGS, 0, 0, b"".join(_setting.pack(*one) for one in settings.items()))


def window_update(stream_id: int, increment: int) -> bytes:
    """Return the frame that lets the other side send `increment` bytes more."""
    return frame(WINDOW_UPDATE, 0, stream_id, long_bytes(increment))


def reset_frame(stream_id: int, code: ErrorCode) -> bytes:
    """Return the frame that ends a stream at once."""
    return frame(RST_STREAM, 0, stream_id, long_bytes(code))


def goaway_frame(last_stream_id: int, code: ErrorCode, reason: str = "") -> bytes:
    """Return the frame that says which stream is the last that was, or will be, looked at."""
    payload = long_bytes(last_stream_id) + long_bytes(code) + reason.encode()
    return frame(GOAWAY, 0, 0, payload)


def unpadded(payload: bytes) -> bytes:
    """Return a payload without its padding."""
    if not payload or payload[0] >= len(payload):
        raise ConnectionFailed(ErrorCode.PROTOCOL_ERROR, "more padding than payload")
    return payload[1 : len(payload) - payload[0]]
