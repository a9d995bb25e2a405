"""The contract's values, to and from protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.api import ClusterStatus, Place, Start, TopicConfig, TopicInfo
from angarium.doors.grpc.records import NOBODY, Identity
from angarium.doors.grpc.refusals import error_message, error_of_ack
from angarium.errors import InvalidArgument
from angarium.ids import Epoch, Offset, ProducerId, Sequence
from angarium.modes import DeliveryMode
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.api import Ack, NodeInfo, PartitionInfo
    from angarium.ids import NodeId

_DEFAULTS: Final = TopicConfig()
_MODES: Final[tuple[DeliveryMode | None, ...]] = (None, *DeliveryMode)
"""By number in protobuf, where 0 means that none was named."""


# --- inwards ---------------------------------------------------------------------------------


def mode_of(number: int) -> DeliveryMode | None:
    """Return the delivery mode, or None where none was named."""
    if not 0 <= number < len(_MODES):
        raise InvalidArgument(f"there is no delivery mode {number}")
    return _MODES[number]


def wants_batches(format_number: int) -> bool:
    """Return whether whole batches are wanted rather than records."""
    if format_number == pb.FORMAT_BATCHES:
        return True
    if format_number not in (pb.FORMAT_UNSPECIFIED, pb.FORMAT_RECORDS):
        raise InvalidArgument(f"there is no format {format_number}")
    return False


def partition_of(number: int) -> int:
    """Return a partition's number; whether it exists is for the broker to say."""
    if number < 0:
        raise InvalidArgument(f"partitions are numbered from 0, so there is no {number}")
    return number


def start_of(start: pb.Start) -> Start:
    """Return where to begin; without a place, at the end."""
    match start.WhichOneof("place"):
        case "earliest":
            return Start(Place.EARLIEST)
        case "offset":
            return Start(Place.OFFSET, _not_negative("an offset", start.offset))
        case "timestamp_us":
            return Start(Place.TIMESTAMP, _not_negative("a time", start.timestamp_us))
        case _:
            return Start(Place.LATEST)


def identity_of(request: pb.PublishRequest | pb.PublishBatchRequest) -> Identity:
    """Return who publishes; nobody in particular where the request does not say."""
    if not request.HasField("producer"):
        return NOBODY
    if not request.HasField("partition"):
        raise InvalidArgument(
            "a producer's sequence is counted per partition: name the partition, too"
        )
    producer = request.producer
    if producer.id <= 0:
        raise InvalidArgument("producer ids start at 1; OpenProducer issues them")
    return Identity(
        ProducerId(producer.id),
        Epoch(producer.epoch),
        Sequence(_not_negative("a sequence", producer.sequence)),
    )


def config_of(config: pb.TopicConfig) -> TopicConfig:
    """Return a topic's settings; what is absent has its default."""
    return TopicConfig(
        replication=config.replication if config.HasField("replication") else None,
        mode=mode_of(config.mode) or DeliveryMode.CONSISTENT,
        retention_ms=config.retention_ms if config.HasField("retention_ms") else None,
        retention_bytes=config.retention_bytes if config.HasField("retention_bytes") else None,
        batch_bytes_max=(
            config.batch_bytes_max
            if config.HasField("batch_bytes_max")
            else _DEFAULTS.batch_bytes_max
        ),
        expiry_ms=config.expiry_ms if config.HasField("expiry_ms") else None,
        retention_groups=config.until_consumed,
        cleanup="compact" if config.compact else "delete",
        tombstone_ms=(
            config.tombstone_ms if config.HasField("tombstone_ms") else _DEFAULTS.tombstone_ms
        ),
        dirty_percent=(
            config.dirty_percent if config.HasField("dirty_percent") else _DEFAULTS.dirty_percent
        ),
    )


def _not_negative(what: str, number: int) -> int:
    if number < 0:
        raise InvalidArgument(f"{what} is not negative, and {number} is")
    return number


# --- outwards --------------------------------------------------------------------------------


def ack_message(ack: Ack, *, place: int | None = None) -> pb.Ack:
    """Return what became of a batch, or of the record at one `place` in it."""
    offset, next_offset = ack.base_offset, ack.next_offset
    if place is not None and offset is not None:
        offset = Offset(offset + place)
        next_offset = Offset(offset + 1)
    message = pb.Ack(
        mode=ack.mode + 1,  # type: ignore[arg-type]  # any number is taken, the stub wants names
        topic=ack.topic,
        partition=ack.partition,
        offset=offset,
        next_offset=next_offset,
        append_time_us=ack.append_time,
        term=ack.term,
    )
    # What is rare is not worth a keyword on every publish.
    if ack.provisional:
        message.provisional = True
    if ack.duplicate:
        message.duplicate = True
    if ack.id:
        message.id = ack.id
        message.subscribers = ack.subscribers
    if ack.code:
        message.error.CopyFrom(error_message(error_of_ack(ack)))
    return message


def topic_message(topic: TopicInfo) -> pb.TopicInfo:
    """Return a topic."""
    config = topic.config
    return pb.TopicInfo(
        id=topic.id,
        name=topic.name,
        config=pb.TopicConfig(
            replication=config.replication,
            mode=config.mode + 1,  # type: ignore[arg-type]
            retention_ms=config.retention_ms,
            retention_bytes=config.retention_bytes,
            batch_bytes_max=config.batch_bytes_max,
            expiry_ms=config.expiry_ms,
            until_consumed=config.retention_groups,
            compact=config.cleanup == "compact",
            tombstone_ms=config.tombstone_ms,
            dirty_percent=config.dirty_percent,
        ),
        partitions=[_partition_message(partition) for partition in topic.partitions],
        created_at_us=topic.created_at,
    )


def cluster_message(status: ClusterStatus) -> pb.GetClusterStatusResponse:
    """Return the cluster."""
    return pb.GetClusterStatusResponse(
        cluster_id=status.cluster_id,
        node=status.node,
        catalog_leader=status.catalog_leader,
        catalog_index=status.catalog_index,
        nodes=[_node_message(node) for node in status.nodes],
        topics=status.topics,
        partitions=status.partitions,
        feature_level=status.feature_level,
        version=status.version,
        catalog_in_sync=_nodes(status.catalog_in_sync),
    )


def _partition_message(partition: PartitionInfo) -> pb.PartitionInfo:
    return pb.PartitionInfo(
        number=partition.number,
        replicas=partition.replicas,
        leader=partition.leader,
        start_offset=partition.start_offset,
        end_offset=partition.end_offset,
        in_sync=_nodes(partition.in_sync),
        handed_on=partition.handed_on,
    )


def _node_message(node: NodeInfo) -> pb.NodeInfo:
    return pb.NodeInfo(
        id=node.id,
        addresses=node.addresses,
        region=node.region,
        zone=node.zone,
        host=node.host,
        draining=node.draining,
        alive=node.alive,
        leads=node.leads,
        replicas=node.replicas,
        level_max=node.level_max,
    )


def _nodes(ids: Iterable[NodeId] | None) -> pb.Nodes | None:
    """Return nodes, or nothing where they are not known: none at all is something else."""
    return None if ids is None else pb.Nodes(ids=ids)
