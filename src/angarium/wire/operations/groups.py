"""Consumer groups as frames.

Taking part in a group is a stream (`CONSUME`) between a client and any node:

    client                                                            node
      ── opens with `ConsumeHeader` ────────────────────────────────▶
      ◀── `Joined`: the member's name, the group's kind and settings ──
      ◀── `HandedOver`, the batches in the payload ──────────────────     any number of times
      ── `Settle(number, settlements)` ─────────────────────────────▶     any number, no waiting
      ◀── `Answered(number, one per settlement)`, once committed ─────    in any order
      ── `SetCredit(credit)` ───────────────────────────────────────▶     whenever it likes
      ── the stream's end: leaves, what is on loan goes back untried ▶
      ◀── the stream's end, or its failure: what broke the consumption

- The first frame down is `Joined`; the stream fails instead if the group cannot be joined.
- `number` is the client's, counts up from 1 and is used once on a stream. Every `Settle` is
  answered, once; a settlement that is refused has a code in its `Settled` and changed nothing. A
  settlement whose answer never came (the stream broke) may or may not have been carried out:
  settling again is harmless.
- A stream that breaks without its end (a lost connection, a killed client) leaves the member in
  the group for a moment (`service.groups`: LINGER_S), so that it may come back, through this or
  another node: it opens a new stream under the member's name and says in `held` what it has from
  before and has not settled. That is on loan to it again where nobody else got it in between;
  where somebody did, or the lease ended, settling it is refused (`GROUP_FENCED`), and the record
  is another's. What was on its way when the stream broke is not in `held`: that attempt has failed,
  and it comes again.
- Stream credit (bytes) is the connection's business; `credit` counts records on loan. A client
  reads whatever comes, always: an answer may stand behind deliveries. What it has to keep is
  bounded by its `credit`.
- `Settlement.generation` may name the `generation` of the delivery it is about: it is refused then
  if somebody has moved the group in between.

`SETTLE` is the same in one request, for a member that is attached elsewhere. The others are plain
requests about a group. A member's lease is renewed by `Settlement` with `Verb.EXTEND`.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from angarium.api import (
    Checkpoint,
    ConsumeRequest,
    GroupConfig,
    GroupInfo,
    Moved,
    Settled,
    Settlement,
    Start,
)
from angarium.kinds import GroupKind

# --- consuming: a stream -------------------------------------------------------------------------


class ConsumeHeader(msgspec.Struct, frozen=True, array_like=True):
    """Opens a consumption."""

    request: ConsumeRequest


class Settle(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Settle records. Answered with `Answered` under the same number."""

    number: int
    settlements: tuple[Settlement, ...]


class SetCredit(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Change how many records may be on loan at a time."""

    credit: int


Said: TypeAlias = Settle | SetCredit
"""What a consumer sends on its stream."""


class Joined(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The consumer takes part."""

    member: str
    kind: GroupKind
    config: GroupConfig


class HandedOver(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Records on loan; see `api.Handed`. The payload holds the batches."""

    topic: str
    partition: int
    ranges: tuple[int, ...]
    attempt: int = 1
    lease_ms: int = 30_000
    generation: int = 0


class Answered(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """What became of the settlements under a number, in their order."""

    number: int
    settled: tuple[Settled, ...]


Heard: TypeAlias = Joined | HandedOver | Answered
"""What a consumer hears on its stream."""


# --- requests ------------------------------------------------------------------------------------


class SettleHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `SettleAnswer`."""

    group: str
    member: str
    settlements: tuple[Settlement, ...]


class SettleAnswer(msgspec.Struct, frozen=True, array_like=True):
    """One for each settlement, in their order."""

    settled: tuple[Settled, ...]


class GroupsAnswer(msgspec.Struct, frozen=True, array_like=True):
    """`LIST_GROUPS`, whose header is empty: all groups, with their lag and without their positions.

    This, `api.GroupInfo` and `SeekGroupAnswer` come in the payload: they may be large.
    """

    groups: tuple[GroupInfo, ...]


class GroupHeader(msgspec.Struct, frozen=True, array_like=True):
    """A group by name, to describe it. Answered with `api.GroupInfo`."""

    group: str


class AlterGroupHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.GroupInfo`."""

    group: str
    config: GroupConfig


class SeekGroupHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `SeekGroupAnswer`."""

    group: str
    topic: str | None
    partition: int | None
    start: Start
    dry_run: bool = False


class SeekGroupAnswer(msgspec.Struct, frozen=True, array_like=True):
    """What moved, or would move."""

    moved: tuple[Moved, ...]


class PauseGroupHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with nothing."""

    group: str
    paused: bool


class DeleteGroupHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with nothing."""

    group: str
    topic: str | None = None


class ReportCheckpointsHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with nothing."""

    group: str
    checkpoints: tuple[Checkpoint, ...]
