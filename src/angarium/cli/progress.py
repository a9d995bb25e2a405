"""A progress line on a terminal: how much, how fast, and, if known, how much is left."""

from __future__ import annotations

import sys
import time
from typing import Final

BAR_COLUMNS: Final = 24
REDRAW_SECONDS: Final = 0.1


class Progress:
    """Drawn on standard error, so that output stays clean; silent if that is no terminal."""

    def __init__(self, *, total_bytes: int | None, quiet: bool) -> None:
        self._total = total_bytes
        self._is_shown = sys.stderr.isatty() and not quiet
        self._began = time.monotonic()
        self._drawn_at = 0.0
        self._is_drawn = False
        self.records = 0
        self.bytes = 0

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.monotonic() - self._began

    def add(self, records: int, size: int) -> None:
        """Count what is done."""
        self.records += records
        self.bytes += size
        now = time.monotonic()
        if self._is_shown and now - self._drawn_at >= REDRAW_SECONDS:
            self._drawn_at, self._is_drawn = now, True
            sys.stderr.write(f"\r{self.line()}\033[K")
            sys.stderr.flush()

    def line(self) -> str:
        """Return the line as it is now."""
        rate = self.records / max(self.seconds, 1e-9)
        told = f"{self.records:,} records, {rate:,.0f}/s"
        if not self._total:
            return told
        share = min(1.0, self.bytes / self._total)
        bar = "#" * round(share * BAR_COLUMNS)
        return f"[{bar:<{BAR_COLUMNS}}] {share:4.0%}  {told}"

    def close(self) -> None:
        """Take the line away."""
        if self._is_drawn:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
