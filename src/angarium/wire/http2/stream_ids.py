"""Which streams a client has opened or passed over, and which it does not know to be over.

A frame for a stream that is not open is a mistake of one kind or another, or none at all. Nothing
is kept for streams that ended as they should: they are what is left.
"""

from __future__ import annotations

from collections import deque
from typing import Final

ABANDONED_MAX: Final = 4_096
"""Streams we have closed early and whose client may not know yet. Of older ones it knows."""

SKIPPED_MAX: Final = 16
"""Stretches of stream ids that a client passed over, the newest."""


class StreamIds:
    """The numbers of one connection's streams, which only grow."""

    __slots__ = ("_abandoned", "_skipped", "last")

    def __init__(self) -> None:
        self.last = 0
        """The highest that was opened."""
        self._skipped: deque[range] = deque(maxlen=SKIPPED_MAX)
        self._abandoned: dict[int, None] = {}

    def open(self, stream_id: int) -> None:
        """Note a new stream: those before it that were not opened never will be."""
        if stream_id > self.last + 2:
            self._skipped.append(range(self.last + 1 | 1, stream_id, 2))
        self.last = stream_id

    def is_skipped(self, stream_id: int) -> bool:
        """Tell whether a stream was passed over."""
        return any(stream_id in some for some in self._skipped)

    def abandon(self, stream_id: int) -> None:
        """Remember that what still comes for a stream was sent in good faith."""
        self._abandoned[stream_id] = None
        if len(self._abandoned) > ABANDONED_MAX:
            del self._abandoned[next(iter(self._abandoned))]

    def is_abandoned(self, stream_id: int) -> bool:
        """Tell whether we closed a stream before its client had said everything."""
        return stream_id in self._abandoned
