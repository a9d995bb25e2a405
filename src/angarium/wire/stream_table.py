"""The streams of one connection: opened here, served here, and how frames find them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.errors import AngariumError, LimitExceeded
from angarium.wire.error_codec import error_of, failure_of
from angarium.wire.errors import ConnectionLost
from angarium.wire.frames import Frame, FrameKind
from angarium.wire.serving import check_their_id, is_paid, refusal_of
from angarium.wire.streams import Stream

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from angarium.wire.connection import Connection


class StreamTable:
    """Open streams by id. A frame for one that has just ended here is dropped: no mistake."""

    __slots__ = ("_connection", "_streams", "_streams_max", "_window")

    def __init__(self, connection: Connection, *, streams_max: int, window: int) -> None:
        self._connection = connection
        self._streams: dict[int, Stream] = {}
        self._streams_max = streams_max
        self._window = window

    def __len__(self) -> int:
        return len(self._streams)

    def check_room(self) -> None:
        """Raise `LimitExceeded` if there are as many streams as there may be."""
        if len(self._streams) >= self._streams_max:
            raise LimitExceeded("streams_max", f"{self._streams_max} streams on this connection")

    def add(self, opening: Frame) -> Stream:
        """Return the new stream that `opening` opens."""
        connection = self._connection
        stream = Stream(
            connection,
            opening,
            window=self._window,
            peer_window=connection.peer.hello.stream_window_bytes,
        )
        self._streams[opening.id] = stream
        return stream

    def has(self, stream: Stream) -> bool:
        """Tell whether `stream` is open."""
        return self._streams.get(stream.id) is stream

    def forget(self, stream: Stream) -> None:
        """Let go of a stream that has ended."""
        self._streams.pop(stream.id, None)

    def take_open(self, frame: Frame) -> None:
        """Serve the stream that `frame` opens, or refuse it."""
        connection = self._connection
        check_their_id(frame.id, connection.is_dialled, self._streams)
        handler = connection.handlers.streams.get(frame.operation)
        if handler is None or len(self._streams) >= self._streams_max or not connection.is_open:
            refusal = refusal_of(
                frame,
                connection,
                is_served=handler is not None,
                limit=("streams_max", len(self._streams), self._streams_max),
            )
            connection.put(FrameKind.FAILURE, frame.operation, frame.id, refusal, ())
            return
        if connection.handlers.tolled is not None and not is_paid(frame, connection):
            return
        stream = self.add(frame)
        task = connection.start(handler(stream), lambda done: _finished(stream, done))
        stream.run_as(task)

    def take_data(self, frame: Frame) -> None:
        """Hand data to its stream."""
        stream = self._streams.get(frame.id)
        if stream is not None:
            stream.take_data(frame)

    def take_credit(self, frame: Frame) -> None:
        """Hand credit to its stream."""
        stream = self._streams.get(frame.id)
        if stream is not None:
            stream.take_credit(frame)

    def take_end(self, frame: Frame) -> None:
        """Hand the other side's end to its stream."""
        stream = self._streams.get(frame.id)
        if stream is not None:
            stream.take_end(frame)

    def take_failure(self, frame_id: int, error: AngariumError) -> bool:
        """End a stream with `error`; False if there is none of this id."""
        stream = self._streams.get(frame_id)
        if stream is None:
            return False
        stream.fail(error)
        return True

    def cancel_all(self, error: AngariumError) -> None:
        """Give every stream up, telling the other side `error`."""
        for stream in list(self._streams.values()):
            stream.cancel(error)

    def fail_all(self, error_for: Callable[[], AngariumError]) -> None:
        """End every stream: the connection is gone."""
        for stream in list(self._streams.values()):
            stream.fail(error_for())


def _finished(stream: Stream, task: asyncio.Task[None]) -> None:
    # Cancelled by ourselves: if the other side had ended the stream, it would be over already.
    if task.cancelled():
        stream.cancel(ConnectionLost("the node stopped serving this stream"))
        return
    error = task.exception()
    if error is None:
        stream.finish()
    else:
        stream.cancel(error_of(failure_of(error)))
