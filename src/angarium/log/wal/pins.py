"""Which file each group still needs, kept so that releasing costs nothing per entry or group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Set

    from angarium.ids import RaftGroupId

_NOBODY: Final[Set[RaftGroupId]] = frozenset()


class Pins:
    """For every group the oldest file with a live entry of it, as far as that is durable."""

    def __init__(self) -> None:
        self._sequences: dict[RaftGroupId, int] = {}
        self._groups: dict[int, set[RaftGroupId]] = {}

    def at(self, sequence: int) -> Set[RaftGroupId]:
        """Return the groups whose oldest live entry lies in the file `sequence`."""
        return self._groups.get(sequence, _NOBODY)

    def move(self, group: RaftGroupId, sequence: int | None) -> None:
        """Record that `group` needs `sequence` and what is newer; None if it needs nothing."""
        before = self._sequences.get(group)
        if before == sequence:
            return
        if before is not None:
            groups = self._groups[before]
            groups.discard(group)
            if not groups:
                del self._groups[before]
            del self._sequences[group]
        if sequence is not None:
            self._sequences[group] = sequence
            self._groups.setdefault(sequence, set()).add(group)
