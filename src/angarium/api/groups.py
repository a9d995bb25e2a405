"""Consumer groups: who shares the work, what was handed to whom, and what became of it.

A group's position in a partition is kept by that partition's own Raft group. A consumer talks to
any node; that node is its *agent*: it attaches the consumer to the leaders of the partitions,
brings deliveries, and carries settlements back. Leases are the leaders': a record that is handed
out and not settled before its lease ends is tried again, and only the holder of a lease may settle
it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Final, Protocol

import msgspec

from angarium.api.named import settle
from angarium.api.reading import Start, StartAt
from angarium.api.settings import About
from angarium.ids import Buffer, Index, Micros, NodeId, Offset
from angarium.kinds import Behind, GroupKind, Poison

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

SETTLEMENTS_MAX = 4_096
"""Settlements that are said at once. More are refused, and none of them is carried out."""

RANGES_MAX = 8_192
"""Ranges in one settlement. More are refused."""

# --- what a group is ---------------------------------------------------------------------------


ATTEMPTS_LARGEST: Final = 1_000
"""The most attempts a group may ask for."""

LEASE_MS_LEAST: Final = 100
"""The shortest lease: a shorter one would end while the record is on its way."""

DAY_MS: Final = 24 * 3_600 * 1_000
"""The longest lease or backoff."""


class GroupConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What can be chosen about a group, but for its kind."""

    max_attempts: Annotated[
        int,
        About("Attempts before a record becomes a dead letter.", 1, ATTEMPTS_LARGEST),
    ] = 5
    ack_timeout_ms: Annotated[
        int,
        About("How long a silent consumer keeps its records.", LEASE_MS_LEAST, DAY_MS),
    ] = 30_000
    backoff_min_ms: Annotated[int, About("The pause after the first failure.", 0, DAY_MS)] = 100
    backoff_max_ms: Annotated[int, About("The longest pause between attempts.", 0, DAY_MS)] = 60_000
    dead_letter_topic: Annotated[str, About("Where dead letters go.")] = "angarium.dlq"
    poison: Annotated[
        Poison, About("Stream groups: what to do with a record whose attempts are used up.")
    ] = Poison.DEAD_LETTER
    behind: Annotated[
        Behind,
        About(
            "If records were removed before the group saw them: give consumers an error, or"
            " jump over the gap."
        ),
    ] = Behind.ERROR

    def __post_init__(self) -> None:
        settle(self, "poison", Poison)
        settle(self, "behind", Behind)


# --- consuming ---------------------------------------------------------------------------------


class Held(msgspec.Struct, frozen=True, array_like=True):
    """Records that a consumer has from before it lost its connection, and has not settled."""

    topic: str
    partition: int
    ranges: tuple[int, ...]
    """First offset, past the last offset, and so on, ascending."""
    attempt: int = 1


class ConsumeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Take part in a group."""

    group: str
    topics: tuple[str, ...]
    kind: GroupKind | None = None
    """None: as the group is, or a queue if it is new. Another kind than its own is refused."""
    start: Start = Start(StartAt.EARLIEST)
    """Where a group begins in a partition that it has not consumed before."""
    config: GroupConfig | None = None
    """For a new group; None: the defaults. One that exists keeps its own."""
    member: str = ""
    """Who takes part, unique in the group; empty: the node makes a name up. One that comes again
    under the same name takes over from its earlier self, leases included."""
    credit: int = 1_000
    """Records that may be handed out to this consumer and not settled, over all partitions."""
    held: tuple[Held, ...] = ()
    """What a member that comes again still has: it is on loan to it again where nobody else got it
    in between. Whatever else its earlier self had on loan has failed, and comes again."""


class Handed(msgspec.Struct, frozen=True, kw_only=True):
    """Records on loan to a consumer."""

    topic: str
    partition: int
    batches: tuple[Buffer, ...]
    """Whole batches, as they are stored."""
    ranges: tuple[int, ...]
    """First offset, past the last offset, and so on, ascending: which records of the batches are
    handed over. Offsets in between that no batch holds are gaps."""
    attempt: int = 1
    """Which attempt this is, for all of them."""
    lease_ms: int = 30_000
    """How long the lease lasts, from when it was sent."""
    generation: Index = Index(0)
    """Of the group's position: a transaction that acknowledges them names it."""


class Verb(IntEnum):
    """What a consumer says about records on loan to it."""

    ACK = 0
    """Done with. Never to be delivered to this group again."""
    NACK = 1
    """Failed: counts as an attempt, and comes again later or becomes a dead letter."""
    RELEASE = 2
    """Given back untried: does not count."""
    EXTEND = 3
    """Still at it: the lease begins anew."""
    REJECT = 4
    """Failed for good: counts as an attempt, and becomes a dead letter without another one."""


class Settlement(msgspec.Struct, frozen=True, array_like=True):
    """What a consumer says about some records of a partition."""

    topic: str
    partition: int
    verb: Verb
    ranges: tuple[int, ...]
    """First offset, past the last offset, and so on, ascending."""
    delay_ms: int | None = None
    """NACK: not before so long; None: as the group's backoff says. EXTEND: the lease's new length;
    None: `ack_timeout_ms`."""
    reason: str = ""
    cumulative: bool = False
    """ACK: everything on loan to this consumer below the last end, too."""
    generation: Index | None = None
    """Of the delivery (`Handed.generation`): if the group was moved since, this is refused. None:
    whatever the group's generation is."""


