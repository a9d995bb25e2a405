"""What may happen to consumer groups. One `Cursors` entry carries any number of these.

Most of them name the group's `generation`: the index of the entry that last opened or moved the
group. A change made for an older generation is refused, so an acknowledgement that was under way
while an operator moved the group cannot disturb the new position.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from angarium.ids import Index, Micros, Offset, Sequence
from angarium.kinds import Behind, GroupKind, Poison

RETRY_DELAY_LEVEL: Final = 8
"""From this feature level on a `Retry` carries its delay. Below it, replicas of earlier releases
may apply it, whose state has no place for a delay."""


class GroupSettings(msgspec.Struct, frozen=True, array_like=True):
    """What the delivery logic needs to know, and every new leader must find unchanged."""

    max_attempts: int = 5
    ack_timeout_micros: int = 30_000_000
    backoff_min_micros: int = 100_000
    backoff_max_micros: int = 60_000_000
    dead_letter_topic: str = "angarium.dlq"
    poison: Poison = Poison.DEAD_LETTER
    behind: Behind = Behind.ERROR


class Member(msgspec.Struct, frozen=True, array_like=True):
    """Who belongs to a group."""

    name: str
    node: int = 0
    """The node it is connected to."""


class Open(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Create a group that starts at `floor`; one of the same kind that exists stays as it is."""

    group: str
    kind: GroupKind
    floor: Offset
    settings: GroupSettings = GroupSettings()


class Ack(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Acknowledge ranges. One that begins at or below the floor moves the floor."""

    group: str
    generation: Index
    ranges: tuple[int, ...]
    """First offset, past the last offset, and so on for each range."""


class Retry(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """A record has had `attempts` attempts and is not to be delivered before `not_before`.

    Committed before the delivery, so that no failover forgets an attempt. Attempts never go down.
    The leader that computed `not_before` may have had a wrong clock, so each leader bounds the wait
    by `delay` as well.
    """

    group: str
    generation: Index
    offset: Offset
    attempts: int
    not_before: Micros
    reason: str = ""
    delay: int | None = None
    """How long (µs) the record is to wait. None below `RETRY_DELAY_LEVEL`."""


class DeadLetter(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Promise to put a record into the dead-letter topic; the answer is its sequence there."""

    group: str
    generation: Index
    offset: Offset
    reason: str = ""


class DeadLettered(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """The dead letter with this sequence is stored; its record counts as acknowledged."""

    group: str
    offset: Offset
    sequence: Sequence


class Seek(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Set the group to `floor` and forget what was acknowledged or tried above it."""

    group: str
    floor: Offset


class Set(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """Give the group other settings."""

    group: str
    settings: GroupSettings


class Pause(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """Stop deliveries, or let them go on."""

    group: str
    paused: bool


class Members(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """Replace the member list; refused unless `version` is the list's next one."""

    group: str
    version: int
    members: tuple[Member, ...]


class Delete(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """Forget the group."""

    group: str


StagedAck: TypeAlias = tuple[str, int, int, int]
"""Group, generation, first offset, past the last offset: waits for its transaction."""

Change: TypeAlias = (
    Open | Ack | Retry | DeadLetter | DeadLettered | Seek | Set | Pause | Members | Delete
)
