"""How a partition's segments are cut. Each node may choose its own values; none has to agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HOUR_MICROS: Final = 3_600_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentConfig:
    """Sizes and bounds of one partition's files."""

    segment_bytes: int = 64 << 20
    """Where a segment ends; a single larger batch still gets one of its own.

    Recovery verifies one active segment per partition, retention frees whole segments, and every
    segment costs one small read when the partition is opened: with a thousand partitions on a
    node, 64 MiB keep the first two low, and a terabyte still opens with 16,384 small reads."""

    segment_age_micros: int = 6 * HOUR_MICROS
    """Append time after which the next batch starts a new segment, so that retention by time
    can free what a quiet partition holds."""

    index_bytes: int = 64 << 10
    """Bytes between two points of the sparse index; a read at a random offset starts at one."""

    preallocate_bytes: int = 4 << 20
    """By how much a segment file grows at a time. A full disk shows here, before a byte of a
    batch is written."""

    unflushed_bytes_max: int = 64 << 20
    """Batches held in memory only. At the limit `append` refuses, retriably, until a flush."""

    open_files_max: int = 8
    """Files kept open for reading. At the limit the one not used for longest is closed."""

    indexes_max: int = 8
    """Indexes of sealed segments kept in memory. At the limit the oldest is dropped and will be
    read again."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is at least 1")
