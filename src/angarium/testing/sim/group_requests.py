"""What simulated members and leaders of their partitions say to each other.

A leader's messages to one attachment are numbered, as a connection would keep them in order: a
member that misses one gives the connection up and attaches anew.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from angarium.api import GroupConfig
    from angarium.delivery import Held
    from angarium.ids import NodeId, RaftGroupId
    from angarium.kinds import GroupKind
    from angarium.testing.group_history import Settle


class Attach(NamedTuple):
    """Take part, or come again."""

    client: str
    number: int
    partition: RaftGroupId
    name: str
    kind: GroupKind
    config: GroupConfig
    credit: int
    held: tuple[Held, ...]


class Parting(Enum):
    """How an attachment ends."""

    LEFT = "left"
    LOST = "lost"
    """Its agent tells that the member is gone without a word."""
    UNSEEN = "unseen"
    """Its agent cannot be reached."""


class Detach(NamedTuple):
    """Leave, or be gone."""

    client: str
    number: int
    partition: RaftGroupId
    name: str
    how: Parting


class Say(NamedTuple):
    """Settle records."""

    client: str
    number: int
    """Of the attachment."""
    partition: RaftGroupId
    name: str
    verb: str
    ranges: tuple[int, ...]
    settle: Settle
    cumulative: bool = False


class Took(NamedTuple):
    """So many bytes have come."""

    client: str
    number: int
    bytes: int


class Attached(NamedTuple):
    """The attachment with this number stands; or it does not, or does no more, at this node."""

    number: int
    node: NodeId
    is_leader: bool
    hint: NodeId | None = None


class Message(NamedTuple):
    """Records lent (`attempt` above 0) or taken back."""

    number: int
    sequence: int
    ranges: tuple[int, ...]
    attempt: int
    bytes: int


class Heard(NamedTuple):
    """What became of something said."""

    number: int
    settle: Settle
    code: str


GroupRequest: TypeAlias = Attach | Detach | Say | Took
GroupReply: TypeAlias = Attached | Message | Heard


class DrainedRequest(NamedTuple):
    """From one node to another: has a group settled what lies before a fence?"""

    client: str
    number: int
    group: str
    layout: int
    partitions: tuple[int, ...]


class DrainedReply(NamedTuple):
    """In these it has."""

    number: int
    partitions: tuple[int, ...]
