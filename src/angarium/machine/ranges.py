"""A set of acknowledged offsets: everything below a floor, and containers above it.

Offsets above the floor are kept in blocks of 1,024. A block that is partly acknowledged is one
integer used as a bitmap; neighbouring blocks that are fully acknowledged are one run. So a
scattered acknowledgement costs the change of one small integer, a long run costs two numbers
however long it is, and nothing depends on how many acknowledgements there are.

The set is normal: the offset at the floor is never in a container, no bitmap is empty or full, and
runs neither touch nor overlap. Equal sets therefore have equal containers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BLOCK: Final = 1_024
"""Offsets per bitmap: 128 bytes, small enough to rewrite for each acknowledgement."""

_SHIFT: Final = 10
_REST: Final = BLOCK - 1
_FULL: Final = (1 << BLOCK) - 1


class Ranges:
    """Acknowledged offsets. Mutable; `copy` is a shallow copy of two flat containers."""

    __slots__ = ("_ends", "_partial", "_starts", "count", "floor")

    def __init__(self, floor: int = 0) -> None:
        self.floor = floor
        """The lowest offset that is not acknowledged."""
        self.count = 0
        """How many offsets above the floor are acknowledged."""
        self._partial: dict[int, int] = {}
        # Runs of full blocks, as parallel arrays of first and past-the-last block numbers.
        self._starts: list[int] = []
        self._ends: list[int] = []

    @property
    def containers(self) -> int:
        """How many bitmaps and runs there are."""
        return len(self._partial) + len(self._starts)

    def __contains__(self, offset: int) -> bool:
        if offset < self.floor:
            return True
        block = offset >> _SHIFT
        bits = self._partial.get(block)
        if bits is not None:
            return bool(bits >> (offset & _REST) & 1)
        return self._is_full(block)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranges):
            return NotImplemented
        return (
            self.floor == other.floor
            and self._partial == other._partial
            and self._starts == other._starts
            and self._ends == other._ends
        )

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> Ranges:
        """Return an independent set with the same offsets."""
        other = Ranges(self.floor)
        other.count = self.count
        other._partial = self._partial.copy()
        other._starts = self._starts.copy()
        other._ends = self._ends.copy()
        return other

    def adds_containers(self, start: int, end: int) -> int:
        """Return an upper bound on the containers that `add(start, end)` would create."""
        if start <= self.floor:
            return 0
        first, last = start >> _SHIFT, (end - 1) >> _SHIFT
        if first == last:
            return 0 if first in self._partial or self._is_full(first) else 1
        return 3

    def add(self, start: int, end: int) -> int:
        """Acknowledge `[start, end)` and return how many of these offsets were not before."""
        assert 0 <= start < end, "a range has a first offset and at least one"
        floor = self.floor
        if end <= floor:
            return 0
        before = floor + self.count
        if start <= floor:
            self._raise_floor(end)
        else:
            block = start >> _SHIFT
            last = (end - 1) >> _SHIFT
            if block == last:
                self._add_bits(block, ((1 << (end - start)) - 1) << (start & _REST))
            else:
                self._add_blocks(start, end)
        # Every offset below the floor and every one in a container is acknowledged; both numbers
        # only grow together with that set, so their sum counts what was added.
        return self.floor + self.count - before

    def bits(self, block: int) -> int:
        """Return which offsets of `block` are acknowledged, as a bitmap."""
        below = self.floor - (block << _SHIFT)
        if below >= BLOCK:
            return _FULL
        bits = self._partial.get(block)
        if bits is None:
            bits = _FULL if self._starts and self._is_full(block) else 0
        return bits | ((1 << below) - 1) if below > 0 else bits

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the acknowledged ranges above the floor, upward, as large as possible."""
        begin = until = -1
        for start, end in self._pieces():
            if start == until:
                until = end
            else:
                if until >= 0:
                    yield begin, until
                begin, until = start, end
        if until >= 0:
            yield begin, until

    def missing(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges within `[start, end)` that are not acknowledged, upward."""
        position = max(start, self.floor)
        while position < end:
            block = position >> _SHIFT
            if block in self._partial:
                bits = self._partial[block] >> (position & _REST)
                # The lowest zero bit: how many acknowledged offsets come first.
                skip = (~bits & (bits + 1)).bit_length() - 1
                if skip:
                    position = min(position + skip, (block + 1) << _SHIFT)
                    continue
                free = (bits & -bits).bit_length() - 1 if bits else BLOCK - (position & _REST)
                until = self._free_until(block + 1, end) if not bits else position + free
            else:
                at = bisect_right(self._starts, block) - 1
                if at >= 0 and block < self._ends[at]:
                    position = self._ends[at] << _SHIFT
                    continue
                until = self._free_until(block, end)
            until = min(until, end)
            yield position, until
            position = until

    # --- containers, for snapshots -----------------------------------------------------------

    def runs(self) -> list[tuple[int, int]]:
        """Return the runs of full blocks."""
        return list(zip(self._starts, self._ends, strict=True))

    def bitmaps(self) -> Iterator[tuple[int, bytes]]:
        """Yield the partly acknowledged blocks, each with its little-endian bitmap."""
        for block, bits in self._partial.items():
            yield block, bits.to_bytes((bits.bit_length() + 7) >> 3, "little")

    def put_runs(self, runs: list[tuple[int, int]]) -> None:
        """Take runs that `runs` returned; only into a set without any."""
        self._starts = [start for start, _ in runs]
        self._ends = [end for _, end in runs]
        self.count += sum(end - start for start, end in runs) << _SHIFT

    def put_bitmaps(self, bitmaps: Iterable[tuple[int, bytes]]) -> None:
        """Take bitmaps that `bitmaps` returned, all at once or in parts."""
        for block, content in bitmaps:
            bits = int.from_bytes(content, "little")
            self._partial[block] = bits
            self.count += bits.bit_count()

    # --- inside ------------------------------------------------------------------------------

    def _is_full(self, block: int) -> bool:
        at = bisect_right(self._starts, block) - 1
        return at >= 0 and block < self._ends[at]

    def _free_until(self, block: int, end: int) -> int:
        """Return the first offset from `block` on that may lie in a container, `end` at most."""
        at = bisect_left(self._starts, block)
        past = (end + _REST) >> _SHIFT
        limit = min(self._starts[at], past) if at < len(self._starts) else past
        return min(min(self._partial_within(block, limit), default=limit) << _SHIFT, end)

    def _pieces(self) -> Iterator[tuple[int, int]]:
        """Yield what the containers hold, upward; neighbours may touch."""
        runs = iter(self.runs())
        run = next(runs, None)
        for block in sorted(self._partial):
            while run is not None and run[0] < block:
                yield run[0] << _SHIFT, run[1] << _SHIFT
                run = next(runs, None)
            base, bits = block << _SHIFT, self._partial[block]
            while bits:
                low = (bits & -bits).bit_length() - 1
                ones = bits >> low
                length = (~ones & (ones + 1)).bit_length() - 1
                yield base + low, base + low + length
                bits = bits >> (low + length) << (low + length)
        while run is not None:
            yield run[0] << _SHIFT, run[1] << _SHIFT
            run = next(runs, None)

    def _add_bits(self, block: int, mask: int) -> None:
        """Acknowledge the offsets of `mask` in one block, all of them above the floor."""
        partial = self._partial
        old = partial.get(block, 0)
        if not old and self._starts and self._is_full(block):
            return
        bits = old | mask
        if bits == _FULL:
            partial.pop(block, None)
            self.count -= old.bit_count()
            self._add_run(block, block + 1)
        else:
            partial[block] = bits
            self.count += bits.bit_count() - old.bit_count()

    def _add_blocks(self, start: int, end: int) -> None:
        """Acknowledge a range above the floor that touches several blocks."""
        first, past = start >> _SHIFT, end >> _SHIFT
        if start & _REST:
            self._add_bits(first, _FULL >> (start & _REST) << (start & _REST))
            first += 1
        if end & _REST:
            self._add_bits(past, (1 << (end & _REST)) - 1)
        if first < past:
            for block in self._partial_within(first, past):
                self.count -= self._partial.pop(block).bit_count()
            self._add_run(first, past)

    def _add_run(self, first: int, past: int) -> None:
        """Add full blocks, joined with the runs they touch. None of them is partial."""
        starts, ends = self._starts, self._ends
        # Runs [left, right) touch or overlap the new one and become part of it.
        left = bisect_left(ends, first)
        right = bisect_right(starts, past)
        covered = 0
        if left < right:
            covered = sum(ends[at] - starts[at] for at in range(left, right))
            first = min(first, starts[left])
            past = max(past, ends[right - 1])
        starts[left:right] = [first]
        ends[left:right] = [past]
        self.count += (past - first - covered) << _SHIFT

    def _partial_within(self, first: int, past: int) -> list[int]:
        """Return the partial blocks in `[first, past)`, at the cost of the smaller side."""
        partial = self._partial
        if past - first < len(partial):
            return [block for block in range(first, past) if block in partial]
        return [block for block in partial if first <= block < past]

    def _raise_floor(self, floor: int) -> None:
        """Move the floor up to `floor` and on over everything acknowledged above it."""
        partial, starts, ends = self._partial, self._starts, self._ends
        if partial and (floor >> _SHIFT) > (self.floor >> _SHIFT):
            for block in self._partial_within(self.floor >> _SHIFT, floor >> _SHIFT):
                self.count -= partial.pop(block).bit_count()
        while True:
            block = floor >> _SHIFT
            while starts and starts[0] <= block:
                if ends[0] > block:
                    block = ends[0]
                    floor = block << _SHIFT
                self.count -= (ends[0] - starts[0]) << _SHIFT
                del starts[0], ends[0]
            old = partial.get(block)
            if old is None:
                break
            shift = floor & _REST
            bits = old >> shift
            ones = (~bits & (bits + 1)).bit_length() - 1
            floor += ones
            self.count -= old.bit_count()
            if floor & _REST or not ones:
                kept = old >> (shift + ones) << (shift + ones)
                if kept:
                    partial[block] = kept
                    self.count += kept.bit_count()
                else:
                    del partial[block]
                break
            del partial[block]
        self.floor = floor
