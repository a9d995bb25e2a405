"""Consumer groups: where each one stands in this partition.

A group's position is a floor, below which everything is acknowledged, with containers of
acknowledged ranges above it, and what is known of the attempts at records that failed. The floor
never passes a record that is not acknowledged, whatever is acknowledged around it. Trimming does
not move a group: one that stands below the partition's start can be seen to (`is_behind`), and is
moved only by a `Seek`.

Every change touches one group and costs the same with ten thousand groups as with one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import msgspec

from angarium.errors import (
    AlreadyExists,
    GroupFenced,
    InvalidArgument,
    NotFound,
    OffsetOutOfRange,
)
from angarium.ids import Index, Offset, Sequence
from angarium.machine import changes
from angarium.machine.outcomes import (
    Acknowledged,
    DeadLettering,
    Done,
    MembersSet,
    Outcome,
    Positioned,
    Refused,
    limited,
    oversized,
    refused,
)
from angarium.machine.partition_limits import (
    NAME_CHARACTERS_MAX,
    REASON_CHARACTERS_MAX,
    PartitionLimits,
)
from angarium.machine.ranges import Ranges

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.kinds import GroupKind
    from angarium.machine.changes import Change, GroupSettings, Member, StagedAck


class Attempts(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What became of a record so far."""

    count: int
    not_before: int
    first_at: int
    last_at: int
    """When the last attempt was committed, by the partition's time: never earlier than the clock of
    the leader that computed `not_before`."""
    reason: str
    delay: int | None = None
    """How long the record is to wait; None if the entry was written below `RETRY_DELAY_LEVEL`."""

    def delay_max(self, settings: GroupSettings) -> int:
        """Return how long (µs) the record waits at most, however late `not_before` is.

        An entry without a delay is bounded by the group's `backoff_max`. If its member asked for a
        longer delay, then by that: `not_before` and `last_at` come from the same clock.
        """
        if self.delay is not None:
            return self.delay
        return max(settings.backoff_max_micros, self.not_before - self.last_at)


