"""Requests we serve: each is answered once, or no longer waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from angarium.errors import (
    AngariumError,
    LimitExceeded,
    OutcomeUnknown,
    QuotaExceeded,
    Unauthenticated,
)
from angarium.security.credentials import MISSING
from angarium.wire.error_codec import failure_of
from angarium.wire.errors import InvalidFrame, Unreachable, UnsupportedOperation
from angarium.wire.frames import FrameKind

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Container, Sequence

    from angarium.ids import Buffer
    from angarium.wire.connection import Connection
    from angarium.wire.frames import Frame, Header

T = TypeVar("T")

_ANSWER: Final = int(FrameKind.ANSWER)


class Request:
    """A request being served. Answer it once: now, or later from wherever the answer is known."""

    __slots__ = ("_on_cancel", "_serving", "_task", "connection", "frame")

    def __init__(self, serving: Serving, connection: Connection, frame: Frame) -> None:
        self.connection = connection
        self.frame = frame
        self._serving = serving
        self._task: asyncio.Task[None] | None = None
        self._on_cancel: Callable[[], None] | None = None

    @property
    def operation(self) -> int:
        """What is asked for."""
        return self.frame.operation

    @property
    def payload(self) -> memoryview:
        """The raw bytes that came along."""
        return self.frame.payload

    def read(self, header_type: type[T]) -> T:
        """Return the header as `header_type`; raises `InvalidArgument`."""
        return self.frame.read(header_type)

    def unpack(self, content_type: type[T]) -> T:
        """Return what `packed` made, from the payload; raises `InvalidArgument`."""
        return self.frame.unpack(content_type)

    @property
    def is_waited_for(self) -> bool:
        """Tell whether an answer would still reach anybody."""
        return self._serving.has(self)

    def answer(self, header: Header = b"", payload: Sequence[Buffer] = ()) -> bool:
        """Answer; False if nobody waits for it any more, which is no mistake.

        An answer larger than the peer takes becomes the failure `LimitExceeded`.
        """
        return self._serving.answer(self, header, payload)

    def fail(self, error: BaseException) -> bool:
        """Answer with `error`; False if nobody waits any more."""
        return self._serving.fail(self, error)

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Have `callback` called if the caller gives up or goes away before the answer."""
        self._on_cancel = callback

    def run_as(self, task: asyncio.Task[None]) -> None:
        """Let `task` serve this request; it is cancelled together with it."""
        self._task = task

    def cancelled(self) -> None:
        """Hear that nobody waits any more."""
        if self._on_cancel is not None:
            self._on_cancel()
        if self._task is not None:
            self._task.cancel()


class Serving:
    """The requests of one connection that are being served."""

    __slots__ = ("_connection", "_requests", "_requests_max")

    def __init__(self, connection: Connection, *, requests_max: int) -> None:
        self._connection = connection
        self._requests: dict[int, Request] = {}
        self._requests_max = requests_max

    def __len__(self) -> int:
        return len(self._requests)

    def has(self, request: Request) -> bool:
        """Tell whether `request` waits for its answer."""
        return self._requests.get(request.frame.id) is request

    def take(self, frame: Frame) -> None:
        """Serve the request in `frame`, or refuse it."""
        connection = self._connection
        requests = self._requests
        check_their_id(frame.id, connection.is_dialled, requests)
        handler = connection.handlers.requests.get(frame.operation)
        if handler is None or len(requests) >= self._requests_max or not connection.is_open:
            refusal = refusal_of(
                frame,
                connection,
                is_served=handler is not None,
                limit=("requests_in_flight_max", len(requests), self._requests_max),
            )
            connection.put(FrameKind.FAILURE, frame.operation, frame.id, refusal, ())
            return
        if connection.handlers.tolled is not None and not is_paid(frame, connection):
            return
        request = Request(self, connection, frame)
        requests[frame.id] = request
        try:
            work = handler(request)
        except Exception as error:
            self.fail(request, error)
            return
        if work is not None:
            task = connection.start(work, lambda done: self._finished(request, done))
            request.run_as(task)

    def take_cancel(self, frame: Frame) -> None:
        """Hear that a request is no longer waited for."""
        request = self._requests.pop(frame.id, None)
        if request is not None:
            request.cancelled()
            self._connection.notice_quiet()

    def answer(self, request: Request, header: Header, payload: Sequence[Buffer]) -> bool:
        """Answer `request`; see `Request.answer`."""
        frame = request.frame
        if self._requests.get(frame.id) is not request:
            return False
        try:
            self._connection.put(_ANSWER, frame.operation, frame.id, header, payload)
        except LimitExceeded as error:
            return self.fail(request, error)
        del self._requests[frame.id]
        self._connection.notice_quiet()
        return True

    def fail(self, request: Request, error: BaseException) -> bool:
        """Answer `request` with `error`; see `Request.fail`."""
        if not self.has(request):
            return False
        frame = request.frame
        failure = failure_of(error)
        self._connection.put(FrameKind.FAILURE, frame.operation, frame.id, failure, ())
        del self._requests[frame.id]
        self._connection.notice_quiet()
        return True

    def end_all(self) -> None:
        """Stop serving: nobody is there to be answered."""
        requests, self._requests = self._requests, {}
        for request in requests.values():
            request.cancelled()

    def _finished(self, request: Request, task: asyncio.Task[None]) -> None:
        # Cancelled by ourselves and not by the caller, who must not wait in vain.
        if task.cancelled():
            self.fail(request, OutcomeUnknown("the node stopped serving this request"))
            return
        error = task.exception()
        if error is not None:
            self.fail(request, error)
        else:
            self.answer(request, b"", ())


def is_paid(frame: Frame, connection: Connection) -> bool:
    """Count what `frame` asks for; False if it was refused, because that is too much.

    Backpressure comes first: who is over its quota is served, and its connection rests.
    """
    tolled = connection.handlers.tolled
    toll = None if tolled is None else tolled.toll
    if toll is None:
        return True
    try:
        connection.rest(toll.take_request())
    except QuotaExceeded as error:
        connection.put(FrameKind.FAILURE, frame.operation, frame.id, failure_of(error), ())
        return False
    return True


def check_their_id(frame_id: int, is_dialled: bool, taken: Container[int]) -> None:
    """Raise `InvalidFrame` unless the other side may begin something under this id."""
    # True and False are 1 and 0: the dialling side begins with odd ids, and so hears even ones.
    if frame_id & 1 == is_dialled or frame_id in taken:
        raise InvalidFrame(f"the id {frame_id} is not one the other side may begin with")


def refusal_of(
    frame: Frame, connection: Connection, *, is_served: bool, limit: tuple[str, int, int]
) -> Any:
    """Return the failure that says why nothing begins with `frame`."""
    name, count, count_max = limit
    error: AngariumError
    if not is_served and connection.handlers.proofs:
        if connection.handlers.on_unproven is not None:
            connection.handlers.on_unproven()
        error = Unauthenticated(MISSING)
    elif not is_served:
        error = UnsupportedOperation(f"operation {frame.operation} is not served here")
    elif not connection.is_open:
        error = Unreachable("the node is about to close this connection")
    else:
        error = LimitExceeded(name, f"{count} of {count_max} are open on this connection")
    return failure_of(error)
