"""Where records, topics and the cluster are found over REST, and what each takes and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.doors.http.administration import (
    NodeParameters,
    PartitionParameters,
    TopicParameters,
)
from angarium.doors.http.events import StreamParameters
from angarium.doors.http.publishing import BatchParameters, PublishParameters
from angarium.doors.http.reading import FetchParameters, OffsetParameters, RecordParameters
from angarium.doors.http.routing import Route
from angarium.doors.http.values import (
    Ack,
    Cluster,
    Drain,
    Fetched,
    FoundOffset,
    Handover,
    Level,
    LevelWish,
    NewRecord,
    NewRecords,
    NewTopic,
    ProducerName,
    ProducerOut,
    Published,
    RecordOut,
    TopicChange,
    TopicOut,
    Topics,
)

if TYPE_CHECKING:
    from angarium.doors.http.administration import Administration
    from angarium.doors.http.events import Streaming
    from angarium.doors.http.observing import Observing
    from angarium.doors.http.publishing import Publishing
    from angarium.doors.http.reading import Reading
    from angarium.doors.http.sockets import Sockets

_ANY: Final = ("application/octet-stream", "text/plain")
_PACKED: Final = ("application/vnd.angarium.batch",)


def record_routes(publishing: Publishing, reading: Reading) -> list[Route]:
    """Return where records are published and fetched."""
    partition = "/v1/topics/{topic}/partitions/{partition}"
    return [
        Route(
            method="POST",
            path="/v1/topics/{topic}/records",
            handler=publishing.publish,
            parameters=PublishParameters,
            summary="Publish a record. A body other than JSON is its value.",
            body=NewRecord,
            other_bodies=_ANY,
            answer=Ack,
            errors=(409, 422, 501, 507),
            headers=(
                ("Idempotency-Key", "Any word; a request repeated with it changes nothing."),
                ("Angarium-Sequence", "NAME:NUMBER, for clients that count what they send."),
            ),
            tag="records",
        ),
        Route(
            method="POST",
            path="/v1/topics/{topic}/records/batch",
            handler=publishing.publish_batch,
            parameters=BatchParameters,
            summary="Publish many records at once, or batches packed by the client.",
            body=NewRecords,
            other_bodies=_PACKED,
            answer=Published,
            errors=(409, 415, 422, 507),
            headers=(("Idempotency-Key", "Any word; a request repeated with it changes nothing."),),
            tag="records",
        ),
        Route(
            method="GET",
            path=f"{partition}/records",
            handler=reading.fetch,
            parameters=FetchParameters,
            summary="Fetch committed records from an offset on.",
            answer=Fetched,
            other_answers=_PACKED,
            errors=(416,),
            tag="records",
        ),
        Route(
            method="GET",
            path=f"{partition}/records/{{offset}}",
            handler=reading.record,
            parameters=RecordParameters,
            summary="Fetch one record; its bare value with Accept: application/octet-stream.",
            answer=RecordOut,
            other_answers=("application/octet-stream",),
            errors=(416,),
            tag="records",
        ),
        Route(
            method="GET",
            path=f"{partition}/offset",
            handler=reading.find_offset,
            parameters=OffsetParameters,
            summary="Find the offset of a place or a time.",
            answer=FoundOffset,
            tag="records",
        ),
    ]


def administration_routes(admin: Administration) -> list[Route]:
    """Return where topics, producers and the cluster are looked after."""
    return [
        Route(
            method="GET",
            path="/v1/topics",
            handler=admin.list_topics,
            summary="List all topics.",
            answer=Topics,
            tag="topics",
        ),
        Route(
            method="POST",
            path="/v1/topics",
            handler=admin.create_topic,
            summary="Make a topic.",
            body=NewTopic,
            answer=TopicOut,
            status=201,
            errors=(409, 415),
            tag="topics",
        ),
        Route(
            method="GET",
            path="/v1/topics/{topic}",
            handler=admin.describe_topic,
            parameters=TopicParameters,
            summary="Describe a topic.",
            answer=TopicOut,
            tag="topics",
        ),
        Route(
            method="PATCH",
            path="/v1/topics/{topic}",
            handler=admin.alter_topic,
            parameters=TopicParameters,
            summary="Give a topic more partitions or other settings.",
            body=TopicChange,
            answer=TopicOut,
            errors=(409, 415),
            tag="topics",
        ),
        Route(
            method="DELETE",
            path="/v1/topics/{topic}",
            handler=admin.delete_topic,
            parameters=TopicParameters,
            summary="Remove a topic with everything in it.",
            status=204,
            tag="topics",
        ),
        Route(
            method="POST",
            path="/v1/topics/{topic}/partitions/{partition}/leader",
            handler=admin.transfer_leader,
            parameters=PartitionParameters,
            summary="Ask a partition's leader to hand over.",
            body=Handover,
            status=204,
            errors=(409, 415),
            tag="cluster",
        ),
        Route(
            method="POST",
            path="/v1/producers",
            handler=admin.open_producer,
            summary="Issue a producer's identity.",
            body=ProducerName,
            answer=ProducerOut,
            errors=(409, 415),
            tag="producers",
        ),
        Route(
            method="GET",
            path="/v1/cluster",
            handler=admin.cluster_status,
            summary="The cluster, as this node sees it.",
            answer=Cluster,
            tag="cluster",
        ),
        Route(
            method="POST",
            path="/v1/cluster/nodes/{node}/drain",
            handler=admin.drain_node,
            parameters=NodeParameters,
            summary="Move everything away from a node, or call that off.",
            body=Drain,
            status=204,
            errors=(409, 415),
            tag="cluster",
        ),
        Route(
            method="DELETE",
            path="/v1/cluster/nodes/{node}",
            handler=admin.remove_node,
            parameters=NodeParameters,
            summary="Forget a node that holds nothing any more.",
            status=204,
            errors=(409,),
            tag="cluster",
        ),
        Route(
            method="POST",
            path="/v1/cluster/level",
            handler=admin.raise_level,
            summary="Let the cluster work at a higher feature level, the end of an upgrade.",
            body=LevelWish,
            answer=Level,
            errors=(409, 415),
            tag="cluster",
        ),
    ]


def stream_routes(streaming: Streaming, sockets: Sockets) -> list[Route]:
    """Return what goes on and on."""
    return [
        Route(
            method="GET",
            path="/v1/topics/{topic}/stream",
            handler=streaming.stream,
            parameters=StreamParameters,
            summary="Follow a topic as server-sent events.",
            other_answers=("text/event-stream",),
            headers=(("Last-Event-ID", "The id of the last event that was received."),),
            errors=(403, 416),
            tag="streams",
        ),
        Route(
            method="GET",
            path="/v1/socket",
            handler=sockets.socket,
            summary="A WebSocket: subscribe, consume, settle, publish.",
        ),
    ]


def observing_routes(observing: Observing) -> list[Route]:
    """Return where the node's own state is shown; not under /v1, where everybody looks for it."""
    return [
        Route(method="GET", path="/status", handler=observing.status, summary="Status."),
        Route(method="GET", path="/metrics", handler=observing.metrics, summary="Metrics."),
        Route(method="GET", path="/healthz", handler=observing.healthz, summary="Alive."),
        Route(method="GET", path="/readyz", handler=observing.readyz, summary="May serve."),
    ]
