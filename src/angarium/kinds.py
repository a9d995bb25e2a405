"""How a consumer group consumes, and what it does when things go wrong."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class GroupKind(IntEnum):
    """How a group consumes. Chosen when it is opened, and for as long as it lives."""

    STREAM = 0
    QUEUE = 1
    KEY = 2
    CHECKPOINT = 3

    @property
    def is_ordered(self) -> bool:
        """Whether one member at a time has a partition, and takes its records in order."""
        return self is GroupKind.STREAM

    @property
    def keeps_own_offsets(self) -> bool:
        """Whether the group's members are lent nothing, and only report how far they are."""
        return self is GroupKind.CHECKPOINT


ABOUT_KINDS: Final[Mapping[GroupKind, str]] = {
    GroupKind.STREAM: "One consumer per partition at a time, in order.",
    GroupKind.QUEUE: "Any consumer, each record on its own.",
    GroupKind.KEY: "As a queue, but records of one key one after the other.",
    GroupKind.CHECKPOINT: "The group keeps its offsets itself and reports them.",
}
"""What each does, as the schemas of the doors say it."""

LENT_KINDS: Final = tuple(one for one in GroupKind if not one.keeps_own_offsets)
"""Those whose members are lent records: for each of them `delivery` has an order."""


class Poison(IntEnum):
    """What a stream group does with a record whose attempts are used up."""

    DEAD_LETTER = 0
    RETRY = 1
    STOP = 2


class Behind(IntEnum):
    """What a group wants when records it has not seen were trimmed away."""

    ERROR = 0
    """Its consumers are told, and somebody moves it."""
    JUMP = 1
    """It is moved to the new start, which its description then shows."""
