"""What happened, for a person to read and for a machine to compare.

Every event is hashed, so that two runs of one seed can be shown to be the same run; the last few
thousand are kept as they are and turned into text only when somebody asks.
"""

from __future__ import annotations

import zlib
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

LINES_KEPT_MAX = 50_000
"""Events kept for reading; older ones are forgotten, their share of the hash is not."""


class Trace:
    """A running record of one simulation."""

    __slots__ = ("_hash", "_lines")

    def __init__(self) -> None:
        self._hash = 0
        self._lines: deque[tuple[int, str, str, tuple[Any, ...]]] = deque(maxlen=LINES_KEPT_MAX)

    def note(self, time: int, who: str, what: str, *facts: Any) -> None:
        """Remember that at `time` `who` did `what`."""
        self._lines.append((time, who, what, facts))
        self._hash = zlib.crc32(f"{time}{who}{what}{facts}".encode(), self._hash)

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits that two runs share if and only if they were the same run."""
        return f"{self._hash:08x}"

    def lines(self, last: int | None = None) -> Iterator[str]:
        """Yield readable lines, oldest first."""
        skip = 0 if last is None else max(0, len(self._lines) - last)
        for position, (time, who, what, facts) in enumerate(self._lines):
            if position >= skip:
                said = " ".join(str(fact) for fact in facts)
                yield f"{time / 1_000_000:12.6f}  {who:<14} {what} {said}".rstrip()
