"""Times as audit records have them: ISO 8601, UTC, to the microsecond, so that texts sort."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from angarium.ids import Micros


def time_text(micros: Micros) -> str:
    """Return a time as text."""
    seconds, rest = divmod(micros, 1_000_000)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:06d}Z"
