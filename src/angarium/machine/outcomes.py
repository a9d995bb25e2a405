"""What applying an entry means: an answer for each request in it, and work for the log.

Outcomes are values. A refusal changes nothing, whatever it refuses, so a leader need not even log
a request that its projection refuses. Effects say what the log must write; the machine itself
holds no batch.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from angarium.ids import Index, Micros, Offset, Sequence, Term

if TYPE_CHECKING:
    from angarium.errors import AngariumError

# --- answers --------------------------------------------------------------------------------


class Appended(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=1):
    """The batch is in the partition: its records have the offsets `[base_offset, next_offset)`."""

    base_offset: Offset
    next_offset: Offset
    append_time: Micros


class Duplicate(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=2):
    """The batch was there already; the offsets of all but the last few are not remembered."""

    base_offset: Offset | None = None
    next_offset: Offset | None = None
    append_time: Micros | None = None


class Refused(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=3):
    """Nothing changed. `code` is one of `angarium.errors`."""

    code: str
    message: str = ""


class Done(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=4):
    """It is so now; `changed` is false when it had been so before."""

    changed: bool = True


class Staged(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=5):
    """The stage holds `parts` parts now; `repeated` when this one had been among them."""

    parts: int
    repeated: bool = False


class Decided(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=6):
    """How a transaction ended.

    `repeated` when it had ended so before. The offsets are those of the published batches; they
    are missing in a home group, after an abort, and for all but the newest commit of a name.
    """

    committed: bool
    base_offset: Offset | None = None
    next_offset: Offset | None = None
    repeated: bool = False


class Reserved(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=7):
    """The offsets `[base_offset, next_offset)` stay empty for ever: a declared gap."""

    base_offset: Offset
    next_offset: Offset


class Trimmed(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=8):
    """Records below `start_offset` are gone."""

    start_offset: Offset


class Acknowledged(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=9):
    """`added` records became acknowledged, and the group's floor is where it says."""

    floor: Offset
    added: int


class Positioned(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=10):
    """The group stands at `floor`; deliveries of other generations do not count any more."""

    floor: Offset
    generation: Index
    repeated: bool = False


class DeadLettering(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=11):
    """The record's dead letter is to be published with this sequence, now or after a failover."""

    sequence: Sequence
    repeated: bool = False


class MembersSet(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=12):
    """The group's member list has this version now."""

    version: int


Outcome: TypeAlias = (
    Appended
    | Duplicate
    | Refused
    | Done
    | Staged
    | Decided
    | Reserved
    | Trimmed
    | Acknowledged
    | Positioned
    | DeadLettering
    | MembersSet
)


def refused(error: type[AngariumError], message: str) -> Refused:
    """Return a refusal with the stable code of `error`."""
    return Refused(error.code, message)


def limited(limit: str, message: str) -> Refused:
    """Return a refusal that names the limit which was reached."""
    return Refused("RESOURCE_EXHAUSTED", f"{limit}: {message}")


def oversized(limit: str, message: str) -> Refused:
    """Return a refusal that names a limit which this very command will never fit."""
    return Refused("TOO_LARGE", f"{limit}: {message}")


# --- work for the log -----------------------------------------------------------------------


class PublishedStage(msgspec.Struct, frozen=True, gc=False):
    """Batches to read from the stage in `slot`, in the order they were staged, and to stamp.

    The first gets `base_offset` and `append_time`, each later one the next free offset and a time
    one microsecond later. Together they cover `span` offsets.
    """

    slot: int
    base_offset: Offset
    term: Term
    append_time: Micros
    batches: int
    span: int


class StageAppend(msgspec.Struct, frozen=True, gc=False):
    """Concatenated batches to add to the stage in `slot`, which is new if `part` is 0."""

    slot: int
    part: int
    batches: bytes


class Misnumbered(Enum):
    """How the offset that a leader stamped on a refused batch differs from the next one here."""

    ABOVE = "above"
    """The leader had records that are missing here."""
    NOT_ABOVE = "not above"
    """Records here have that offset, or that time, already: the leader lacked them."""


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that followed from one entry."""

    index: Index
    outcomes: tuple[Outcome, ...] = ()
    """One for each batch of an append, each change of a `Cursors`, or for the command."""

    visible: tuple[memoryview | PublishedStage, ...] = ()
    """What to write to the partition's segments, in this order. Views lie in the entry's data."""

    stage_appends: tuple[StageAppend, ...] = ()
    stage_drops: tuple[int, ...] = ()
    """Slots whose bytes nobody needs once `visible` is safe. A slot number is never reused."""

    reserved: tuple[tuple[Offset, Offset], ...] = ()
    """Gaps declared by this entry: nothing will ever lie there."""

    trimmed_to: Offset | None = None
    """The new start of the partition, if it moved."""

    is_compacted: bool = False
    """Whether compaction has further to go: the machine says up to where."""

    next_offset: Offset = Offset(0)
    clock: Micros = Micros(0)
    """Where the partition and its clock stand after this entry."""

    misnumbered: Misnumbered | None = None
    """Set if a batch was refused for its stamp. The outcome is the same on every replica that has
    the same records, so one that differs from its leader shows here."""
