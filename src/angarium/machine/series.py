"""What a partition remembers of one name of transactions: what is open, and what has ended.

Immutable rows of the machine's tables, which snapshots store as they are. The rules that change
them are in `transactions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from angarium.ids import Offset
from angarium.machine.changes import StagedAck
from angarium.machine.outcomes import Decided

if TYPE_CHECKING:
    from angarium.machine.partition_limits import PartitionLimits

NOTHING_COMMITTED: Final = -1
UNKNOWN_COMMITTED: Final = -2
"""Which commit was the last one before a fence was not kept, below the feature level."""

StageKey: TypeAlias = tuple[str, int, int, str]
"""Name, epoch, sequence, stage."""


class OpenStage(msgspec.Struct, frozen=True, array_like=True):
    """What waits in one stage. The batches themselves lie in the log's side file `slot`."""

    slot: int
    parts: int = 0
    batches: int = 0
    span: int = 0
    size: int = 0
    acks: tuple[StagedAck, ...] = ()


class Attempt(msgspec.Struct, frozen=True, array_like=True):
    """A transaction that is not decided here yet."""

    epoch: int
    sequence: int
    home: int | None
    opened_at: int
    stages: tuple[str, ...] = ()

    def is_overdue(self, now: int, limits: PartitionLimits) -> bool:
        """Tell whether it has been open for too long at `now`, a time of the log in µs."""
        return now - self.opened_at > limits.transaction_micros_max


class Series(msgspec.Struct, frozen=True, array_like=True):
    """All that is known of one name."""

    epoch: int = 0
    committed: int = NOTHING_COMMITTED
    """The sequence of the newest commit, and where it put its batches."""
    base_offset: int = 0
    next_offset: int = 0
    closed: tuple[int, int] = (-1, -1)
    """The highest (epoch, sequence) that has ended. Nothing at or below it is opened again."""
    attempts: tuple[Attempt, ...] = ()
    ended_at: int = 0
    """When the last one ended here, if the name's home remembers what was committed, or nothing
    was; 0: this partition has decided, and nobody else would know."""
    fenced: tuple[tuple[int, int], ...] = ()
    """Layouts of the topic whose fence lies before a commit, upward, and the sequence of the last
    commit before each; what holds for one holds for those between it and the one before. Whether a
    fence lies behind the last commit follows from offsets."""

    def attempt(self, epoch: int, sequence: int) -> Attempt | None:
        """Return the open transaction of this epoch and sequence, if there is one."""
        for attempt in self.attempts:
            if attempt.epoch == epoch and attempt.sequence == sequence:
                return attempt
        return None

    def answer_again(self, sequence: int) -> Decided:
        """Return the answer to a repeated commit at or below the newest one.

        Only of the newest one it is still known where its records are.
        """
        if sequence < self.committed:
            return Decided(True, repeated=True)
        return Decided(True, Offset(self.base_offset), Offset(self.next_offset), repeated=True)

    def committed_before(self, fence: tuple[int, int]) -> int:
        """Return the sequence of the last commit before a fence, of which layout and offset are
        given; `UNKNOWN_COMMITTED` if that was not kept."""
        for layout, committed in self.fenced:
            if layout >= fence[0]:
                return committed
        return self.committed if self.next_offset <= fence[1] else UNKNOWN_COMMITTED

    def fenced_by(self, fences: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        """Return `fenced` as it is with a commit behind all of the partition's `fences`."""
        is_new = self.committed == NOTHING_COMMITTED
        passed = [one for one, at in fences if not is_new and self.next_offset > at]
        if len(passed) == len(fences):
            return self.fenced
        kept = self.fenced
        if passed and (not kept or kept[-1][0] < passed[-1]):
            kept = (*kept, (passed[-1], UNKNOWN_COMMITTED))
        return (*kept, (fences[-1][0], self.committed))

    def ended_since(self, attempt: Attempt | None, now: int, *, commits: bool) -> int:
        """Return since when the name may be forgotten once `attempt` has ended at `now`.

        0 if it has commits that only this partition knows of: forgetting the name would let a
        repeated commit store everything once more.
        """
        is_decided_here = attempt is not None and attempt.home is None
        has_own_commits = self.committed != NOTHING_COMMITTED and not self.ended_at
        return 0 if has_own_commits or (commits and is_decided_here) else now
