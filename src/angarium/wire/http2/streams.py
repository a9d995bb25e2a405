"""One stream: which of its sides are open, what each may still send, and what waits to be sent."""

from __future__ import annotations

from collections import deque
from typing import Any


class Stream:
    """One request and its answer."""

    __slots__ = (
        "body_bytes",
        "content_length",
        "ends_when_sent",
        "id",
        "is_closed",
        "is_ended",
        "is_finished",
        "owner",
        "pieces",
        "receive_window",
        "send_window",
        "to_credit",
        "trailers",
        "varying",
        "waiting",
        "waiting_bytes",
    )

    def __init__(
        self,
        stream_id: int,
        *,
        send_window: int,
        receive_window: int,
        content_length: int,
        varying: bytes | None = None,
    ) -> None:
        self.id = stream_id
        self.owner: Any = None
        """What the listener keeps for it."""
        self.is_ended = False
        """The client has said everything."""
        self.is_finished = False
        """We have said everything, though some of it may wait for room."""
        self.is_closed = False
        """Nothing more will happen."""
        self.varying = varying
        """The value of the header that is another one for every request; None: it has none."""
        self.send_window = send_window
        self.receive_window = receive_window
        self.to_credit = 0
        """Bytes that were read since the client was last let send more."""
        self.content_length = content_length
        self.body_bytes = 0
        self.pieces = 0
        """Frames that the body came in so far."""
        self.waiting: deque[memoryview] = deque()
        """What the windows had no room for."""
        self.waiting_bytes = 0
        self.trailers = b""
        """The header block that comes behind what waits."""
        self.ends_when_sent = False
        """Nothing comes behind what waits, not even trailers."""
