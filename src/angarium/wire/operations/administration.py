"""Topics and the cluster as frames."""

from __future__ import annotations

from typing import Annotated

import msgspec

from angarium.api import TopicConfig, TopicInfo
from angarium.ids import Incarnation, Micros, NodeId, Offset, RaftGroupId


class CreateTopicHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.TopicInfo`."""

    name: str
    partitions: int
    config: TopicConfig


class AlterTopicHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.TopicInfo`."""

    name: str
    partitions: int | None
    config: TopicConfig | None


class TopicHeader(msgspec.Struct, frozen=True, array_like=True):
    """A topic by name: to delete (answered with nothing) or describe (`api.TopicInfo`)."""

    name: str


class TopicsAnswer(msgspec.Struct, frozen=True, array_like=True):
    """All topics. This, `api.TopicInfo` and `PartitionsAnswer` come in the payload, and the header
    is empty, where they are too large for a header (`wire.roomy`)."""

    topics: tuple[TopicInfo, ...]


class ClockAnswer(msgspec.Struct, frozen=True, array_like=True):
    """What the wall clock says, in µs, right or wrong. The question has no header."""

    wall: int


class PartitionsHeader(msgspec.Struct, frozen=True, array_like=True):
    """From one node to another: what do your replicas of these know? Answered with
    `PartitionsAnswer`, in which groups without a replica there are missing."""

    groups: tuple[RaftGroupId, ...]
    with_sizes: bool = False
    """Whether it is asked how much they hold, too."""


class PartitionSeen(msgspec.Struct, frozen=True, array_like=True):
    """A partition as one of its replicas sees it; the fields are those of `api.PartitionInfo`."""

    group: RaftGroupId
    leader: NodeId | None
    start_offset: Offset
    end_offset: Offset
    in_sync: tuple[NodeId, ...] | None
    handed_on: int = 0
    stored_bytes: int | None = None
    """What it holds, where that was asked for."""
    fences: tuple[Offset, ...] = ()


class PartitionsAnswer(msgspec.Struct, frozen=True, array_like=True):
    """What is known."""

    seen: tuple[PartitionSeen, ...]


class DrainNodeHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with nothing."""

    node: NodeId
    draining: bool


class RemoveNodeHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with nothing."""

    node: NodeId


class TransferLeaderHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with nothing."""

    topic: str
    partition: int
    to: NodeId


class RaiseLevelHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `LevelAnswer`."""

    level: int | None = None
    """None: the highest that every node knows."""


class LevelAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The feature level the cluster works at."""

    level: int


class RebalanceHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.balance.BalanceInfo`, in the payload, as are the next one and those
    questions about it that have no header."""

    bytes_per_s: int | None = None
    """What all copies together may take; 0: as fast as replicas copy otherwise; None: as before."""


class SetAutoBalanceHeader(msgspec.Struct, frozen=True, array_like=True):
    """Whether it begins by itself."""

    automatic: bool


class DescribeRecoveryHeader(msgspec.Struct, frozen=True, array_like=True):
    """Answered with `api.recovery.RecoveryInfo`, in the payload, as is the next one."""

    topic: str
    partition: int


class RecoverPartitionHeader(msgspec.Struct, frozen=True, array_like=True):
    """Go on with what is left of a partition."""

    topic: str
    partition: int
    code: str


class SurvivorHeader(msgspec.Struct, frozen=True, array_like=True):
    """From one node to another: what is your replica of this? Answered with
    `node.survivors.SurvivorAnswer`, in the payload."""

    group: RaftGroupId


class ReadinessAnswer(msgspec.Struct, frozen=True, array_like=True):
    """How a node is."""

    unready: tuple[str, ...] = ()
    """Why it should not be relied on; nothing if it may."""
    durable_end: int = 0
    """Up to where its log is durable, for the others to remember; 0: it does not say."""
    version: str = ""
    started_at: Micros = Micros(0)
    certificate_days: float | None = None
    disk_free_bytes: int | None = None
    """As in `api.upgrades.NodeState`."""
    is_disk_full: bool = False
    """Whether it takes no records, and so should lead nothing."""
    shared_mode: int = 0
    """The mode of its data folder, if other users of its machine may enter or read it; else 0."""


class SameFolderHeader(msgspec.Struct, frozen=True, array_like=True):
    """A node asks another process to show that it knows their folder's secret."""

    nonce: Annotated[bytes, msgspec.Meta(min_length=16, max_length=64)]
    """Drawn for this question alone."""


class SameFolderAnswer(msgspec.Struct, frozen=True, array_like=True):
    """What only a process on the same data folder, or on a copy of it, can say."""

    process: Annotated[int, msgspec.Meta(ge=0, lt=1 << 48)]
    """Which process answers: what one has said is no proof in the mouth of another."""
    proof: Annotated[bytes, msgspec.Meta(max_length=64)]
    """HMAC-SHA256 of process and nonce, by the folder's secret."""


class OwnRegistrationHeader(msgspec.Struct, frozen=True, array_like=True):
    """A node is asked whether this is what it says of itself. Answered with
    `OwnRegistrationAnswer`."""

    incarnation: Incarnation
    addresses: tuple[tuple[str, str], ...]
    region: str = ""
    zone: str = ""
    host: str = ""
    level_min: int = 1
    level_max: int = 1
    name: str = ""
    """The NAME of its certificate; empty without TLS."""


class OwnRegistrationAnswer(msgspec.Struct, frozen=True, array_like=True):
    """Whether it is."""

    is_own: bool


class JoinHeader(msgspec.Struct, frozen=True, array_like=True):
    """A node asks to become, or to be again, a member. Answered with `JoinAnswer`."""

    node: NodeId | None
    """The id it was given before; None for a newcomer."""
    incarnation: Incarnation
    addresses: tuple[tuple[str, str], ...]
    region: str = ""
    zone: str = ""
    host: str = ""
    level_min: int = 1
    level_max: int = 1
    """The feature levels it can work at."""
    token: str = ""
    """A join token, for those who ask for one."""

    def __repr__(self) -> str:
        return f"JoinHeader({self.node}, {self.incarnation}, {self.addresses}, …)"


class JoinAnswer(msgspec.Struct, frozen=True, array_like=True):
    """Who the newcomer is from now on, and where the others are."""

    cluster_id: str
    node: NodeId
    peers: tuple[tuple[NodeId, str], ...]
    """Nodes and their wire addresses."""
    level: int = 1
    """The feature level the cluster works at."""
