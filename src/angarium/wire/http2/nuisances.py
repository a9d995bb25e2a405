"""What a client may do for a while and not without end: reset streams, and say things that bring no
request further. Each costs it next to nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.wire.http2.frames import ConnectionFailed, ErrorCode

if TYPE_CHECKING:
    from angarium.wire.http2.http2_limits import Http2Limits


class Nuisances:
    """Counts them for one connection. One too many raises what ends it."""

    __slots__ = ("_limits", "control_frames", "resets")

    def __init__(self, limits: Http2Limits) -> None:
        self._limits = limits
        self.resets = self.control_frames = 0

    def begin_anew(self) -> None:
        """Forget what was counted: whoever keeps time says when."""
        self.resets = self.control_frames = 0

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
        self.control_frames += weight
        if self.control_frames > self._limits.control_frames_max:
            raise too_much("too many frames that ask for nothing")


def too_much(reason: str) -> ConnectionFailed:
    """Return what ends a connection whose client asks too much."""
    return ConnectionFailed(ErrorCode.ENHANCE_YOUR_CALM, reason)
