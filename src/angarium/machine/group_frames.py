"""Consumer groups in a snapshot: many small ones in a frame, a large one over several frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import CorruptData
from angarium.kinds import GroupKind
from angarium.machine.changes import GroupSettings, Member
from angarium.machine.cursors import Attempts, Group, Groups, Intent
from angarium.machine.snapshots import ROWS_PER_FRAME, Part, decoded, frame, table_frames

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import Buffer

GROUPS_PER_FRAME: Final = 250
"""Small groups encoded at once: under 2 ms."""


class _Row(msgspec.Struct, frozen=True, array_like=True):
    """A group without its large tables, which follow if they are large."""

    name: str
    kind: GroupKind
    settings: GroupSettings
    floor: int
    generation: int
    opened_index: int
    next_dead_letter: int
    members_version: int
    members: tuple[Member, ...]
    paused: bool
    runs: list[tuple[int, int]]
    bitmaps: list[tuple[int, bytes]]
    attempts: list[tuple[int, Attempts]]
    intents: list[tuple[int, Intent]]


_rows = msgspec.msgpack.Decoder(list[_Row])
_bitmaps = msgspec.msgpack.Decoder(list[tuple[int, bytes]])
_attempts = msgspec.msgpack.Decoder(list[tuple[int, Attempts]])
_intents = msgspec.msgpack.Decoder(list[tuple[int, Intent]])


def group_frames(groups: Groups, frozen: dict[str, Group | None]) -> Iterator[bytes]:
    """Yield all groups as they were when `frozen` was made, taking them out of it."""
    pending: list[_Row] = []
    weight = 0
    for name in list(frozen):
        # Taken out before it is looked at: what happens to the group afterwards is not for us.
        group = frozen[name] or groups.by_name[name]
        rows = group.acked.containers + len(group.attempts) + len(group.intents)
        if rows > ROWS_PER_FRAME:
            if pending:
                yield frame(Part.GROUPS, pending)
                pending, weight = [], 0
            # Encoded over several slices, during which the group may change: work on a copy.
            group = frozen[name] or group.copy()
            frozen.pop(name)
            yield from _large_group_frames(group)
            continue
        frozen.pop(name)
        pending.append(
            _row(
                group,
                bitmaps=list(group.acked.bitmaps()),
                attempts=list(group.attempts.items()),
                intents=list(group.intents.items()),
            )
        )
        weight += rows
        if len(pending) >= GROUPS_PER_FRAME or weight > ROWS_PER_FRAME:
            yield frame(Part.GROUPS, pending)
            pending, weight = [], 0
    if pending:
        yield frame(Part.GROUPS, pending)


def restore_groups(groups: Groups, payload: Buffer) -> Group | None:
    """Add the groups of a frame and return the last of them, which may go on in later frames."""
    group = None
    for row in decoded(_rows, payload):
        group = Group(row.name, row.kind, row.settings, floor=row.floor, index=row.opened_index)
        group.generation = row.generation
        group.next_dead_letter = row.next_dead_letter
        group.members_version, group.members = row.members_version, row.members
        group.paused = row.paused
        group.acked.put_runs(row.runs)
        group.acked.put_bitmaps(row.bitmaps)
        group.attempts.update(row.attempts)
        group.intents.update(row.intents)
        groups.by_name[row.name] = group
    return group


def continue_group(group: Group | None, part: Part, payload: Buffer) -> None:
    """Add what a frame holds of a large group."""
    if group is None:
        raise CorruptData("a snapshot continues a group that it did not begin")
    if part is Part.GROUP_BITMAPS:
        bitmaps = decoded(_bitmaps, payload)
        group.acked.put_bitmaps(bitmaps)
    elif part is Part.GROUP_ATTEMPTS:
        attempts = decoded(_attempts, payload)
        group.attempts.update(attempts)
    else:
        intents = decoded(_intents, payload)
        group.intents.update(intents)


def _large_group_frames(group: Group) -> Iterator[bytes]:
    yield frame(Part.GROUPS, [_row(group, bitmaps=[], attempts=[], intents=[])])
    yield from table_frames(Part.GROUP_BITMAPS, group.acked.bitmaps())
    yield from table_frames(Part.GROUP_ATTEMPTS, group.attempts.items())
    yield from table_frames(Part.GROUP_INTENTS, group.intents.items())


def _row(
    group: Group,
    *,
    bitmaps: list[tuple[int, bytes]],
    attempts: list[tuple[int, Attempts]],
    intents: list[tuple[int, Intent]],
) -> _Row:
    return _Row(
        name=group.name,
        kind=group.kind,
        settings=group.settings,
        floor=group.floor,
        generation=group.generation,
        opened_index=group.opened_index,
        next_dead_letter=group.next_dead_letter,
        members_version=group.members_version,
        members=group.members,
        paused=group.paused,
        runs=group.acked.runs(),
        bitmaps=bitmaps,
        attempts=attempts,
        intents=intents,
    )
