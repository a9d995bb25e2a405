"""Questions about a whole column of integers, answered without a Python loop.

A column is read as one very long integer in which every slot is a *lane* of 32 or 64 bits. All
lanes hold numbers below half their range, so the top bit of each is free. Setting the top bits of
`later` before subtracting `earlier` gives every lane something to borrow from: no lane disturbs
its neighbour, and a lane's top bit survives exactly where `later >= earlier`. So a thousand
comparisons are one subtraction. benchmarks/micro/batch.py measures it beside the obvious way, to
compare with a sorted copy, which takes twice as long.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from angarium.ids import Buffer

_READY_LANES: Final = 4096
"""Top bits are kept ready for columns up to this length; longer ones make their own."""


def never_decreases(column: Buffer, *, count: int) -> bool:
    """Tell whether the `count` int32 of `column` are at least 0 and each at least the last."""
    return _climbs(column, count, step=0)


def always_increases(column: Buffer, *, count: int) -> bool:
    """Tell whether the `count` int32 of `column` are at least 0 and each above the last."""
    return _climbs(column, count, step=1)


def lies_within(column: Buffer, *, count: int, low: int, high: int) -> bool:
    """Tell whether each of the `count` int64 of `column` is in [`low`, `high`], with 0 <= low."""
    assert 0 <= low <= high < 1 << 63
    lanes = int.from_bytes(column, "little")
    tops = top_bits(64, count)
    if lanes & tops:
        return False
    ones = tops >> 63
    return ((lanes | tops) - low * ones) & tops == tops == ((high * ones | tops) - lanes) & tops


def _climbs(column: Buffer, count: int, *, step: int) -> bool:
    lanes = int.from_bytes(column, "little")
    tops = top_bits(32, count)
    if lanes & tops:
        return False
    # Shifted by one lane, each number lies over the one before it. The last lane then faces
    # nothing and is left out of the verdict; with its top bit lent it does no harm either.
    later = lanes >> 32 | tops
    verdicts = tops >> 32
    if step:
        # later - earlier - 1 >= 0: no lane falls below 0 even so.
        lanes += tops >> 31
    return (later - lanes) & verdicts == verdicts


def top_bits(width: int, count: int) -> int:
    """Return `count` lanes of `width` bits in which only the top bits are set."""
    if count <= _READY_LANES:
        return _ready_bits(width) >> width * (_READY_LANES - count)
    return _made_bits(width, count)


@lru_cache(maxsize=2)
def _ready_bits(width: int) -> int:
    return _made_bits(width, _READY_LANES)


def _made_bits(width: int, count: int) -> int:
    return int.from_bytes((1 << width - 1).to_bytes(width // 8, "little") * count, "little")
