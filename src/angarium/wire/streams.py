"""Streams: many frames each way under one id, with credit.

Each side may send as long as the other has granted it bytes; taking a frame out grants them anew.
So a slow consumer slows its own producer down and nobody else, and what waits at either end is
bounded by the window (and one frame, which may overdraw it).

A stream ends when both sides have said `end`, or at once with a failure or with the connection.
What came before the end can still be taken out, unless this side cancelled the stream itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, Final

from angarium.wire.error_codec import failure_of
from angarium.wire.errors import InvalidFrame, StreamCancelled
from angarium.wire.frames import FINAL, Frame, FrameKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.errors import AngariumError
    from angarium.ids import Buffer
    from angarium.wire.connection import Connection
    from angarium.wire.frames import Header
    from angarium.wire.handshake import Peer

_CREDIT: Final = Struct("<Q")


class Stream:
    """One end of a stream. One task receives from it; any number may send."""

    __slots__ = (
        "_arrived",
        "_connection",
        "_credit",
        "_ended_here",
        "_ended_there",
        "_error",
        "_granted",
        "_incoming",
        "_receiver",
        "_senders",
        "_task",
        "_untold",
        "_window",
        "id",
        "opening",
    )

    def __init__(
        self, connection: Connection, opening: Frame, *, window: int, peer_window: int
    ) -> None:
        self.id = opening.id
        self.opening = opening
        """The frame that opened it: the operation, and what it is about."""
        self._connection = connection
        # Bytes we may still send; may become negative, for one frame may overdraw it.
        self._credit = peer_window
        # Bytes the peer may still send, and bytes taken out but not granted to it again yet.
        self._granted = window
        self._untold = 0
        self._window = window
        self._incoming: deque[Frame] = deque()
        self._receiver: asyncio.Future[None] | None = None
        self._senders: deque[asyncio.Future[None]] = deque()
        self._ended_here = False
        self._ended_there = False
        self._error: AngariumError | None = None
        self._task: asyncio.Task[None] | None = None

    # --- for its user -----------------------------------------------------------------------

    @property
    def peer(self) -> Peer:
        """Who is at the other end."""
        return self._connection.peer

    @property
    def can_send(self) -> bool:
        """Tell whether `send_nowait` would send."""
        return self._credit > 0 and not self._connection.is_congested

    async def send(self, header: Header = b"", payload: Sequence[Buffer] = ()) -> None:
        """Send a frame, waiting for credit if need be.

        The wait ends with the stream or its connection; put it under `asyncio.timeout` to end it
        sooner.
        """
        while not self.can_send:
            self._check_sendable()
            await self._wait_to_send()
        self._send(header, payload)

    def send_nowait(self, header: Header = b"", payload: Sequence[Buffer] = ()) -> bool:
        """Send a frame if there is credit for it now; False if there is none."""
        if not self.can_send:
            self._check_sendable()
            return False
        self._send(header, payload)
        return True

    async def receive(self) -> Frame | None:
        """Return the next frame, or None after the last one; raises what ended it otherwise."""
        while not self._incoming:
            if self._error is not None:
                raise self._error
            if self._ended_there:
                return None
            assert self._receiver is None, "one task receives from a stream"
            self._receiver = self._connection.loop.create_future()
            try:
                await self._receiver
            finally:
                self._receiver = None
        return self._take()

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Frame:
        frame = await self.receive()
        if frame is None:
            raise StopAsyncIteration
        return frame

    def end(self) -> None:
        """Say that no more data comes from here; receiving goes on."""
        if self._ended_here or self._error is not None:
            return
        self._ended_here = True
        self._connection.put(FrameKind.STREAM_END, 0, self.id, b"", ())
        self._close_if_ended()

    def cancel(self, error: AngariumError | None = None) -> None:
        """End both directions now; the other side raises `error`."""
        if self._is_over:
            return
        reason = error or StreamCancelled("the other side no longer wants this stream")
        self._connection.put(FrameKind.FAILURE, 0, self.id, failure_of(reason), ())
        self._incoming.clear()
        task, self._task = self._task, None
        self.fail(StreamCancelled("this side no longer wants this stream"))
        # A handler that gives its own stream up goes on; anybody else ends the handler with it.
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    # --- for its connection -----------------------------------------------------------------

    def finish(self) -> None:
        """Say that nothing comes from here any more and that nobody here listens."""
        if self._is_over:
            return
        if not (self._ended_here and self._ended_there):
            self._connection.put(FrameKind.STREAM_END, 0, self.id, b"", (), flags=FINAL)
        self._ended_here = self._ended_there = True
        self._close_if_ended()

    def run_as(self, task: asyncio.Task[None]) -> None:
        """Let `task` serve this stream; it is cancelled together with it."""
        self._task = task

    def take_data(self, frame: Frame) -> None:
        """Take a frame the peer has sent; raises `InvalidFrame` if it had no credit."""
        if self._ended_there:
            return
        if self._granted <= 0:
            raise InvalidFrame(f"stream {self.id} was sent data without credit")
        self._granted -= frame.size
        self._incoming.append(frame)
        self._wake_receiver()

    def take_credit(self, frame: Frame) -> None:
        """Take what the peer has granted."""
        if len(frame.header) != _CREDIT.size:
            raise InvalidFrame("a grant of credit is eight bytes")
        granted: int = _CREDIT.unpack(frame.header)[0]
        self._credit = min(self._credit + granted, 1 << 40)
        self.wake_senders()

    def take_end(self, frame: Frame) -> None:
        """Take the peer's last word."""
        self._ended_there = True
        if frame.flags & FINAL:
            self._ended_here = True
            self.wake_senders()
        self._wake_receiver()
        self._close_if_ended()

    def fail(self, error: AngariumError) -> None:
        """End at once: every wait, and every later use of the stream, raises `error`."""
        if self._is_over:
            return
        self._error = error
        self._connection.forget_stream(self)
        self._wake_receiver()
        self.wake_senders()
        if self._task is not None:
            self._task.cancel()

    def wake_senders(self) -> None:
        """Wake those who wait to send."""
        while self._senders:
            waiting = self._senders.popleft()
            if not waiting.done():
                waiting.set_result(None)

    @property
    def _is_over(self) -> bool:
        return self._error is not None or not self._connection.has_stream(self)

    def _send(self, header: Header, payload: Sequence[Buffer]) -> None:
        self._check_sendable()
        size = self._connection.put(FrameKind.STREAM_DATA, 0, self.id, header, payload)
        self._credit -= size

    def _check_sendable(self) -> None:
        if self._error is not None:
            raise self._error
        if self._ended_here:
            raise StreamCancelled("this stream takes no more data")

    async def _wait_to_send(self) -> None:
        if self._credit > 0:
            await self._connection.room()
            return
        waiting = self._connection.loop.create_future()
        self._senders.append(waiting)
        try:
            await waiting
        finally:
            if waiting in self._senders:
                self._senders.remove(waiting)

    def _take(self) -> Frame:
        frame = self._incoming.popleft()
        self._untold += frame.size
        # Grants are told in halves of the window: often enough to keep a sender busy.
        if self._untold * 2 >= self._window and not self._ended_there and self._error is None:
            self._granted += self._untold
            grant = _CREDIT.pack(self._untold)
            self._untold = 0
            self._connection.put(FrameKind.STREAM_CREDIT, 0, self.id, grant, ())
        return frame

    def _wake_receiver(self) -> None:
        if self._receiver is not None and not self._receiver.done():
            self._receiver.set_result(None)

    def _close_if_ended(self) -> None:
        if self._ended_here and self._ended_there:
            self._connection.forget_stream(self)
