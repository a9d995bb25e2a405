"""Topics: what can be chosen about one, and how it stands."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from angarium.api.named import settle, settle_names
from angarium.api.settings import About
from angarium.ids import Micros, NodeId, Offset, TopicId
from angarium.modes import DeliveryMode

BATCH_BYTES_LEAST: Final = 1 << 10
"""The smallest limit on batches that a topic may have: below it hardly a record would fit."""

BATCH_BYTES_LARGEST: Final = 16 << 20
"""The largest one. A batch is one entry of the log and travels in one frame, with others beside it;
and a dead letter takes as much."""

TIME_MS_LARGEST: Final = 1 << 53
"""The longest time that can be chosen: 285,000 years, which still count in microseconds."""

SIZE_LARGEST: Final = (1 << 63) - 1

REPLICATION_LARGEST: Final = 7
"""Copies of a partition. More would slow every commit down and save nobody."""

REGIONS_LEVEL: Final = 6
WITNESS_LEVEL: Final = 7
"""The feature levels that brought what topics say about regions, and their witnesses."""


class TopicConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What can be chosen about a topic."""

    replication: Annotated[
        int | None,
        About(
            "Replicas of each partition.",
            1,
            REPLICATION_LARGEST,
            none="three, or as many as the cluster has hosts",
        ),
    ] = None
    mode: Annotated[
        DeliveryMode, About("The delivery mode of a publish that does not name one.")
    ] = DeliveryMode.CONSISTENT
    retention_ms: Annotated[
        int | None, About("Remove records older than this.", 1, TIME_MS_LARGEST)
    ] = None
    retention_bytes: Annotated[
        int | None,
        About(
            "Remove the oldest records of a partition that is larger than this.", 1, SIZE_LARGEST
        ),
    ] = None
    retention_groups: Annotated[
        bool,
        About("Remove records that every group has settled. A topic without groups keeps all."),
    ] = False
    """Age and size, where they are set, go on to trim whatever the groups have not settled."""
    batch_bytes_max: Annotated[
        int,
        About(
            "Refuse larger batches, and so larger records.", BATCH_BYTES_LEAST, BATCH_BYTES_LARGEST
        ),
    ] = 4 << 20
    expiry_ms: Annotated[
        int | None,
        About("Do not deliver a record later than this after it was stored.", 1, TIME_MS_LARGEST),
    ] = None
    """A record may name an earlier end of its own."""
    cleanup: Annotated[
        Literal["delete", "compact"],
        About("Compact: keep the latest record of each key. Every record needs a key."),
    ] = "delete"
    """Age and size, where they are set, trim what is compacted all the same."""
    tombstone_ms: Annotated[
        int,
        About("Compact: keep a null value this long, so that readers see it.", 0, TIME_MS_LARGEST),
    ] = 24 * 3_600 * 1_000
    dirty_percent: Annotated[
        int, About("Compact: start when this share of a partition is new.", 1, 100)
    ] = 50
    """Less is done sooner, and costs more."""

    placement: Annotated[
        Literal["spread", "homed"],
        About(
            "Spread: replicas over regions. Homed: each partition lives in one of `regions`.",
            level=REGIONS_LEVEL,
        ),
    ] = "spread"
    regions: Annotated[
        tuple[str, ...],
        About(
            "Homed: regions that have partitions of their own. Spread: where to lead, best first.",
            level=REGIONS_LEVEL,
        ),
    ] = ()
    """Homed: partition i lives in the region i, counted round and round."""
    readers: Annotated[
        tuple[str, ...],
        About(
            "Regions that get a copy of each partition to read from, without a vote. *: all.",
            level=REGIONS_LEVEL,
        ),
    ] = ()
    key_order: Annotated[
        Literal["region", "global"],
        About(
            "Homed: whether records of a key are in order per region, or in the whole cluster.",
            level=REGIONS_LEVEL,
        ),
    ] = "region"
    home_lost: Annotated[
        Literal["next", "refuse"],
        About(
            "Homed: publish to the next region when the nearest has no leader, or refuse.",
            level=REGIONS_LEVEL,
        ),
    ] = "next"
    leaders_follow: Annotated[
        bool,
        About(
            "Spread: let leaders go to the region from which most publishes come.",
            level=REGIONS_LEVEL,
        ),
    ] = False
    """Until there are enough of them, `regions` says where to lead."""
    witness: Annotated[
        tuple[str, ...],
        About(
            "Regions, for nothing else, one of which has a replica that only votes.",
            level=WITNESS_LEVEL,
        ),
    ] = ()
    """It breaks the tie of 2, 4 or 6 others, so that either of two regions may be lost."""

    def __post_init__(self) -> None:
        settle(self, "mode", DeliveryMode)
        settle_names(self, "regions")
        settle_names(self, "readers")
        settle_names(self, "witness")


ABOUT_REGIONS: Final = (
    "placement",
    "regions",
    "readers",
    "key_order",
    "home_lost",
    "leaders_follow",
    "witness",
)
"""The settings of a topic that mean something in a cluster with regions alone."""


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
    long as all are in sync, any one of three may be taken down. The witness, if there is one, is
    among them: it has the log."""
    handed_on: int = 0
    """Records in PERFORMANCE mode that the answering node handed on, as the leader, since it was
    started; they have no offsets."""
    home: str = ""
    """The region that it is homed in: its leader and a majority of its replicas are there. Empty:
    it is spread."""
    readers: tuple[NodeId, ...] = ()
    """Nodes that have a copy to read from, which has no vote."""
    witness: NodeId | None = None
    """The node that has a vote and no records."""
    fences: tuple[Offset, ...] = ()
    """Where layouts that came after it begin in it, one after the other, as far as the answering
    node has heard."""
    trouble: str = ""
    """Why nobody leads it, where that will not pass by itself: how many of its replicas are there
    and who is missing, or what is damaged. Empty while it is led, or elects a leader."""


class TopicInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One topic."""

    id: TopicId
    name: str
    config: TopicConfig
    partitions: tuple[PartitionInfo, ...]
    created_at: Micros
    layouts: tuple[int, ...] = ()
    """How many partitions keys are dealt to, layout by layout, once some were added. The last one
    may be one that is not in force yet."""
    layout: int = 0
    """Which of them is in force."""
    begun: tuple[Micros, ...] = ()
    """When each of them came into force, as far as that was noted; else 0."""
    caution: str = ""
    """What this layout does not survive, where the cluster has regions: the loss of which one."""
