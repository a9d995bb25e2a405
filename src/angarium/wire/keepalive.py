"""Noticing that a peer is gone, though nobody said so.

The connection is looked at once per interval. A peer from which nothing came since the last look
is pinged; one that stays silent, or that takes none of the bytes waiting for it, is given up.
Looks are counted instead of clock time: a process that was stopped for a minute looks once when it
goes on, and blames nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from angarium.wire.outgoing import Outgoing
    from angarium.wire.wire_limits import WireLimits


class Keepalive:
    """The watch over one open connection."""

    __slots__ = (
        "_give_up",
        "_intervals_max",
        "_is_listening",
        "_left_before",
        "_loop",
        "_outgoing",
        "_ping",
        "_silent",
        "_stalled",
        "_timer",
        "interval_s",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        outgoing: Outgoing,
        *,
        limits: WireLimits,
        ping: Callable[[], None],
        give_up: Callable[[str], None],
    ) -> None:
        self.interval_s = limits.ping_interval_s
        self._loop = loop
        self._outgoing = outgoing
        self._intervals_max = limits.silent_intervals_max
        self._ping = ping
        self._give_up = give_up
        self._timer: asyncio.TimerHandle | None = None
        self._silent = 0
        self._stalled = 0
        self._left_before = 0
        self._is_listening = True

    def start(self) -> None:
        """Begin to look."""
        self._timer = self._loop.call_later(self.interval_s, self._look)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def heard(self) -> None:
        """Hear that something came from the peer."""
        self._silent = 0

    def listen(self, is_listening: bool) -> None:
        """Hear whether the connection reads at all: a peer nobody listens to is not silent."""
        self._is_listening = is_listening
        self._silent = 0

    def _look(self) -> None:
        self.start()
        left = self._outgoing.bytes_left
        is_stalled = self._outgoing.is_paused and left == self._left_before
        self._left_before = left
        self._stalled = self._stalled + 1 if is_stalled else 0
        patience_s = self.interval_s * self._intervals_max
        if self._stalled >= self._intervals_max:
            self._give_up(f"has taken none of our bytes for about {patience_s:g} s")
        elif self._is_listening and self._silent >= self._intervals_max:
            self._give_up(f"has been silent for about {patience_s:g} s")
        elif self._is_listening:
            if self._silent:
                self._ping()
            self._silent += 1