class Intent(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A dead letter that is promised and not known to be stored yet."""

    sequence: int
    generation: int
    reason: str


class Group:
    """One consumer group's state. Values in its tables are immutable; `copy` is shallow."""

    __slots__ = (
        "acked",
        "attempts",
        "generation",
        "intents",
        "kind",
        "members",
        "members_version",
        "name",
        "next_dead_letter",
        "opened_index",
        "paused",
        "settings",
    )

    def __init__(
        self, name: str, kind: GroupKind, settings: GroupSettings, *, floor: int, index: int
    ) -> None:
        self.name = name
        self.kind = kind
        self.settings = settings
        self.acked = Ranges(floor)
        self.attempts: dict[int, Attempts] = {}
        self.intents: dict[int, Intent] = {}
        self.generation = index
        """The index of the entry that last opened or moved the group."""
        self.opened_index = index
        """Part of the name under which dead letters are published: a group that is deleted and
        opened again counts its dead letters from 0 again, and must not look like the old one."""
        self.next_dead_letter = 0
        self.members: tuple[Member, ...] = ()
        self.members_version = 0
        self.paused = False

    @property
    def floor(self) -> int:
        """The lowest offset that is not acknowledged."""
        return self.acked.floor

    def is_behind(self, start_offset: int) -> bool:
        """Tell whether records that the group has not seen were trimmed away."""
        return self.acked.floor < start_offset

    def copy(self) -> Group:
        """Return an independent group in the same state."""
        other = Group.__new__(Group)
        for slot in Group.__slots__:
            setattr(other, slot, getattr(self, slot))
        other.acked = self.acked.copy()
        other.attempts = self.attempts.copy()
        other.intents = self.intents.copy()
        return other


class Groups:
    """All groups of one partition."""

    __slots__ = ("_unsaved", "by_name")

    def __init__(self) -> None:
        self.by_name: dict[str, Group] = {}
        self._unsaved: dict[str, Group | None] | None = None
        """While a snapshot is written: groups it still needs, with a copy if they changed."""

    def change(
        self, change: Change, *, index: int, time: int, next_offset: int, limits: PartitionLimits
    ) -> Outcome:
        """Carry out one change. A refusal changes nothing."""
        if type(change) is changes.Ack:
            return self._acknowledge(change, next_offset, limits)
        if isinstance(change, changes.Open):
            return self._open(change, index, next_offset, limits)
        group = self.by_name.get(change.group)
        if group is None:
            return refused(NotFound, f"there is no group {change.group}")
        if isinstance(change, changes.Retry | changes.DeadLetter):
            verdict = _judge_record(group, change, next_offset)
            if verdict is not None:
                return verdict
        return self._change(group, change, index=index, time=time, end=next_offset, limits=limits)

    def acknowledge(self, acks: Iterable[StagedAck], *, next_offset: int) -> None:
        """Acknowledge what a committed transaction carried.

        The commit is decided, so no limit applies any more; what waits in a stage is bounded. A
        group that is gone or was moved meanwhile wants nothing of it.
        """
        for name, generation, start, end in acks:
            group = self.by_name.get(name)
            # The group was moved after the transaction had read. Its acknowledgements speak of
            # another round.
            if group is not None and group.generation == generation and start < next_offset:
                self._own(group)
                _settle(group, start, min(end, next_offset))

    def lowest_floor(self) -> int | None:
        """Return the floor of the group furthest behind; nothing when there is no group."""
        return min((group.acked.floor for group in self.by_name.values()), default=None)

    # --- copy on write, for snapshots ----------------------------------------------------------

    def freeze(self) -> dict[str, Group | None]:
        """Begin a snapshot: from now on a group is copied before its first change.

        The caller takes names out of what is returned as it goes; `None` stands for "unchanged".
        Only one snapshot is written at a time; a new one takes over.
        """
        self._unsaved = dict.fromkeys(self.by_name)
        return self._unsaved

    def thaw(self, frozen: dict[str, Group | None]) -> None:
        """End the snapshot that `freeze` began."""
        if self._unsaved is frozen:
            self._unsaved = None

    def _own(self, group: Group) -> None:
        unsaved = self._unsaved
        if unsaved and unsaved.get(group.name, group) is None:
            # Copy on write: the snapshot that is being written shows the group as it was.
            unsaved[group.name] = group.copy()

    # --- one method per change -----------------------------------------------------------------

    def _acknowledge(
        self, change: changes.Ack, next_offset: int, limits: PartitionLimits
    ) -> Outcome:
        group = self.by_name.get(change.group)
        if group is None:
            return refused(NotFound, f"there is no group {change.group}")
        # Decided by a leader that had not heard of a seek: its loans are nobody's any more.
        if change.generation != group.generation:
            return _fenced(group, change.generation)
        ranges = change.ranges
        if len(ranges) & 1:
            return refused(InvalidArgument, "a range has two ends")
        pairs = list(zip(ranges[::2], ranges[1::2], strict=True))
        for start, end in pairs:
            if not 0 <= start < end <= next_offset:
                return refused(OffsetOutOfRange, f"[{start}, {end}) is not in the partition")
        if not _has_room(group, pairs, limits):
            return limited("containers_max", f"{change.group} has too many scattered ranges")
        self._own(group)
        added = 0
        for start, end in pairs:
            added += _settle(group, start, end)
        return Acknowledged(Offset(group.acked.floor), added)

    def _open(
        self, change: changes.Open, index: int, next_offset: int, limits: PartitionLimits
    ) -> Outcome:
        group = self.by_name.get(change.group)
        if group is not None:
            if group.kind is not change.kind:
                return refused(AlreadyExists, f"{change.group} is of kind {group.kind.name}")
            return Positioned(Offset(group.floor), Index(group.generation), repeated=True)
        if not 0 < len(change.group) <= NAME_CHARACTERS_MAX:
            return oversized("NAME_CHARACTERS_MAX", "a group's name is too long or empty")
        if len(self.by_name) >= limits.groups_max:
            return limited("groups_max", "the partition has no room for another group")
        if not 0 <= change.floor <= next_offset:
            return refused(OffsetOutOfRange, f"{change.floor} is not in [0, {next_offset}]")
        self.by_name[change.group] = Group(
            change.group, change.kind, change.settings, floor=change.floor, index=index
        )
        return Positioned(change.floor, Index(index))

    def _change(
        self,
        group: Group,
        change: Change,
        *,
        index: int,
        time: int,
        end: int,
        limits: PartitionLimits,
    ) -> Outcome:
        outcome: Outcome
        match change:
            case changes.Retry():
                outcome = self._retry(group, change, time, limits)
            case changes.DeadLetter():
                outcome = self._promise(group, change, limits)
            case changes.DeadLettered():
                outcome = self._buried(group, change)
            case changes.Seek():
                outcome = self._seek(group, change, index, end)
            case changes.Set():
                self._own(group)
                group.settings = change.settings
                outcome = Done()
            case changes.Pause():
                self._own(group)
                outcome = Done(group.paused != change.paused)
                group.paused = change.paused
            case changes.Members():
                outcome = self._enlist(group, change, limits)
            case changes.Delete():
                self._own(group)
                del self.by_name[group.name]
                outcome = Done()
            case changes.Ack() | changes.Open():
                raise AssertionError("these go another way")
            case _:
                assert_never(change)
        return outcome

    def _retry(
        self, group: Group, change: changes.Retry, time: int, limits: PartitionLimits
    ) -> Outcome:
        old = group.attempts.get(change.offset)
        if old is None and len(group.attempts) >= limits.retries_max:
            return limited("retries_max", f"{group.name} has too many records to try again")
        # Attempts only grow, or a poisonous record would never come to an end.
        if change.attempts < (old.count if old is not None else 0):
            return refused(InvalidArgument, "attempts do not become fewer")
        self._own(group)
        group.attempts[change.offset] = Attempts(
            change.attempts,
            change.not_before,
            old.first_at if old is not None else time,
            time,
            change.reason[:REASON_CHARACTERS_MAX],
            change.delay,
        )
        return Done()

    def _promise(
        self, group: Group, change: changes.DeadLetter, limits: PartitionLimits
    ) -> Outcome:
        old = group.intents.get(change.offset)
        if old is not None and old.generation == group.generation:
            # Two leaders may promise the same letter. It has one sequence, and is stored once.
            # Planted as double-dead-letter.
            return DeadLettering(Sequence(old.sequence), repeated=True)
        if old is None and len(group.intents) >= limits.retries_max:
            return limited("retries_max", f"{group.name} has too many dead letters under way")
        self._own(group)
        if old is None:
            sequence = group.next_dead_letter
            group.next_dead_letter += 1
        else:
            # Promised before the group was moved, and not stored yet: one letter serves both.
            sequence = old.sequence
        group.intents[change.offset] = Intent(
            sequence, group.generation, change.reason[:REASON_CHARACTERS_MAX]
        )
        return DeadLettering(Sequence(sequence))

    def _buried(self, group: Group, change: changes.DeadLettered) -> Outcome:
        intent = group.intents.get(change.offset)
        # Reported before, by this leader or another one.
        if intent is None or intent.sequence != change.sequence:
            return Done(changed=False)
        self._own(group)
        del group.intents[change.offset]
        if intent.generation == group.generation:
            # Only now is the record settled: a letter that was promised and never stored would be
            # a record lost. If the group was moved meanwhile, the record is to be handled again.
            _settle(group, change.offset, change.offset + 1)
        return Done()

    def _seek(self, group: Group, change: changes.Seek, index: int, end: int) -> Outcome:
        if not 0 <= change.floor <= end:
            return refused(OffsetOutOfRange, f"{change.floor} is not in [0, {end}]")
        self._own(group)
        group.acked = Ranges(change.floor)
        group.attempts = {}
        # Promised dead letters stay: their sequences must all be stored for the next to follow.
        group.generation = index
        return Positioned(change.floor, Index(index))

    def _enlist(self, group: Group, change: changes.Members, limits: PartitionLimits) -> Outcome:
        # Optimistic locking: whoever changes the list has seen the one before it.
        if change.version != group.members_version + 1:
            return refused(GroupFenced, f"the next version is {group.members_version + 1}")
        if len(change.members) > limits.members_max:
            return limited("members_max", f"{group.name} has too many members")
        self._own(group)
        group.members, group.members_version = change.members, change.version
        return MembersSet(change.version)


def _judge_record(
    group: Group, change: changes.Retry | changes.DeadLetter, next_offset: int
) -> Refused | None:
    if change.generation != group.generation:
        return _fenced(group, change.generation)
    if not 0 <= change.offset < next_offset:
        return refused(OffsetOutOfRange, f"{change.offset} is not in the partition")
    if change.offset in group.acked:
        return refused(NotFound, f"{change.offset} is acknowledged already")
    return None


def _fenced(group: Group, generation: int) -> Refused:
    return refused(GroupFenced, f"{group.name} was moved; {generation} is not its generation")


def _has_room(group: Group, pairs: list[tuple[int, int]], limits: PartitionLimits) -> bool:
    """Tell whether the containers that acknowledging `pairs` may need are within the limit."""
    acked = group.acked
    room = limits.containers_max - acked.containers
    # A range makes at most three containers: two ends and a run between them.
    if 3 * len(pairs) <= room:
        return True
    needed = sum(acked.adds_containers(start, end) for start, end in pairs)
    return needed == 0 or needed <= room


def _settle(group: Group, start: int, end: int) -> int:
    """Acknowledge `[start, end)`, but for records whose dead letter is promised.

    Such a record ends when its letter is stored, not before: the floor waits for it.
    """
    intents = group.intents
    if not intents:
        return _acknowledge(group, start, end)
    # By whichever is fewer: a single acknowledgement costs the same beside many promised letters.
    if end - start < len(intents):
        promised = [offset for offset in range(start, end) if offset in intents]
    else:
        promised = [offset for offset in intents if start <= offset < end]
    held = [one for one in promised if intents[one].generation == group.generation]
    added = 0
    for offset in sorted(held):
        if start < offset:
            added += _acknowledge(group, start, offset)
        start = offset + 1
    return added + (_acknowledge(group, start, end) if start < end else 0)


def _acknowledge(group: Group, start: int, end: int) -> int:
    attempts = group.attempts
    if attempts:
        if end - start < len(attempts):
            for offset in range(start, end):
                attempts.pop(offset, None)
        else:
            for offset in [one for one in attempts if start <= one < end]:
                del attempts[offset]
    return group.acked.add(start, end)
