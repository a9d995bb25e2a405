"""The bounds of a connection. Each says what happens when it is reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from angarium.bounds import Bounds
from angarium.wire.flooding.bounds import CONTROL_FRAMES_MAX, FRAMES_PER_TURN

FRAME_BYTES_LEAST: Final = 64 * 1024
"""Every side takes frames and headers of this size, so that a failure can always be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireLimits(Bounds):
    """What one side of a connection takes, keeps and waits for."""

    frame_bytes_max: int = 64 * 1024 * 1024
    """The largest frame taken. A sender refuses to build a larger one (`LimitExceeded`); a peer
    that announces a larger one is told so and disconnected before anything is allocated."""

    header_bytes_max: int = 256 * 1024
    """The largest header inside a frame; treated like `frame_bytes_max`."""

    handshake_bytes_max: int = FRAME_BYTES_LEAST
    """The largest first frame: what a stranger may make us keep. Treated like `frame_bytes_max`."""

    outgoing_bytes_max: int = 16 * 1024 * 1024
    """Bytes waiting to be written. At the bound one-way messages are dropped and counted, requests
    and streams wait, and the accepting side stops reading, so that a peer that does not read its
    answers cannot ask for more. One frame may overdraw it. Before login `handshake_bytes_max` is
    the bound."""

    write_buffer_bytes: int = 256 * 1024
    """Bytes handed to the transport before it asks us to hold back the rest."""

    requests_in_flight_max: int = 4_096
    """Unanswered requests in each direction. One more fails with `LimitExceeded`."""

    streams_max: int = 1_024
    """Open streams on one connection, counting both directions. One more fails with
    `LimitExceeded`."""

    stream_window_bytes: int = 1024 * 1024
    """Bytes a stream's sender may have on the way that the consumer has not taken yet. At the
    bound the sender waits. One frame may overdraw it."""

    ping_interval_s: float = 5.0
    """How often a connection is looked at; one that was silent since the last look is pinged."""

    silent_intervals_max: int = 3
    """Intervals without a byte from the peer, or with our bytes waiting and none taken, after
    which the connection is given up. Counted in looks, not in clock time: a process that was
    paused does not blame its peers."""

    handshake_timeout_s: float = 5.0
    """From the connection's start to the end of the handshake; then it is closed."""

    farewell_timeout_s: float = 2.0
    """How long a closing connection may take to hand over its last bytes; then it is cut."""

    connections_max: int = 1_024
    """Connections a server keeps. For one more, the one that has been here the longest without
    saying who it is goes; if all have, the newcomer is told so in the handshake. Beyond twice as
    many it is cut without a word."""

    control_frames_max: int = CONTROL_FRAMES_MAX
    """Frames of a client within a second that bring no request further, and before login every
    frame. One more ends the connection with `LimitExceeded`; from a fraction of that on it is read
    slowly (`wire.flooding`). Frames of other nodes are not counted."""

    frames_per_turn: int = FRAMES_PER_TURN
    """Frames of one accepted connection that are handled in one turn of the event loop; the others
    wait for the next one."""

    def __post_init__(self) -> None:
        Bounds.__post_init__(self)
        assert FRAME_BYTES_LEAST <= self.frame_bytes_max < 1 << 32
        assert FRAME_BYTES_LEAST <= self.header_bytes_max <= self.frame_bytes_max
        assert 1024 <= self.handshake_bytes_max <= FRAME_BYTES_LEAST
        assert self.stream_window_bytes < 1 << 32
