"""Topics: what can be chosen about one, and how it stands."""

from __future__ import annotations

from typing import Literal

import msgspec

from angarium.api.named import settle
from angarium.ids import Micros, NodeId, Offset, TopicId
from angarium.modes import DeliveryMode


class TopicConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What can be chosen about a topic. None stands for "no limit"."""

    replication: int | None = None
    """None: three, or as many as the cluster has hosts."""
    mode: DeliveryMode = DeliveryMode.CONSISTENT
    retention_ms: int | None = None
    retention_bytes: int | None = None
    retention_groups: bool = False
    """Trim what every group has settled, as soon as it has. A topic without groups keeps all. Age
    and size, where they are set, go on to trim whatever the groups have not settled by then."""
    batch_bytes_max: int = 4 << 20
    expiry_ms: int | None = None
    """How long after its append a record is delivered at the longest. A record may name an earlier
    end of its own."""
    cleanup: Literal["delete", "compact"] = "delete"
    """"compact": the latest record of each key stays, and every record has to have a key. Age and
    size, where they are set, trim all the same."""
    tombstone_ms: int = 24 * 3_600 * 1_000
    """How long a compaction leaves a record with a null value, which says that its key is gone, for
    readers to see."""
    dirty_percent: int = 50
    """How large a part of a partition has come since the last compaction when it is compacted
    again. Less is done sooner, and costs more."""

    def __post_init__(self) -> None:
        settle(self, "mode", DeliveryMode)


class PartitionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One partition, as the answering node sees it."""

    number: int
    replicas: tuple[NodeId, ...]
    leader: NodeId | None = None
    start_offset: Offset | None = None
    """None where neither the answering node nor one that it could ask has a replica."""
    end_offset: Offset | None = None
    in_sync: tuple[NodeId, ...] | None = None
    """Replicas that vote, can be reached and have nearly everything; nobody while the membership
    changes; None where the answer does not come from the partition's leader, who alone knows. As
    long as all are in sync, any one of three may be taken down."""
    handed_on: int = 0
    """Records in PERFORMANCE mode that the answering node handed on, as the leader, since it was
    started; they have no offsets."""


class TopicInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One topic."""

    id: TopicId
    name: str
    config: TopicConfig
    partitions: tuple[PartitionInfo, ...]
    created_at: Micros
