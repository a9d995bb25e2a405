"""What the leader of a partition does for its consumer groups: decides, and does nothing itself.

Inputs in, effects out: time is an argument, chance a seed. `GroupDelivery` is one group on one
partition; `RecordSource` is what it wants to know of the log, and `assignment` says who should have
which partition.
"""

from angarium.delivery.assignment import assignment
from angarium.delivery.effects import (
    Accepted,
    Answer,
    DeadLetterDue,
    Delivery,
    Effects,
    Held,
    Proposal,
    Taken,
    Waiting,
)
from angarium.delivery.group import GRACE_MICROS, GroupDelivery
from angarium.delivery.source import RecordSource, Stretch

__all__ = [
    "GRACE_MICROS",
    "Accepted",
    "Answer",
    "DeadLetterDue",
    "Delivery",
    "Effects",
    "GroupDelivery",
    "Held",
    "Proposal",
    "RecordSource",
    "Stretch",
    "Taken",
    "Waiting",
    "assignment",
]
