"""What every answer of a door says of the node that gave it."""

from __future__ import annotations

from typing import TypeAlias

ServedBy: TypeAlias = "tuple[tuple[str, str], ...]"
"""Names and values: `angarium-node` and `angarium-region`; none of a node without a region."""


def ascii_of(region: str) -> str:
    """Return a region's name as a header can have it."""
    return region.encode("ascii", "backslashreplace").decode().replace("\r", "").replace("\n", "")
