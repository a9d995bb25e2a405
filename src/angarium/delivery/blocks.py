"""Sets of offsets as bitmaps of 1,024: the currency in which records are lent and given back.

A block is `BLOCK` neighbouring offsets, the same as in the machine's set of acknowledged ones, and
some of its records are an integer with their bits set. What is done to five hundred records is done
to one such integer, and costs about what it costs for one.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from angarium.machine import ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BLOCK: Final = ranges.BLOCK
SHIFT: Final = BLOCK.bit_length() - 1
REST: Final = BLOCK - 1
FULL: Final = (1 << BLOCK) - 1
_BIT: Final = tuple(1 << bit for bit in range(BLOCK))


def blocks(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the blocks that `[start, end)` touches, upward, each with the bits that are meant."""
    block = start >> SHIFT
    last = (end - 1) >> SHIFT
    if block == last:
        yield block, ((1 << (end - start)) - 1) << (start & REST)
        return
    yield block, FULL >> (start & REST) << (start & REST)
    for middle in range(block + 1, last):
        yield middle, FULL
    yield last, (2 << ((end - 1) & REST)) - 1


def lowest(bits: int, count: int) -> int:
    """Return the `count` lowest of the set bits, or all if there are no more."""
    if bits.bit_count() <= count:
        return bits
    if count <= 0:
        return 0
    # Halve the piece in which the last wanted bit lies until it is one bit wide.
    low, high = 0, bits.bit_length()
    while high - low > 1:
        middle = (low + high) >> 1
        if (bits & ((1 << middle) - 1)).bit_count() >= count:
            high = middle
        else:
            low = middle
    return bits & ((1 << high) - 1)


def offsets(block: int, bits: int) -> Iterator[int]:
    """Yield the offsets that `bits` means, upward."""
    base = block << SHIFT
    while bits:
        low = bits & -bits
        yield base + low.bit_length() - 1
        bits ^= low


def first(block: int, bits: int) -> int:
    """Return the lowest offset that `bits` means; there is one."""
    return (block << SHIFT) + (bits & -bits).bit_length() - 1


def last(block: int, bits: int) -> int:
    """Return the highest offset that `bits` means; there is one."""
    return (block << SHIFT) + bits.bit_length() - 1


def by_block(chosen: Iterable[int]) -> dict[int, int]:
    """Return offsets, in any order, as blocks with their bits."""
    bits: dict[int, list[int]] = {}
    for offset in chosen:
        block = offset >> SHIFT
        if block in bits:
            bits[block].append(offset & REST)
        else:
            bits[block] = [offset & REST]
    return {block: sum(map(_BIT.__getitem__, set(found))) for block, found in bits.items()}


def runs(pieces: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Return blocks, which come upward, as flat ranges: first offset, past the last, and so on."""
    flat: list[int] = []
    for block, bits in pieces:
        base = block << SHIFT
        rest = bits
        while rest:
            low = (rest & -rest).bit_length() - 1
            ones = rest >> low
            length = (~ones & (ones + 1)).bit_length() - 1
            if flat and flat[-1] == base + low:
                flat[-1] += length
            else:
                flat += (base + low, base + low + length)
            rest = rest >> (low + length) << (low + length)
    return tuple(flat)


def pairs(flat: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a flat tuple."""
    return zip(flat[::2], flat[1::2], strict=True)


class Marks:
    """A set of offsets, by block."""

    __slots__ = ("_bits", "count")

    def __init__(self) -> None:
        self._bits: dict[int, int] = {}
        self.count = 0
        """How many offsets are in the set."""

    def __contains__(self, offset: int) -> bool:
        return bool(self._bits.get(offset >> SHIFT, 0) >> (offset & REST) & 1)

    def bits(self, block: int) -> int:
        """Return which offsets of `block` are in the set."""
        return self._bits.get(block, 0)

    def add(self, block: int, bits: int) -> None:
        """Put offsets of one block into the set."""
        old = self._bits.get(block, 0)
        new = old | bits
        if new:
            self._bits[block] = new
            self.count += new.bit_count() - old.bit_count()

    def remove(self, block: int, bits: int) -> None:
        """Take offsets of one block out of the set, as far as they are in it."""
        old = self._bits.get(block, 0)
        new = old & ~bits
        self.count += new.bit_count() - old.bit_count()
        if new:
            self._bits[block] = new
        elif old:
            del self._bits[block]

    def add_offset(self, offset: int) -> None:
        """Put one offset into the set."""
        self.add(offset >> SHIFT, 1 << (offset & REST))


class Pool(Marks):
    """A set of offsets; the lowest are taken out first."""

    __slots__ = ("_order",)

    def __init__(self) -> None:
        super().__init__()
        self._order: list[int] = []
        """A heap of blocks; one may be there twice, or empty by now."""

    def add(self, block: int, bits: int) -> None:
        """Put offsets of one block into the pool."""
        if bits and block not in self._bits:
            heappush(self._order, block)
        super().add(block, bits)

    def take(self, count: int) -> tuple[int, int] | None:
        """Take out up to `count` of the lowest offsets, all of one block; None if it is empty."""
        while self._order:
            block = self._order[0]
            bits = self._bits.get(block)
            if bits is None:
                heappop(self._order)
                continue
            taken = lowest(bits, count)
            self.remove(block, taken)
            return block, taken
        return None
