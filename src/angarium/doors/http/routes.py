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
from angarium.doors.http.routing import Route, Routes
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
    topic = "/v1/topics/{topic}"
    partition = f"{topic}/partitions/{{partition}}"
    key = ("Idempotency-Key", "Any word; a request repeated with it changes nothing.")
    number = ("Angarium-Sequence", "NAME:NUMBER, for clients that count what they send.")
    add = Routes("records")
    add.post(
        f"{topic}/records",
        publishing.publish,
        "Publish a record. A body other than JSON is its value.",
        parameters=PublishParameters,
        body=NewRecord,
        takes_any=True,
        other_bodies=_ANY,
        answer=Ack,
        errors=(409, 422, 501, 507),
        headers=(key, number),
    )
    add.post(
        f"{topic}/records/batch",
        publishing.publish_batch,
        "Publish many records at once, or batches packed by the client.",
        parameters=BatchParameters,
        body=NewRecords,
        other_bodies=_PACKED,
        answer=Published,
        errors=(409, 422, 507),
        headers=(key,),
    )
    add.get(
        f"{partition}/records",
        reading.fetch,
        "Fetch committed records from an offset on.",
        parameters=FetchParameters,
        answer=Fetched,
        other_answers=_PACKED,
        errors=(416,),
    )
    add.get(
        f"{partition}/records/{{offset}}",
        reading.record,
        "Fetch one record; its bare value with Accept: application/octet-stream.",
        parameters=RecordParameters,
        answer=RecordOut,
        other_answers=("application/octet-stream",),
        errors=(416,),
    )
    add.get(
        f"{partition}/offset",
        reading.find_offset,
        "Find the offset of a place or a time.",
        parameters=OffsetParameters,
        answer=FoundOffset,
    )
    return add.found


def administration_routes(admin: Administration) -> list[Route]:
    """Return where topics, producers and the cluster are looked after."""
    return [*_topic_routes(admin), *_producer_routes(admin), *_cluster_routes(admin)]


def _topic_routes(admin: Administration) -> list[Route]:
    topics, topic = "/v1/topics", "/v1/topics/{topic}"
    which = {"parameters": TopicParameters}
    add = Routes("topics")
    add.get(topics, admin.list_topics, "List all topics.", answer=Topics)
    add.post(
        topics,
        admin.create_topic,
        "Make a topic.",
        body=NewTopic,
        answer=TopicOut,
        status=201,
        errors=(409,),
    )
    add.get(topic, admin.describe_topic, "Describe a topic.", **which, answer=TopicOut)
    add.patch(
        topic,
        admin.alter_topic,
        "Give a topic more partitions or other settings.",
        **which,
        body=TopicChange,
        answer=TopicOut,
        errors=(409,),
    )
    add.delete(topic, admin.delete_topic, "Remove a topic with everything in it.", **which)
    return add.found


def _producer_routes(admin: Administration) -> list[Route]:
    add = Routes("producers")
    add.post(
        "/v1/producers",
        admin.open_producer,
        "Issue a producer's identity.",
        body=ProducerName,
        answer=ProducerOut,
        errors=(409,),
    )
    return add.found


def _cluster_routes(admin: Administration) -> list[Route]:
    node = "/v1/cluster/nodes/{node}"
    which = {"parameters": NodeParameters}
    add = Routes("cluster")
    add.get(
        "/v1/cluster", admin.cluster_status, "The cluster, as this node sees it.", answer=Cluster
    )
    add.post(
        "/v1/topics/{topic}/partitions/{partition}/leader",
        admin.transfer_leader,
        "Ask a partition's leader to hand over.",
        parameters=PartitionParameters,
        body=Handover,
        errors=(409,),
    )
    add.post(
        f"{node}/drain",
        admin.drain_node,
        "Move everything away from a node, or call that off.",
        **which,
        body=Drain,
        errors=(409,),
    )
    add.delete(
        node,
        admin.remove_node,
        "Forget a node that holds nothing any more.",
        **which,
        errors=(409,),
    )
    add.post(
        "/v1/cluster/level",
        admin.raise_level,
        "Let the cluster work at a higher feature level, the end of an upgrade.",
        body=LevelWish,
        answer=Level,
        errors=(409,),
    )
    return add.found


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
