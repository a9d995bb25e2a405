"""How a node wants its write-ahead log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from angarium.errors import InvalidArgument
from angarium.log.wal.format import PAGE_BYTES

SMOOTH_BYTES_MAX: Final = 1 << 20
"""Zeros that go ahead at a time at the most: more would be felt by the sync that brings them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalConfig:
    """One node's own choice; nodes of a cluster need not agree."""

    file_bytes: int = 64 * 1024 * 1024
    """Length of a file, preallocated. At the end of one the log rolls to the next, which is
    always prepared in advance; a sync round that is longer gets a longer file."""

    reserve_bytes: int = 1024 * 1024
    """Length of a file held back for hard states, membership and trims. When the disk is full,
    these go on into it; once it is used up too, they are refused like everything else."""

    files_kept: int = 4
    """Files above which groups that keep the oldest one from going are asked to save their state
    and shorten their log, however little there is of it."""

    files_max: int = 16
    """Files above which they do so even if a member that is catching up will need a snapshot."""

    cache_bytes: int = 64 * 1024 * 1024
    """Synced entries of all groups kept in memory, the oldest leave first; those are read from
    the files. What is not synced yet stays in memory in any case."""

    smooth_bytes: int = SMOOTH_BYTES_MAX
    """How many zeros go ahead of small sync rounds at a time, so that most of them are written
    over blocks which the file system knows; 0 for none. It makes a sync a quarter faster."""

    def __post_init__(self) -> None:
        if self.file_bytes < PAGE_BYTES or self.file_bytes % PAGE_BYTES:
            raise InvalidArgument(f"file_bytes must be a positive multiple of {PAGE_BYTES}")
        if self.reserve_bytes < PAGE_BYTES or self.reserve_bytes % PAGE_BYTES:
            raise InvalidArgument(f"reserve_bytes must be a positive multiple of {PAGE_BYTES}")
        if not 0 <= self.smooth_bytes <= SMOOTH_BYTES_MAX:
            raise InvalidArgument(f"smooth_bytes must be between 0 and {SMOOTH_BYTES_MAX}")
        if not 1 <= self.files_kept <= self.files_max:
            raise InvalidArgument("files_kept must be between 1 and files_max")
        if self.cache_bytes < 0:
            raise InvalidArgument("cache_bytes must not be negative")
