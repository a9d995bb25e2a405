"""What happened to consumer groups: what leaders lent, what members said, how it all ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from angarium.ids import NodeId, RaftGroupId
    from angarium.kinds import GroupKind
    from angarium.testing.history import Result


class Lent(NamedTuple):
    """A leader lent records to a member, and sent them."""

    time: int
    member: str
    offsets: tuple[int, ...]
    attempt: int


class Taken(NamedTuple):
    """A leader took records back from a member."""

    member: str
    offsets: tuple[int, ...]


class Kept(NamedTuple):
    """A member attached, with these records on loan and no others."""

    member: str
    offsets: tuple[int, ...]


class Left(NamedTuple):
    """A member was let go."""

    member: str


class Judged(NamedTuple):
    """A leader took, or refused, what a member said about records."""

    member: str
    verb: str
    offsets: tuple[int, ...]
    is_taken: bool
    below: int = 0
    """A cumulative acknowledgement also means everything it holds below this offset."""
    ticket: int = 0


class Undone(NamedTuple):
    """An acknowledgement could not be committed: its records are on loan as before."""

    ticket: int


class Promised(NamedTuple):
    """The dead letter of a record is promised."""

    offset: int


GroupEvent: TypeAlias = Lent | Taken | Kept | Left | Judged | Undone | Promised


def offsets_in(ranges: tuple[int, ...]) -> tuple[int, ...]:
    """Return every offset in ranges: first, past the last, first, past the last."""
    return tuple(
        offset
        for start, end in zip(ranges[::2], ranges[1::2], strict=True)
        for offset in range(start, end)
    )


@dataclass(slots=True)
class Tenure:
    """What one leader did for one group, from one state of it on and within one generation."""

    partition: RaftGroupId
    name: str
    kind: GroupKind
    node: NodeId
    term: int
    generation: int
    began: int
    floor: int
    acked: tuple[tuple[int, int], ...]
    """Ranges acknowledged above the floor when it began."""
    promised: frozenset[int]
    """Records whose dead letter was promised when it began."""
    events: list[GroupEvent] = field(default_factory=list)


@dataclass(slots=True)
class Settle:
    """Something a member said about records, and what it was told."""

    partition: RaftGroupId
    name: str
    member: str
    verb: str
    offsets: tuple[int, ...]
    invoked: int
    is_lie: bool = False
    completed: int | None = None
    result: Result | None = None
    """None: it never heard."""
    generation: int = 0
    """Which generation it was taken in."""
    attempt: int = 0
    """Which attempt had failed, for a failure."""


@dataclass(slots=True)
class FinalGroup:
    """How a group stands in the end."""

    partition: RaftGroupId
    name: str
    kind: GroupKind
    generation: int
    floor: int
    acked: tuple[tuple[int, int], ...]
    max_attempts: int
    start: int
    end: int


@dataclass(slots=True)
class GroupHistory:
    """Everything about groups in one run."""

    tenures: list[Tenure] = field(default_factory=list)
    settles: list[Settle] = field(default_factory=list)
    letters: dict[bytes, tuple[RaftGroupId, str, int, int, int]] = field(default_factory=dict)
    """Dead letters that a leader tried to store, by their value: partition, group, offset,
    generation of the promise, attempts."""
    buried: dict[tuple[RaftGroupId, str, int], tuple[RaftGroupId, int]] = field(
        default_factory=dict
    )
    """Where the letter of a record was stored, as somebody was told: partition and offset. It may
    have been trimmed away since."""
    keys: dict[bytes, tuple[bytes | None, int]] = field(default_factory=dict)
    """Keys and delivery times of published records, by their value."""
    final: list[FinalGroup] = field(default_factory=list)
