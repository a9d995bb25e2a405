"""Between an agent and a leader: the two faces of an attachment, whichever way it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api import GroupConfig, Settled, Settlement, Start
    from angarium.errors import AngariumError
    from angarium.ids import Buffer, NodeId
    from angarium.kinds import GroupKind


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


class Post(Protocol):
    """A node that leads partitions, as one consumer's agent reaches it."""

    def attach(self, wanted: Wanted, sink: Sink) -> Seat:
        """Begin to take part in one partition. What comes of it, the sink hears."""

    def close(self) -> None:
        """Let go of it, with all its seats."""
