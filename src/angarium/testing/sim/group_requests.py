"""What simulated members and leaders of their partitions say to each other.

A leader's messages to one attachment are numbered, as a connection would keep them in order: a
member that misses one gives the connection up and attaches anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from angarium.delivery import Held
    from angarium.ids import GroupId, NodeId
    from angarium.kinds import GroupKind
    from angarium.machine.changes import GroupSettings
    from angarium.testing.group_history import Settle


class Attach(NamedTuple):
    """Take part, or come again."""

    client: str
    number: int
    partition: GroupId
    name: str
    kind: GroupKind
    settings: GroupSettings
    credit: int
    held: tuple[Held, ...]


class Detach(NamedTuple):
    """Leave; or, not clean, a connection that broke."""

    client: str
    number: int
    partition: GroupId
    name: str
    clean: bool


class Say(NamedTuple):
    """Settle records."""

    client: str
    number: int
    """Of the attachment."""
    partition: GroupId
    name: str
    verb: str
    ranges: tuple[int, ...]
    settle: Settle
    cumulative: bool = False


class Attached(NamedTuple):
    """The attachment with this number stands, or does not because this node does not lead."""

    number: int
    node: NodeId
    is_leader: bool
    hint: NodeId | None = None
    kept: tuple[int, ...] = ()


class Message(NamedTuple):
    """Records lent (`attempt` above 0) or taken back."""

    number: int
    sequence: int
    ranges: tuple[int, ...]
    attempt: int


class Heard(NamedTuple):
    """What became of something said."""

    number: int
    settle: Settle
    code: str


GroupRequest: TypeAlias = Attach | Detach | Say
GroupReply: TypeAlias = Attached | Message | Heard
