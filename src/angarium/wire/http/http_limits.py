"""The bounds of the HTTP door. Each says what happens when it is reached."""

from __future__ import annotations

from dataclasses import dataclass

from angarium.bounds import CONNECTIONS_MAX, REQUEST_BYTES_MAX, Bounds
from angarium.wire.flooding.bounds import CONTROL_FRAMES_MAX, FRAMES_PER_TURN


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits(Bounds):
    """What the door takes, keeps and waits for."""

    connections_max: int = CONNECTIONS_MAX
    """Connections open at a time, streams included. For one more, the one that has been idle the
    longest is closed; if none is, it is answered 503."""

    requests_max: int = 8_192
    """Requests under way at a time, without streams. One more is answered 429."""

    streams_max: int = 2_048
    """SSE streams and WebSockets at a time. One more is answered 429."""

    guests_max: int = 256
    """WebSockets whose client has still to say who it is, where it has to; they are no streams yet.
    For one more, the one that has waited the longest is closed with 1013: whoever opens sockets and
    says nothing shuts nobody out."""

    unproven_bytes_max: int = 64 << 20
    """Bytes of bodies, over all connections, of requests whose proof takes work and was not looked
    at yet. One more is answered 429, and the connection closed. A body without any proof is
    answered 401 before it is read, where one is needed."""

    head_bytes_max: int = 16 << 10
    """A request's line and headers. A longer head is answered 431, and the connection closed."""

    headers_max: int = 100
    """Headers of a request. More are treated alike."""

    body_bytes_max: int = REQUEST_BYTES_MAX
    """A request's body: a batch of a topic's default limit and its envelope. A longer one is
    answered 413 as soon as that is known, and the connection closed. What chunks have around it
    may take the same again, and so may what is thrown away behind the last answer."""

    head_seconds_max: float = 10.0
    """From a request's first byte to the end of its head. A slower one is answered 408."""

    body_seconds_max: float = 60.0
    """From there to the end of its body. Treated alike."""

    request_seconds_max: float = 60.0
    """From a whole request to its answer. Later it is answered 504 with DEADLINE_EXCEEDED: whether
    a publish took effect is not known then."""

    idle_seconds_max: float = 75.0
    """Between two requests of a connection. Then it is closed."""

    stalled_seconds_max: float = 20.0
    """How long a client may leave what was sent to it unread while more waits. Then the connection
    is cut, so a stream that is not read holds memory no longer than that. Pings, requests and
    other bytes from the client do not count as reading."""

    write_bytes_high: int = 256 << 10
    """Bytes that wait for one client, answers to pings and requests included. Above it a stream
    waits until the client has read some, and nothing more is read from the client."""

    heartbeat_seconds: float = 15.0
    """How often a silent SSE stream says that it is there, and a silent WebSocket is pinged; one
    that does not answer the second ping is cut."""

    message_bytes_max: int = 1 << 20
    """One message from a client over a WebSocket. A longer one ends it with close code 1009."""

    control_frames_max: int = CONTROL_FRAMES_MAX
    """Frames within a second that bring no request further: pings, pongs and parts of messages over
    a WebSocket, tiny chunks, and before login everything. One more closes a WebSocket with 1008,
    and is answered 429 over HTTP. From a fraction of that on the connection is read slowly
    (`wire.flooding`)."""

    frames_per_turn: int = FRAMES_PER_TURN
    """Frames of one WebSocket that are handled in one turn of the event loop; the others wait."""
