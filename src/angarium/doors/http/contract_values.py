"""The contract's values, to and from their JSON forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from angarium.api import TopicConfig
from angarium.doors.http.problems import told
from angarium.doors.http.values import (
    MODES,
    Ack,
    Cluster,
    NodeOut,
    PartitionOut,
    TopicOut,
    TopicSettings,
)
from angarium.modes import DeliveryMode
from angarium.wire.error_codec import Failure, error_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium import api
    from angarium.errors import AngariumError

_MODES = {name: DeliveryMode(number) for number, name in enumerate(MODES)}


def mode_of(name: str | None) -> DeliveryMode | None:
    """Return the delivery mode; its name has been checked."""
    return None if name is None else _MODES[name]


def config_of(settings: TopicSettings) -> TopicConfig:
    """Return a topic's settings."""
    return TopicConfig(
        replication=settings.replication,
        mode=_MODES[settings.mode],
        retention_ms=settings.retention_ms,
        retention_bytes=settings.retention_bytes,
        batch_bytes_max=settings.batch_bytes_max,
        expiry_ms=settings.expiry_ms,
        retention_groups=settings.retention_groups,
        cleanup=settings.cleanup,
        tombstone_ms=settings.tombstone_ms,
        dirty_percent=settings.dirty_percent,
    )


def error_of_ack(ack: api.Ack) -> AngariumError:
    """Return the error with which a batch was refused while its neighbours were not."""
    return error_of(Failure(ack.code, ack.message))


def ack_out(ack: api.Ack, *, place: int | None = None) -> Ack:
    """Return what became of a batch, or of the record at one `place` in it."""
    offset, after = ack.base_offset, ack.next_offset
    start: int | None = offset
    end: int | None = after
    if place is not None and offset is not None:
        start, end = offset + place, offset + place + 1
    return Ack(
        topic=ack.topic,
        partition=ack.partition,
        mode=MODES[ack.mode],
        offset=UNSET if start is None else start,
        next_offset=UNSET if end is None else end,
        append_time_us=UNSET if ack.append_time is None else ack.append_time,
        term=UNSET if ack.term is None else ack.term,
        provisional=ack.provisional,
        duplicate=ack.duplicate,
        id=ack.id,
        subscribers=ack.subscribers if ack.mode is DeliveryMode.PERFORMANCE else UNSET,
        error=told(error_of_ack(ack)) if ack.code else UNSET,
    )


def topic_out(topic: api.TopicInfo) -> TopicOut:
    """Return a topic."""
    config = topic.config
    return TopicOut(
        id=topic.id,
        name=topic.name,
        config=TopicSettings(
            replication=config.replication,
            mode=MODES[config.mode],
            retention_ms=config.retention_ms,
            retention_bytes=config.retention_bytes,
            batch_bytes_max=config.batch_bytes_max,
            expiry_ms=config.expiry_ms,
            retention_groups=config.retention_groups,
            cleanup=config.cleanup,
            tombstone_ms=config.tombstone_ms,
            dirty_percent=config.dirty_percent,
        ),
        partitions=[
            PartitionOut(
                number=one.number,
                replicas=list(one.replicas),
                leader=one.leader,
                start_offset=one.start_offset,
                end_offset=one.end_offset,
                in_sync=_listed(one.in_sync),
                handed_on=one.handed_on,
            )
            for one in topic.partitions
        ],
        created_at_us=topic.created_at,
    )


def cluster_out(status: api.ClusterStatus) -> Cluster:
    """Return the cluster."""
    return Cluster(
        cluster_id=status.cluster_id,
        node=status.node,
        catalog_leader=status.catalog_leader,
        catalog_index=status.catalog_index,
        nodes=[
            NodeOut(
                id=one.id,
                addresses=one.addresses,
                region=one.region,
                zone=one.zone,
                host=one.host,
                draining=one.draining,
                alive=one.alive,
                leads=one.leads,
                replicas=one.replicas,
                level_max=one.level_max,
            )
            for one in status.nodes
        ],
        topics=status.topics,
        partitions=status.partitions,
        feature_level=status.feature_level,
        version=status.version,
        catalog_in_sync=_listed(status.catalog_in_sync),
    )


def _listed(ids: Iterable[int] | None) -> list[int] | None:
    return None if ids is None else list(ids)
