"""Heads that repeat byte for byte, recognised instead of read again.

A client that publishes says the same before each body, so that reading it would find the same, too.
What a head means is still llhttp's decision: only one that it has read is remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from angarium.wire.http.messages import Head

HEADS_MAX: Final = 1_024
"""Heads remembered by a server. At the bound all are forgotten."""

HEAD_BYTES_MAX: Final = 1_024
"""The longest that is remembered; others are read each time."""

_END: Final = b"\r\n\r\n"

_SPECIAL: Final = (b"expect", b"transfer-encoding", b"upgrade")
"""With one of these more happens than that a body of known length follows."""


class KnownHeads:
    """What a server's clients have said lately, by its bytes."""

    __slots__ = ("_heads",)

    def __init__(self) -> None:
        self._heads: dict[bytes, Head] = {}

    def __len__(self) -> int:
        return len(self._heads)

    def recognised(self, data: bytes) -> tuple[Head, bytes] | None:
        """Return head and body of a request that `data` is, whole and alone, if it is known."""
        end = data.find(_END) + 4
        head = self._heads.get(data[:end])
        if head is None or len(data) - end != head.body_bytes:
            return None
        return head, data[end:]

    def remember(self, data: bytes, head: Head) -> None:
        """Know `head` again; it was found in `data`, which is one whole request."""
        end = data.find(_END) + 4
        # Lines may end otherwise, and then this stands in the body; the lengths tell.
        if end > HEAD_BYTES_MAX or len(data) - end != head.body_bytes:
            return
        if any(name in head.named for name in _SPECIAL):
            return
        if len(self._heads) >= HEADS_MAX:
            self._heads.clear()
        self._heads[data[:end]] = head
