"""What the bytes of a log entry say to a partition's machine.

The first byte is the command's kind, the second the version of its form. An *append*, the one that
must be fast, is a header of 8 bytes and then stamped batches, one after the other and aligned as in
memory; it is read without unpacking anything else. Every other command is a msgpack array of its
fields, in the order below; later versions may add fields at the end, never remove or reorder them.

Every command carries the leader's time, strictly increasing in a partition: an append in the stamp
of each batch, the others in `time`. It is the only clock the machine has.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from angarium.batch import split
from angarium.errors import InvalidBatch, InvalidCommand
from angarium.ids import Epoch, Micros, Offset, ProducerId, RaftGroupId, Sequence
from angarium.machine.changes import Change, StagedAck
from angarium.machine.forms import VERSION, Forms
from angarium.machine.partition_limits import PartitionLimits

if TYPE_CHECKING:
    from collections.abc import Sequence as SequenceOf

    from angarium.ids import Buffer

APPEND_HEADER: Final = Struct("<BBHI")
"""Kind, version, two zero bytes, and how many batches follow."""


class Kind(IntEnum):
    """The first byte of an entry. Numbers are for ever; 64 and above belong to the catalog."""

    APPEND = 1
    STAGE = 2
    COMMIT = 3
    ABORT = 4
    BEGIN = 5
    DECIDE = 6
    FINISH = 7
    CURSORS = 8
    TRIM = 9
    CONFIGURE = 10
    RESERVE = 11
    PRODUCER_DELETE = 12
    SERIES_DELETE = 13
    CLOCK = 14
    COMPACT = 15
    RESTORE = 16
    FENCE = 17


APPEND: Final = int(Kind.APPEND)


class _Command(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    time: Micros = Micros(0)
    """The leader's clock in µs. The submitter leaves it at 0; the projection fills it."""


class _OfTransaction(_Command, frozen=True, kw_only=True, array_like=True):
    name: str
    """Whose transactions these are: one name stands for a series of them."""
    epoch: Epoch
    """The run of the owner. A newer run fences the older ones."""
    sequence: Sequence
    """Which transaction of the series. Committed ones only ever grow."""


class Stage(_OfTransaction, frozen=True, kw_only=True, array_like=True):
    """Put batches, and acknowledgements, aside until the transaction is decided."""

    home: RaftGroupId | None = None
    """The group that decides; nothing when this partition decides on its own."""
    stage: str
    part: int
    """Counts the requests that fill one stage, from 0, so that a retry is recognised."""
    batches: bytes = b""
    """Concatenated batches. Their producers are not looked at: the part stands for a sequence."""
    acks: tuple[StagedAck, ...] = ()
    """What the transaction acknowledges if it commits."""
    layout: int | None = None
    """By which layout of the topic keys have sent the batches here; None: no key has."""

    @property
    def is_question(self) -> bool:
        """Whether it only asks if an earlier layout has stored a number (feature level 8)."""
        return self.home is None and self.layout is not None and not self.batches


class Commit(_OfTransaction, frozen=True, kw_only=True, array_like=True):
    """Publish exactly these stages, in this order, and drop the others."""

    stages: tuple[str, ...] = ()
    counts_fences: bool = False
    """Keep which commits of the name came before fences (feature level 8): releases before it keep
    nothing, and a replica's state follows from the log alone."""


class Abort(_OfTransaction, frozen=True, kw_only=True, array_like=True):
    """Drop whatever was staged."""


class Begin(_OfTransaction, frozen=True, kw_only=True, array_like=True):
    """Home group: open a transaction, or add to its participants."""

    participants: tuple[RaftGroupId, ...] = ()


class Decide(_OfTransaction, frozen=True, kw_only=True, array_like=True):
    """Home group: end a transaction. A participant that asks proposes an abort this way."""

    commit: bool
    stages: tuple[tuple[RaftGroupId, tuple[str, ...]], ...] = ()
    """For a commit: each participant with the stages to publish there, in order."""
    content: str = ""
    """For a commit: what it is of, in its owner's words."""


class Finish(_OfTransaction, frozen=True, kw_only=True, array_like=True):
    """Home group: every participant has carried the decision out; the name is free again."""


class Cursors(_Command, frozen=True, kw_only=True, array_like=True):
    """Changes to consumer groups: everything since the last sync, in one entry."""

    changes: tuple[Change, ...]


class Trim(_Command, frozen=True, kw_only=True, array_like=True):
    """Forget the records below `start_offset`."""

    start_offset: Offset


