"""The bounds of an HTTP/2 connection. Each says what happens when it is reached."""

from __future__ import annotations

from dataclasses import dataclass

from angarium.bounds import CONNECTIONS_MAX, Bounds
from angarium.wire.flooding.bounds import CONTROL_FRAMES_MAX, FRAMES_PER_TURN


@dataclass(frozen=True, slots=True, kw_only=True)
class Http2Limits(Bounds):
    """What a connection takes, keeps and waits for."""

    connections_max: int = CONNECTIONS_MAX
    """Connections open at a time. For one more, the one that has been without a call the longest is
    closed; if none is, the new one is."""

    idle_seconds_max: float = 300.0
    """A connection without a call. Then it is closed; clients open another one by themselves when
    they need it."""

    handshake_seconds_max: float = 10.0
    """From a connection's beginning to the end of its greeting. A slower one is closed."""

    keepalive_interval_s: float = 20.0
    """How often a silent connection is pinged. One that does not answer for as long again is cut,
    so that subscribers who vanished do not stay for ever."""

    streams_max: int = 2_048
    """Streams open on one connection. Clients are told and wait; one more is refused."""

    frame_bytes_max: int = 16 << 10
    """The payload of one frame. A larger one ends the connection."""

    window_bytes: int = 256 << 10
    """What a client may send on one stream ahead of its reader."""

    connection_window_bytes: int = 16 << 20
    """What a client may send on all streams before it hears from us that it has arrived."""

    header_bytes_max: int = 16 << 10
    """Headers of one request, as RFC 9113 counts them. A request with more is refused by the
    listener; one with `header_block_bytes_max` ends the connection."""

    header_block_bytes_max: int = 64 << 10
    """A header block before it is decoded, and what is decoded of it. More ends the connection."""

    continuations_max: int = 8
    """Frames that continue a header block. More end the connection."""

    resets_max: int = 4_096
    """Streams that a client opens and resets, or has us reset by a mistake, within a second: twice
    as many as it may have open. More end the connection."""

    control_frames_max: int = CONTROL_FRAMES_MAX
    """Pings, settings, priorities, window updates, late resets, frames with next to nothing in
    them, streams beyond `streams_max`, and before login all frames, within a second and beyond two
    for each request, answer or piece of data. More end the connection; from a fraction of that on
    it is read slowly (`wire.flooding`)."""

    frames_per_turn: int = FRAMES_PER_TURN
    """Frames of one connection that are handled in one turn of the event loop; the others wait."""

    write_bytes_high: int = 256 << 10
    """Bytes that wait for one client. Above it streams wait, and nothing more is read from it."""

    def __post_init__(self) -> None:
        Bounds.__post_init__(self)
        assert 16_384 <= self.frame_bytes_max < 1 << 24, "RFC 9113, section 6.5.2"
        assert self.window_bytes < 1 << 31 > self.connection_window_bytes
