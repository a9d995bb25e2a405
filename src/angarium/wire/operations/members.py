"""Groups between nodes: a member's node (its *agent*) and the leaders of the partitions.

For each consumer an agent has one stream (`ATTACH`) to every other node that leads partitions for
it; on it, partitions go by numbers that the agent chooses and uses once on a stream.

    agent                                                            leader
      ── opens with `AttachHeader` ─────────────────────────────────▶
      ── `Attach(number, ...)` ─────────────────────────────────────▶
      ◀── `Attached(number, ...)`, or `Dropped(number, ...)` ─────────
      ◀── `Lent(number, ...)`, the batches in the payload ────────────    within credit and window
      ── `Taken(number, bytes)`: the consumer has them ─────────────▶     opens the window again
      ── `Ask(number, ask, settlements)` ───────────────────────────▶
      ◀── `Told(ask, one per settlement)`, once committed ────────────
      ── `Allow(number, credit)` ───────────────────────────────────▶
      ◀── `Allowed(number, credit)`: no more than that from here on ──
      ◀── `Withdrawn(number, ranges)`: these are on loan no more ─────
      ── `Detach(number, lost)` ────────────────────────────────────▶
      ◀── `Dropped(number, ...)`: the leader cannot go on, and why ───

The agent reads whatever comes at once, so answers are never stuck behind deliveries; what it keeps
is bounded by the window of each partition (`lending.lending_limits`: WINDOW_BYTES). A stream that
breaks is a node that is lost: its members stay for the session timeout.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from angarium.api import GroupConfig, GroupPosition, Moved, Settled, Settlement, Start
from angarium.ids import NodeId, Offset, RaftGroupId
from angarium.kinds import GroupKind


class AttachHeader(msgspec.Struct, frozen=True, array_like=True):
    """One member of a group, on the node that opens the stream."""

    group: str
    member: str
    session: int
    """Which of the consumers under this name it is: the later one (µs) takes over."""
    topics: tuple[str, ...]
    """All topics it consumes, so that a stream group is spread over their partitions together."""


# --- up ------------------------------------------------------------------------------------------
class Attach(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Hand out records of this partition; the group is opened on first use."""

    number: int
    topic: str
    partition: int
    credit: int
    held: tuple[tuple[int, int, int], ...]
    """First offset, past the last offset, attempt: what the member has from before."""
    kind: GroupKind
    config: GroupConfig
    start: Start
    """What the group is, if it has to be opened here."""
    may_open: bool = True
    """Whether it may be opened here. Nodes of earlier releases open it in any case."""


class Detach(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """The member is gone: it left, or (`lost`) it has not been heard of for too long."""

    number: int
    lost: bool = False


class Allow(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Have no more than so many records of the partition on loan to the member."""

    number: int
    credit: int


class Taken(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """So many bytes were passed on to the consumer."""

    number: int
    bytes: int


class Ask(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Settle records of one partition."""

    number: int
    ask: int
    settlements: tuple[Settlement, ...]


Upward: TypeAlias = Attach | Detach | Allow | Taken | Ask


# --- down ----------------------------------------------------------------------------------------
class Attached(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The member takes part; the group is so."""

    number: int
    kind: GroupKind
    config: GroupConfig


class Lent(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Records on loan to the member; see `api.Handed`."""

    number: int
    ranges: tuple[int, ...]
    attempt: int
    lease_ms: int
    generation: int


class Told(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """What became of the settlements of an `Ask`."""

    ask: int
    settled: tuple[Settled, ...]


class Allowed(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The credit of an `Allow` holds: more than that is handed out no more."""

    number: int
    credit: int


class Withdrawn(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """These records are on loan to the member no more: their lease ended, or the group moved."""

    number: int
    ranges: tuple[int, ...]


class Dropped(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Nothing more comes for this partition. A retriable code: attach again, to the leader."""

    number: int
    code: str
    message: str = ""
    retriable: bool = False


Downward: TypeAlias = Attached | Lent | Told | Allowed | Withdrawn | Dropped


# --- what is wanted of a group in one partition --------------------------------------------------


class Alter(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Give it other settings. Answered with `WishDone`."""

    config: GroupConfig


class Move(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Seek. Answered with `WishDone` and what moved."""

    start: Start
    dry_run: bool


class Rest(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Pause it, or let it go on."""

    paused: bool


class Forget(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Delete it, unless somebody takes part in it; one that is not there is deleted already."""


class Report(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Set a group of kind CHECKPOINT, made on first use, to an offset."""

    offset: Offset


class SettleFor(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Settle for a member, whichever node it is connected to."""

    member: str
    settlements: tuple[Settlement, ...]


Wish: TypeAlias = Alter | Move | Rest | Forget | Report | SettleFor


class GroupWishHeader(msgspec.Struct, frozen=True, array_like=True):
    """To the leader of a partition. Answered with `WishDone`."""

    group: str
    topic: str
    partition: int
    wish: Wish


class WishDone(msgspec.Struct, frozen=True, array_like=True):
    """It is so now."""

    moved: tuple[Moved, ...] = ()
    settled: tuple[Settled, ...] = ()


# --- looking -------------------------------------------------------------------------------------
class GroupLookHeader(msgspec.Struct, frozen=True, array_like=True):
    """What do your replicas know of this group, or of all? Answered with `GroupLookAnswer`."""

    group: str | None = None
    with_positions: bool = False


class MemberSeen(msgspec.Struct, frozen=True, array_like=True):
    """A member as the leader of one partition sees it."""

    name: str
    node: NodeId
    pending: int = 0
    is_active: bool = True
    """False for a member of a stream group that does not have this partition."""


class GroupSeen(msgspec.Struct, frozen=True, array_like=True):
    """A group as one replica of one partition sees it."""

    name: str
    raft_group: RaftGroupId
    topic: str
    partition: int
    leads: bool
    """Only the leader knows who takes part and what is on loan."""
    kind: GroupKind
    config: GroupConfig
    paused: bool = False
    members: tuple[MemberSeen, ...] = ()
    position: GroupPosition | None = None


class GroupLookAnswer(msgspec.Struct, frozen=True, array_like=True):
    """All that the node's replicas know; in the payload, for it may be large."""

    seen: tuple[GroupSeen, ...]


class DrainedHeader(msgspec.Struct, frozen=True, array_like=True):
    """From one node to another: what do your replicas say? Answered with `DrainedAnswer`."""

    group: str
    layout: int
    raft_groups: tuple[RaftGroupId, ...]


class DrainedAnswer(msgspec.Struct, frozen=True, array_like=True):
    """Those in which the group has settled everything before the layout's fence."""

    raft_groups: tuple[RaftGroupId, ...]