class Configure(_Command, frozen=True, kw_only=True, array_like=True):
    """Take other limits from here on."""

    limits: PartitionLimits


class Reserve(_Command, frozen=True, kw_only=True, array_like=True):
    """Leave the next `count` offsets empty, for ever."""

    count: int


class ProducerDelete(_Command, frozen=True, kw_only=True, array_like=True):
    """Forget a producer. Whatever it still sends is refused."""

    producer: ProducerId


class SeriesDelete(_Command, frozen=True, kw_only=True, array_like=True):
    """Forget a name of transactions, unless one is open under it."""

    name: str


class Compact(_Command, frozen=True, kw_only=True, array_like=True):
    """Keep only the latest record of each key among those below an offset.

    `until` lies between two batches. Each replica rewrites its own files in its own time; what it
    comes to follows from the two numbers and the records alone.
    """

    until: Offset
    tombstones_before: Micros = Micros(0)
    """Records with a null value that were appended before this time go, too."""


class Restore(_Command, frozen=True, kw_only=True, array_like=True):
    """Bring batches back from a backup, with the offsets and times that they had.

    The first begins where the partition ends, each next one where the one before it ends. What lies
    between the last and `next_offset` stays empty, for ever. Producers are not looked at: their ids
    are those of the cluster that the backup is of. Written at feature level 5 and above.
    """

    batches: bytes = b""
    """Concatenated batches, with their stamps."""
    next_offset: Offset
    """Where the partition ends behind it."""
    start_offset: Offset = Offset(0)
    """Forget what lies below, as it had been before the backup."""


class Fence(_Command, frozen=True, kw_only=True, array_like=True):
    """Take no record any more that was dealt by a layout older than `layout`.

    Where the partition ends at this entry is where that layout begins in it. Refused while records
    are staged: a commit would bring them in behind the fence. Written at feature level 6 and above.
    """

    layout: int


class Clock(_Command, frozen=True, kw_only=True, array_like=True):
    """Let time pass, so that what waits for it is not held up by silence."""


Transacting: TypeAlias = Stage | Commit | Abort | Begin | Decide | Finish | SeriesDelete
Command: TypeAlias = (
    Transacting
    | Cursors
    | Trim
    | Configure
    | Reserve
    | ProducerDelete
    | Clock
    | Compact
    | Restore
    | Fence
)

_KINDS: Final[dict[type[Any], Kind]] = {
    Stage: Kind.STAGE,
    Commit: Kind.COMMIT,
    Abort: Kind.ABORT,
    Begin: Kind.BEGIN,
    Decide: Kind.DECIDE,
    Finish: Kind.FINISH,
    Cursors: Kind.CURSORS,
    Trim: Kind.TRIM,
    Configure: Kind.CONFIGURE,
    Reserve: Kind.RESERVE,
    ProducerDelete: Kind.PRODUCER_DELETE,
    SeriesDelete: Kind.SERIES_DELETE,
    Clock: Kind.CLOCK,
    Compact: Kind.COMPACT,
    Restore: Kind.RESTORE,
    Fence: Kind.FENCE,
}
_FORMS: Final[Forms[Command]] = Forms(_KINDS)

encode = _FORMS.encode
"""Return the entry's data for a command."""

decode = _FORMS.decode
"""Return the command in an entry's data, which is not an append; raises `InvalidCommand`."""


def knows(data: Buffer) -> bool:
    """Tell whether an entry's data is of a kind and version that this release has a meaning for."""
    if len(data) >= 2 and data[0] == APPEND:
        return data[1] == VERSION
    return _FORMS.knows(data)


def encode_append(batches: SequenceOf[Buffer]) -> bytes:
    """Return the entry's data for stamped `batches`, each a multiple of 8 bytes long."""
    return b"".join((APPEND_HEADER.pack(APPEND, VERSION, 0, len(batches)), *batches))


def batches_of(data: Buffer) -> list[memoryview]:
    """Return the batches of the append in `data`, without copying; raises `InvalidCommand`."""
    if len(data) < APPEND_HEADER.size:
        raise InvalidCommand("an append is cut off in its header")
    _, version, zero, count = APPEND_HEADER.unpack_from(data)
    if version != VERSION or zero:
        raise InvalidCommand(f"version {version} of an append is not known here")
    try:
        batches = split(memoryview(data)[APPEND_HEADER.size :])
    except InvalidBatch as error:
        raise InvalidCommand(str(error)) from None
    if len(batches) != count or not count:
        raise InvalidCommand(f"an append of {count} batches holds {len(batches)}")
    return batches
