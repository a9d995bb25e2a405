"""What a leader of groups is joined to.

`Seat` and `Sink` are the two ends of an attachment, the leader's and the agent's. `Surroundings` is
the node it is on and whatever drives it: an event loop, or the simulator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from angarium.api import GroupConfig, Settled, Settlement, Start
    from angarium.delivery import GroupDelivery
    from angarium.delivery.retry_times import RetryTimes
    from angarium.delivery.source import RecordSource
    from angarium.errors import AngariumError
    from angarium.ids import Buffer, Micros, NodeId, RaftGroupId
    from angarium.kinds import GroupKind
    from angarium.lending.led_partition import LedPartition
    from angarium.lending.letters import Burial
    from angarium.machine.cursors import Group
    from angarium.replica.partition_replica import PartitionReplica


class Membership(NamedTuple):
    """Who a consumer is in its group."""

    group: str
    member: str
    node: NodeId
    """The node it is connected to."""
    session: int
    """Which of the consumers under this name it is: the later one takes over."""
    topics: tuple[str, ...]
    """All that it consumes."""


class Opening(NamedTuple):
    """What a group is, where it has to be opened."""

    kind: GroupKind
    config: GroupConfig
    start: Start


class Wanted(NamedTuple):
    """What a consumer wants of one partition."""

    topic: str
    partition: int
    opening: Opening
    credit: int
    held: tuple[tuple[int, int, int], ...]
    """First offset, past the last offset, attempt: what it has from before."""
    may_open: bool = True
    """Whether the group may be made here. False until a leader of the topic has said what it is."""


class Lending(NamedTuple):
    """Records on loan, with the batches that hold them."""

    ranges: tuple[int, ...]
    batches: tuple[Buffer, ...]
    bytes: int
    attempt: int
    lease_ms: int
    generation: int


class Sink(Protocol):
    """The agent's end: hears what the leader of one partition has for a consumer."""

    def attached(self, kind: GroupKind, config: GroupConfig) -> None:
        """Hear that the consumer takes part."""

    def lent(self, lending: Lending) -> None:
        """Take records on loan."""

    def told(self, ask: int, settled: Sequence[Settled]) -> None:
        """Hear what became of settlements."""

    def allowed(self, credit: int) -> None:
        """Hear that no more than this is handed out from here on."""

    def withdrawn(self, ranges: tuple[int, ...]) -> None:
        """Hear that records are on loan no more."""

    def dropped(self, error: AngariumError) -> None:
        """Hear that the leader cannot go on. The last thing that is heard."""


class Seat(Protocol):
    """The leader's end: what an agent says about one consumer in one partition."""

    def allow(self, credit: int) -> None:
        """Have no more than so many records on loan; confirmed by `Sink.allowed`."""

    def taken(self, size: int) -> None:
        """Say that so many bytes were passed on to the consumer."""

    def ask(self, ask: int, settlements: Sequence[Settlement]) -> None:
        """Settle records; answered by `Sink.told`."""

    def detach(self, *, lost: bool) -> None:
        """Leave; `lost`: the consumer is gone without a word."""


class Surroundings(Protocol):
    """A node, as far as what it leads needs it. Nothing here keeps time or draws lots by itself."""

    @property
    def node(self) -> NodeId:
        """Which node this is."""

    @property
    def replicas(self) -> Mapping[RaftGroupId, PartitionReplica]:
        """The node's replicas as they are now."""

    @property
    def level(self) -> int:
        """The feature level that the cluster works at."""

    # --- time -----------------------------------------------------------------------------------

    def now(self) -> Micros:
        """Return the time that the node goes by."""

    def steady(self) -> int:
        """Return the time (µs) of a clock that is never set: it shows when `now` leaps."""

    def stopwatch_s(self) -> float:
        """Return a time that only measures how long something takes, in seconds."""

    def soon(self, action: Callable[..., object], *arguments: object) -> None:
        """Have something done once what goes on now is over."""

    def ring_at(self, at: Micros) -> None:
        """Have `GroupHost.ring` called then, and not when it was last asked for."""

    # --- the node -------------------------------------------------------------------------------

    def carry_on(self) -> None:
        """Have what was proposed written and sent."""

    def raft_group_of(self, topic: str, number: int) -> RaftGroupId:
        """Return the Raft group of a partition; raises `NotFound`."""

    def partition_of(self, raft_group: RaftGroupId) -> tuple[str, int] | None:
        """Return the topic and number of a partition; None if it belongs to none any more."""

    def layouts(self, topic: str) -> tuple[int, ...]:
        """Return how many partitions keys were dealt to, layout by layout; none were added: ()."""

    def ask_drained(
        self,
        topic: str,
        partitions: Sequence[int],
        group: str,
        layout: int,
        told: Callable[[Sequence[int]], None],
    ) -> None:
        """Find out which partitions a group has settled up to the fence of a layout.

        `told` is called with some of them, at once or later, perhaps more than once, or never.
        """

    def lifetime(self, topic: str) -> int | None:
        """Return after how many µs a topic lets records expire."""

    # --- its groups -----------------------------------------------------------------------------

    def delivery(
        self,
        led: LedPartition,
        group: Group,
        source: RecordSource,
        *,
        retry_times: RetryTimes,
        now: Micros,
        expected: Sequence[str],
    ) -> GroupDelivery:
        """Return what decides for a group that begins to be led."""

    def preferred(
        self,
        members: dict[str, tuple[str, ...]],
        topic: str,
        number: int,
        nodes: Mapping[str, NodeId],
    ) -> str:
        """Return who of the members, with the topics each consumes, should have a partition.

        `nodes` says where they are connected, as far as that is known.
        """

    def carry_out(self, burial: Burial) -> None:
        """Do what the storing of dead letters asks for, step by step, until it ends."""
