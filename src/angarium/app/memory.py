"""How the C library keeps memory that was freed.

Left alone, glibc maps every block beyond its threshold anew and gives it back when it is freed, and
shortens its heap whenever the end of it is free. A node makes and drops a buffer of some hundred
kilobytes for every large batch, so the kernel would clear the same pages over and over. With more
patience three nodes under batched load took 6 to 12 % less processor time (docs/performance.md).
"""

from __future__ import annotations

import ctypes
from typing import Final

MAPPED_BYTES: Final = 16 << 20
"""Blocks larger than this are mapped, and given back when they are freed; smaller ones are kept."""

KEPT_BYTES: Final = 64 << 20
"""Free memory at the end of the heap beyond this is given back."""

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3


def give_back_freed_memory() -> bool:
    """Return to the system what is free by now; False where the C library knows no such thing.

    For once a node has started: what reading modules and settings took will not be needed again.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is None:
        return False
    trim(0)
    return True


def keep_freed_memory() -> bool:
    """Set both bounds; False where the C library knows no such thing."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    mapped = mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES)
    kept = mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
    return bool(mapped and kept)
