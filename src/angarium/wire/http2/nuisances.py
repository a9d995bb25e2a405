"""What a client may do for a while and not without end: reset streams, and say things that bring no
request further. Each costs it next to nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.wire.flooding import FloodMeter
from angarium.wire.flooding.meter import TOO_MANY
from angarium.wire.http2.frames import ConnectionFailed, ErrorCode
from angarium.wire.http2.sender import PIECE_BYTES_LEAST

if TYPE_CHECKING:
    from angarium.wire.http2.http2_limits import Http2Limits
    from angarium.wire.http2.sender import Sender

HEAD_WEIGHT_FREE: Final = 16
"""What a header block weighs that is an ordinary request's after login, at the most: 4 KiB."""


class Nuisances(FloodMeter):
    """Counts them for one connection. One too many raises what ends it."""

    __slots__ = ("_limits", "resets")

    def __init__(self, limits: Http2Limits) -> None:
        super().__init__(frames_max=limits.control_frames_max, is_proven=True)
        self._limits = limits
        self.resets = 0

    def begin_anew(self) -> None:
        """Forget what was counted: whoever keeps time says when."""
        super().begin_anew()
        self.resets = 0

    def count_reset(self) -> None:
        """Count a stream that ended early: opening one costs a client nothing and us much."""
        self.resets += 1
        if self.resets > self._limits.resets_max:
            raise too_much("too many streams opened and reset")

    def count_mistake(self, code: ErrorCode) -> None:
        """Count what had us reset a stream: it does the same as a reset of the client's own.

        A stream that is one too many was never begun, and a client may not know the number yet.
        """
        if code is ErrorCode.REFUSED_STREAM:
            self.count_control()
        else:
            self.count_reset()

    def count_control(self, weight: int = 1) -> None:
        """Count a frame that brings no request further: some are needed, many are a nuisance."""
        self._add(weight)
        if self.is_over:
            raise too_much(TOO_MANY)

    def count_head(self, weight: int) -> None:
        """Count what it took to decode a header block; after login only that of a large one."""
        if self.is_proven:
            weight -= HEAD_WEIGHT_FREE
        if weight > 0:
            self.count_control(weight)

    def count_data(self, size: int, *, ends: bool) -> None:
        """Count a piece of a body as work, unless it is too small to be a part of anything; before
        login nothing is work."""
        if size < PIECE_BYTES_LEAST and not ends:
            self.count_control()
        elif self.is_proven:
            self.work += 1

    def count_unproven(self) -> None:
        """Count a request that was refused for its head alone: it was no work."""
        if self.is_proven:
            self.work -= 1
            self.control += 1

    def count_refused(self, pieces: int) -> None:
        """Count a call of `pieces` that was refused to who asked, however it was begun: it was no
        work. The next frame ends the connection if that was one too many."""
        if self.is_proven:
            self.work = max(0, self.work - 1 - pieces)
            self.note()

    def credit(self, sender: Sender) -> None:
        """Count what was sent since the last time as work: clients ping with what they read."""
        if self.is_proven:
            self.work += sender.pieces
        sender.pieces = 0


def too_much(reason: str) -> ConnectionFailed:
    """Return what ends a connection whose client asks too much."""
    return ConnectionFailed(ErrorCode.ENHANCE_YOUR_CALM, reason)
