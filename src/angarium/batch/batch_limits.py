"""What a batch may cost those who read it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """Bounds for batches from outside. Beyond any of them a batch is refused, whole."""

    bytes_max: int = 16 * 1024 * 1024
    """The length of a batch as it travels. Refused before anything after the header is read."""

    section_bytes_max: int = 32 * 1024 * 1024
    """Values, keys and headers after decompression. Refused before decompression starts."""

    records_max: int = 131_072
    """Records in one batch. Refused before a column is read."""

    headers_max: int = 262_144
    """Headers in one batch, over all its records. Refused before a name is read."""


DEFAULT_LIMITS = BatchLimits()