class Settled(msgspec.Struct, frozen=True, array_like=True):
    """What became of one settlement."""

    records: int = 0
    """How many records it settled; those that had been settled before do not count."""
    code: str = ""
    """Not empty if it was refused, whole: the error's code. Nothing has changed then."""
    message: str = ""


class Consumption(Protocol):
    """One consumer's part in a group, on the node it talks to."""

    @property
    def member(self) -> str:
        """Under which name it takes part."""

    @property
    def kind(self) -> GroupKind:
        """How the group consumes."""

    @property
    def config(self) -> GroupConfig:
        """The group's settings."""

    def __aiter__(self) -> AsyncIterator[Handed]:
        """Yield what is handed out until the consumption is closed; raises what broke it."""

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        """Settle records; an answer for each, in their order, once it is committed."""

    async def set_credit(self, credit: int) -> None:
        """Change how many records may be on loan at a time."""

    async def close(self, *, lost: bool = False) -> None:
        """Leave the group: what is on loan goes back untried.

        `lost`: the consumer vanished without a word. It may come back under its name for a moment;
        then what it had on loan has failed.
        """


# --- looking after groups ------------------------------------------------------------------------


class GroupMember(msgspec.Struct, frozen=True, kw_only=True):
    """Who takes part in a group."""

    name: str
    node: NodeId
    """The node it is connected to."""
    partitions: tuple[tuple[str, int], ...] = ()
    """Topics and partitions it is the active member of; in queue and key groups, all it serves."""
    pending: int = 0
    """Records on loan to it."""


class GroupPosition(msgspec.Struct, frozen=True, kw_only=True):
    """Where a group stands in one partition."""

    topic: str
    partition: int
    floor: Offset
    """Everything below is settled."""
    start_offset: Offset
    end_offset: Offset
    acked_above: int = 0
    """Records settled above the floor."""
    pending: int = 0
    """Records on loan."""
    retrying: int = 0
    """Records that failed and wait for another attempt."""
    lag: int = 0
    """Records that are not settled: end - max(floor, start), less those settled above the floor."""
    lag_ms: int = 0
    """How long ago the oldest record that is not settled was appended; 0 if there is none."""
    is_behind: bool = False
    """Records it has not seen were trimmed away."""
    owner: str = ""
    """In a stream group: the active member."""
    waits_for: str = ""
    """What deliveries wait for although there are records, such as another attempt at one that
    failed, or a leader of the partition. Empty in a list of groups, and if nothing is waited for.
    """
    waits_until: Micros | None = None
    """Until when, as far as that is known."""


class GroupInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One group."""

    name: str
    kind: GroupKind
    config: GroupConfig
    paused: bool = False
    members: tuple[GroupMember, ...] = ()
    positions: tuple[GroupPosition, ...] = ()
    """Empty in a list of groups; elsewhere those in topics that the caller may know of."""
    listed_lag: int = 0
    """Where positions are not shown: what all of them would add up to."""

    @property
    def lag(self) -> int:
        """Records that are not settled, over all partitions."""
        return self.listed_lag or sum(one.lag for one in self.positions)

    @property
    def lag_ms(self) -> int | None:
        """How long ago the oldest record was appended that is not settled; 0 if there is none.

        None in a list of groups: a log would have to be read for each of them.
        """
        return max((one.lag_ms for one in self.positions), default=None)


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """What a seek did, or would do."""

    topic: str
    partition: int
    old_floor: Offset
    new_floor: Offset


class Checkpoint(msgspec.Struct, frozen=True, array_like=True):
    """How far a group of kind CHECKPOINT says it has come in a partition."""

    topic: str
    partition: int
    offset: Offset
    """Everything below it is done."""


class GroupBroker(Protocol):
    """The part of the contract that is about groups; `topic` None stands for all its topics."""

    async def consume(self, request: ConsumeRequest) -> Consumption:
        """Take part in a group, which is made on first use."""

    async def settle(
        self, group: str, member: str, settlements: Sequence[Settlement]
    ) -> tuple[Settled, ...]:
        """Settle records for a member that is connected elsewhere, or speaks request by request."""

    async def list_groups(self) -> tuple[GroupInfo, ...]:
        """Return all groups, by name, with their lag and without their positions."""

    async def describe_group(self, group: str) -> GroupInfo:
        """Return one group; `NotFound`."""

    async def alter_group(self, group: str, config: GroupConfig) -> GroupInfo:
        """Give a group other settings."""

    async def seek_group(
        self,
        group: str,
        *,
        topic: str | None,
        partition: int | None,
        start: Start,
        dry_run: bool,
    ) -> tuple[Moved, ...]:
        """Move a group: what is on loan is fenced, what it acknowledged above is forgotten."""

    async def pause_group(self, group: str, *, paused: bool) -> None:
        """Hand nothing more out, or go on."""

    async def delete_group(self, group: str, *, topic: str | None) -> None:
        """Forget a group; `PreconditionFailed` while somebody takes part in it."""

    async def report_checkpoints(self, group: str, checkpoints: Sequence[Checkpoint]) -> None:
        """Say how far a group of kind CHECKPOINT has come; it is made on first use."""
