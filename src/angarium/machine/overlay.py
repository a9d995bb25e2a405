"""Tables, and thin sheets laid over them on which a leader writes ahead.

A machine keeps its rows in plain dictionaries. A projection forks them by laying an empty `Overlay`
over each: reads fall through, writes stay on the sheet. Making one costs nothing, however large the
table below, and a written row leaves the sheet when the table below has caught up with it.

Rows are immutable values. The table below may move on at any time, as long as it moves through the
same writes: rows written on the sheet hide it, all others are the same in both.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

K = TypeVar("K")
V = TypeVar("V")
Key_contra = TypeVar("Key_contra", contravariant=True)


class Table(Protocol[Key_contra, V]):
    """What the machine's rules need of a table."""

    def get(self, key: Key_contra, /) -> V | None:
        """Return the row at `key`, if there is one."""

    def __setitem__(self, key: Key_contra, row: V, /) -> None:
        """Put a row, in place of the one that was there."""

    def __delitem__(self, key: Key_contra, /) -> None:
        """Remove the row at `key`, which is there."""


class RecencyTable(Table[K, V], Protocol[K, V]):
    """A table that also knows which row has gone longest without a write."""

    def oldest(self) -> K:
        """Return the key whose last write is furthest back; the table is not empty."""

    def in_order(self) -> Iterator[K]:
        """Yield all keys, the one whose last write is furthest back first."""


class Recency(OrderedDict[K, V]):
    """The real table with an order of writes."""

    def __setitem__(self, key: K, row: V) -> None:
        """Put a row, which becomes the most recently written one."""
        super().__setitem__(key, row)
        self.move_to_end(key)

    def oldest(self) -> K:
        """Return the key whose last write is furthest back."""
        return next(iter(self))

    def in_order(self) -> Iterator[K]:
        """Yield all keys, the one whose last write is furthest back first."""
        return iter(self)


class Overlay(Generic[K, V]):
    """A sheet over a table. `step` counts what was projected; rows remember theirs."""

    __slots__ = ("_base", "_rows", "_written", "step")

    def __init__(self, base: Table[K, V]) -> None:
        self._base = base
        self._rows: dict[K, tuple[int, V | None]] = {}
        """The sheet in the order of writes. A row of `None` was removed."""
        self._written: deque[tuple[int, K]] = deque()
        self.step = 0

    def __len__(self) -> int:
        """Return how many rows lie on the sheet."""
        return len(self._rows)

    def get(self, key: K, /) -> V | None:
        """Return the row at `key`, if there is one."""
        found = self._rows.get(key)
        return self._base.get(key) if found is None else found[1]

    def __setitem__(self, key: K, row: V, /) -> None:
        """Put a row, which becomes the most recently written one."""
        self._write(key, row)

    def __delitem__(self, key: K, /) -> None:
        """Remove the row at `key`."""
        self._write(key, None)

    def forget(self, step: int) -> None:
        """Drop what was written at or before `step`: the table below has it by now."""
        written, rows = self._written, self._rows
        while written and written[0][0] <= step:
            at, key = written.popleft()
            found = rows.get(key)
            # Written again since, by a step that is not confirmed yet: the newer row stays.
            if found is not None and found[0] == at:
                del rows[key]

    def _write(self, key: K, row: V | None) -> None:
        # Out and in again, so that the sheet stays in the order of writes.
        self._rows.pop(key, None)
        self._rows[key] = (self.step, row)
        self._written.append((self.step, key))


class RecencyOverlay(Overlay[K, V]):
    """A sheet over a table with an order of writes."""

    __slots__ = ("_order",)

    def __init__(self, base: Recency[K, V]) -> None:
        super().__init__(base)
        self._order = base

    def oldest(self) -> K:
        """Return the key whose last write is furthest back: below if possible, else here."""
        return next(self.in_order())

    def in_order(self) -> Iterator[K]:
        """Yield all keys, the one whose last write is furthest back first."""
        rows = self._rows
        yield from (key for key in self._order if key not in rows)
        yield from (key for key, (_, row) in rows.items() if row is not None)
