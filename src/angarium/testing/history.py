"""What clients did and saw: the only thing the checkers believe.

A history is made of operations, each with the time it was invoked and the time its answer came.
`ok` is a promise kept or broken, `fail` a definite no, `info` an answer that never came or that
said "unknown". The final logs are what every replica holds after everything has healed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.testing.group_history import GroupHistory

if TYPE_CHECKING:
    from angarium.ids import NodeId, RaftGroupId
    from angarium.modes import DeliveryMode


SENT_BACK: Final = b"sent-back"
"""How the value of a dead letter begins that was sent back; the letter's number follows."""


class Result(Enum):
    """How an operation ended, as its caller knows it."""

    OK = "ok"
    FAIL = "fail"
    INFO = "info"


@dataclass(slots=True)
class Publish:
    """One batch, from its first attempt to its last answer."""

    group: RaftGroupId
    producer: int
    epoch: int
    sequence: int
    """Of the first record."""
    values: tuple[bytes, ...]
    mode: DeliveryMode
    invoked: int
    completed: int | None = None
    result: Result = Result.INFO
    base_offset: int = -1
    node: NodeId | None = None
    term: int = 0
    provisional: bool = False
    attempts: int = 0
    stored: bool = False
    """Its producer was told that it is in the log, though not where."""


@dataclass(slots=True)
class Fetch:
    """Records read from one node, in the order they came."""

    group: RaftGroupId
    node: NodeId
    invoked: int
    completed: int
    from_offset: int
    records: tuple[tuple[int, bytes], ...]
    end: int | None = None
    """Where the log ends, as the answer says; None if it does not."""
    is_empty: bool = False
    """Whether it brought no batch at all."""
    reader: str = ""
    """Who asked, if it is one that is shown never less than before."""
    at_least: int = 0
    """Up to where it asked to be shown all: what it has seen, or has written itself."""
    staleness_max: int | None = None
    """How stale (µs) it allowed the answer to be."""
    staleness: int | None = None
    """How stale (µs) the answer says to be at most."""
    answered: int = 0
    """When the answer was given; as far as that is not known, when it was asked for."""


@dataclass(slots=True)
class HighWater:
    """A read-index read: "everything below `end` is committed"."""

    group: RaftGroupId
    node: NodeId
    invoked: int
    completed: int
    end: int


@dataclass(slots=True)
class Trim:
    """Somebody's wish that a log begin later."""

    group: RaftGroupId
    start: int
    invoked: int
    result: Result = Result.INFO
    age_min: int | None = None
    """By age: nothing that goes is younger than this (µs) when it is asked for."""


@dataclass(slots=True)
class Transaction:
    """Batches of one or several partitions that become visible together or not at all."""

    name: str
    epoch: int
    sequence: int
    home: RaftGroupId | None
    """The group that decides; None if its only partition does."""
    values: dict[RaftGroupId, tuple[bytes, ...]]
    """What a commit publishes, in order."""
    dropped: dict[RaftGroupId, tuple[bytes, ...]]
    """What was staged too and must never be seen."""
    invoked: int
    completed: int | None = None
    committed: bool | None = None
    """How it ended; None while nobody knows."""
    placed: dict[RaftGroupId, tuple[int, int, int]] = field(default_factory=dict)
    """Where each partition said it put them, `[from, to)`, and when that was told."""


class LogRecord(NamedTuple):
    """One record of a final log."""

    offset: int
    value: bytes
    producer: int
    epoch: int
    sequence: int


@dataclass(slots=True)
class FinalLog:
    """A replica's log after healing."""

    node: NodeId
    group: RaftGroupId
    start: int
    end: int
    records: tuple[LogRecord, ...]
    gaps: tuple[tuple[int, int], ...] = ()
    """Offsets declared unused: `[from, to)`."""


@dataclass(slots=True)
class History:
    """Everything of one run."""

    publishes: list[Publish] = field(default_factory=list)
    fetches: list[Fetch] = field(default_factory=list)
    high_waters: list[HighWater] = field(default_factory=list)
    trims: list[Trim] = field(default_factory=list)
    unsure: set[bytes] = field(default_factory=set)
    """What came to a leader that had not yet compared its clock with those of a majority."""
    transactions: list[Transaction] = field(default_factory=list)
    final: list[FinalLog] = field(default_factory=list)
    ended_tenures: set[tuple[RaftGroupId, NodeId, int]] = field(default_factory=set)
    """Leaders (group, node, term) that crashed, stopped or were deposed: only what these answered
    in EVENTUAL mode may be missing."""
    incidents: list[str] = field(default_factory=list)
    """What the run itself noticed: two leaders in a term, replicas whose hashes differ, …"""
    ends: dict[RaftGroupId, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Where readers of any replica could ever see each partition end."""
    groups: GroupHistory = field(default_factory=GroupHistory)
    eventual_lost: int = 0
