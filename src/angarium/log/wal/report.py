"""What opening a write-ahead log found, group by group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from angarium.ids import Index, RaftGroupId, Term
    from angarium.raft.messages import HardState


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """What a group has lost, or may have lost, to corruption.

    While a group has it, its replica must neither vote nor campaign nor acknowledge anything.
    """

    first_damaged_index: Index | None
    """The lowest entry that is lost; None if every entry is there."""

    last_damaged_index: Index | None
    """The highest one; None if nobody can say how far the log went, or if none is lost."""

    hard_state_intact: bool
    """True only if no newer hard state than the one recovered can have existed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredGroup:
    """One group as the log has it."""

    hard_state: HardState
    first_index: Index
    """One after the compaction point."""
    last_index: Index
    """The compaction point's index where there are no entries."""
    last_term: Term | None
    snapshot_index: Index
    """The compaction point: a durable snapshot stands for every entry up to here."""
    snapshot_term: Term | None
    damage: Damage | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What was found at the opening of the log."""

    groups: Mapping[RaftGroupId, RecoveredGroup]

    unknown_groups: bool
    """True if damage may have hidden whole groups. Whoever finds traces elsewhere of a group that
    is not in `groups` must then treat it as damaged, never as new."""

    was_clean: bool
    """The log had been closed; its payloads are verified when they are read, not now."""

    cut_bytes: int
    """Length of a sync round at the end that was never completely written, and is dropped. Its
    sync never returned, so nobody was told that it was there."""
