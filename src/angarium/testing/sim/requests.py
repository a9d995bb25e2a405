"""What simulated clients say to nodes, and hear back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from angarium.errors import AngariumError
    from angarium.ids import GroupId, NodeId, Offset
    from angarium.modes import DeliveryMode
    from angarium.replica.acks import Published


class PublishRequest(NamedTuple):
    """One batch to publish."""

    client: str
    number: int
    group: GroupId
    batch: bytes
    mode: DeliveryMode


class PublishReply(NamedTuple):
    """What became of it, as far as the node knows."""

    number: int
    node: NodeId
    answer: Published | AngariumError


class FetchRequest(NamedTuple):
    """Committed records from an offset on, from any replica."""

    client: str
    number: int
    group: GroupId
    offset: Offset
    bytes_max: int


class FetchReply(NamedTuple):
    """The batches found."""

    number: int
    node: NodeId
    batches: tuple[bytes, ...]


class HighWaterRequest(NamedTuple):
    """Where does the committed log end, surely not earlier than now?"""

    client: str
    number: int
    group: GroupId


class HighWaterReply(NamedTuple):
    """It ends here."""

    number: int
    node: NodeId
    end: int
