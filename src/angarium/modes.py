"""The three delivery modes: not three pipelines, but three moments at which to answer."""

from __future__ import annotations

from enum import IntEnum


class DeliveryMode(IntEnum):
    """What an acknowledgement of a publish means. The numbers are those of the wire."""

    CONSISTENT = 0
    """Committed and applied: a majority of replicas has fsynced it."""
    EVENTUAL = 1
    """The leader has appended it; its offset is provisional until a majority has it too."""
    PERFORMANCE = 2
    """Handed to the subscribers connected now, from memory; stored nowhere."""
