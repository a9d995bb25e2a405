"""Limits on control frames, which carry no request and no data, door by door.

This is the one declaration: the doors count by it, `tests/floods` makes the frames of each kind
from it, and `make floods` tries every cell of *kind x door x before or after login*.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

CONTROL_FRAMES_MAX: Final = 10_000
"""Counted frames of one connection within `COUNTED_SECONDS`, beyond `FRAMES_WITH_WORK`. One more
ends the connection. While a flood fills the socket, counting goes on: a connection whose frames are
handled slowly reaches the bound as well."""

COUNTED_SECONDS: Final = 1.0
"""How long frames are counted before counting begins anew."""

SATURATED_BYTES: Final = 2 << 10
"""Size of a read from which on more had waited in the socket: a flood goes on, and counting does
not begin anew."""

FRAMES_WITH_WORK: Final = 2
"""Counted frames that come free with each frame that is work: a request, an answer, a piece of
data. Libraries of gRPC send a PING and a WINDOW_UPDATE with nearly every answer that they read."""

CALM_FRAMES_MAX: Final = 256
"""Counted frames of one connection within `COUNTED_SECONDS` that are handled as they come. With
more, what the connection sends is handled in the share of time that all floods have together."""

CALM_UNPROVEN_MAX: Final = 32
"""The same before login. The longest login takes five frames."""

UNPROVEN_FRAMES_MAX: Final = 1_024
"""Counted frames a second of all connections together that have not logged in. With more, each that
sends more than `CALM_LEAST` within `COUNTED_SECONDS` floods: many connections that stay just below
`CALM_UNPROVEN_MAX` are slowed down as one flood."""

CALM_LEAST: Final = 8
"""Counted frames of one connection that are handled as they come even then: a login is no flood."""

UNPROVEN_FRAMES_PER_TURN: Final = 64
"""Counted frames of a connection that has not logged in, by weight, in one turn of the loop."""

FLOODS_PERCENT_MAX: Final = 5
"""Share of the event loop's time that all flooding connections have together. They take turns in
it, and wait for the rest of the time: their sockets are not read."""

SLICE_SECONDS: Final = 0.001
"""Time that flooding connections have at once. Others wait for no longer than that, and for what
`FRAMES_PER_TURN` frames take."""

SLICE_SECONDS_MAX: Final = 0.05
"""What a slice counts for at the most: a process that was stopped blames no connection."""

FRAMES_PER_TURN: Final = 256
"""Frames of one connection that are handled in one turn of the event loop, whatever they are. The
others wait for the next turn, and the socket is not read meanwhile."""

UNPROVEN_READ_BYTES: Final = 4 << 10
"""Bytes taken from the socket at once before login, and of a flooding connection: what was read is
decoded in one go."""


class Door(Enum):
    """Where frames come in."""

    HTTP = "HTTP/1.1"
    WEBSOCKET = "WebSocket"
    GRPC = "gRPC (HTTP/2)"
    WIRE = "wire"


class Counts(Enum):
    """When a frame of some kind is counted."""

    ALWAYS = "always"
    """It is never work, before or after login."""
    SMALL = "empty or tiny"
    """It is work, unless it has next to no payload."""
    UNPROVEN = "before login"
    """After login it is work, which quotas bound."""


DECLARED: Final[dict[Door, dict[str, Counts]]] = {
    Door.HTTP: {"request": Counts.UNPROVEN, "chunk": Counts.SMALL},
    Door.WEBSOCKET: {
        "ping": Counts.ALWAYS,
        "pong": Counts.ALWAYS,
        "fragment": Counts.ALWAYS,
        "text": Counts.UNPROVEN,
    },
    Door.GRPC: {
        "PING": Counts.ALWAYS,
        "SETTINGS": Counts.ALWAYS,
        "PRIORITY": Counts.ALWAYS,
        "RST_STREAM": Counts.ALWAYS,
        "WINDOW_UPDATE": Counts.ALWAYS,
        "GOAWAY": Counts.ALWAYS,
        "unknown": Counts.ALWAYS,
        "CONTINUATION": Counts.SMALL,
        "DATA": Counts.SMALL,
        "HEADERS": Counts.UNPROVEN,
    },
    Door.WIRE: {
        "PING": Counts.ALWAYS,
        "PONG": Counts.ALWAYS,
        "CANCEL": Counts.ALWAYS,
        "ANSWER": Counts.ALWAYS,
        "FAILURE": Counts.ALWAYS,
        "GOODBYE": Counts.ALWAYS,
        "STREAM_CREDIT": Counts.ALWAYS,
        "STREAM_END": Counts.ALWAYS,
        "STREAM_DATA": Counts.SMALL,
        "STREAM_OPEN": Counts.UNPROVEN,
        "REQUEST": Counts.UNPROVEN,
    },
}
"""Kinds of frames by door, and when they are counted."""
