"""How a consumer group consumes, and what it does when things go wrong."""

from __future__ import annotations

from enum import IntEnum


class GroupKind(IntEnum):
    """How a group consumes. Chosen when it is opened, and for as long as it lives."""

    STREAM = 0
    """One active member per partition, in order."""
    QUEUE = 1
    """Any member, each record acknowledged on its own."""
    KEY = 2
    """As a queue, but one key with one member at a time, in order."""
    CHECKPOINT = 3
    """The group keeps its offsets itself and reports them, so that its lag is visible."""


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
