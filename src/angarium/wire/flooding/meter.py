"""Counting the control frames of one connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.errors import LimitExceeded
from angarium.wire.flooding.bounds import (
    CALM_FRAMES_MAX,
    CALM_LEAST,
    CALM_UNPROVEN_MAX,
    CONTROL_FRAMES_MAX,
    COUNTED_SECONDS,
    FRAMES_WITH_WORK,
    SATURATED_BYTES,
)

if TYPE_CHECKING:
    from angarium.wire.flooding.unproven import UnprovenLoad


class TooManyFrames(LimitExceeded):
    """A connection has sent too many control frames, or requests before login; it ends."""


class FloodMeter:
    """Counts the frames of one connection. It reads no clock: `look` is told the time."""

    __slots__ = (
        "_began",
        "_frames_max",
        "control",
        "is_behind",
        "is_proven",
        "unproven",
        "work",
    )

    def __init__(
        self,
        *,
        frames_max: int = CONTROL_FRAMES_MAX,
        is_proven: bool = False,
        unproven: UnprovenLoad | None = None,
    ) -> None:
        self.control = 0
        """Counted frames since counting began."""
        self.work = 0
        """Other frames since then: each makes room for `FRAMES_WITH_WORK` counted ones."""
        self.is_proven = is_proven
        """Whether the sender has logged in. Before that nothing is work."""
        self.is_behind = False
        """Whether frames wait for their turn among the floods."""
        self.unproven = unproven
        """What is counted before login is counted there as well, with that of other connections."""
        self._frames_max = frames_max
        self._began = 0.0

    @property
    def is_flooding(self) -> bool:
        """Return whether what the connection sends has to wait for its turn among the floods.

        That and the bound are about the frames beyond those that come with work.
        """
        beyond = self.control - FRAMES_WITH_WORK * self.work
        if self.is_proven:
            return beyond > CALM_FRAMES_MAX
        if beyond <= CALM_LEAST:
            return False
        unproven = self.unproven
        return beyond > CALM_UNPROVEN_MAX or (unproven is not None and unproven.is_over)

    @property
    def is_over(self) -> bool:
        """Return whether the bound is passed: the connection has to end."""
        return self.control - FRAMES_WITH_WORK * self.work > self._frames_max

    def count(self, frames: int = 1) -> None:
        """Count control frames; raises `TooManyFrames`."""
        self._add(frames)
        if self.is_over:
            raise TooManyFrames("control_frames_max", TOO_MANY)

    def note(self) -> None:
        """Count one frame without raising; the caller looks at `is_over` and has to act."""
        self._add(1)

    def _add(self, frames: int) -> None:
        self.control += frames
        if not self.is_proven and self.unproven is not None:
            self.unproven.add(frames)

    def look(self, now: float, *, size: int = 0) -> None:
        """Begin anew if it is time to, unless a flood goes on.

        One does if what was read last, of `size` bytes, is as much as waits in a socket.
        """
        if now - self._began < COUNTED_SECONDS or self.is_behind:
            return
        if size < SATURATED_BYTES or not self.is_flooding:
            self._began = now
            self.begin_anew()

    def begin_anew(self) -> None:
        """Forget what was counted."""
        self.control = self.work = 0


TOO_MANY = "too many control frames, or requests before login"
