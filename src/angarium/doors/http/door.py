"""The door itself: opening it, closing it, and which request goes where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.doors.http.administration import (
    Administration,
    NodeParameters,
    PartitionParameters,
    TopicParameters,
)
from angarium.doors.http.lanes import Lanes
from angarium.doors.http.openapi import document
from angarium.doors.http.origins import check_origin
from angarium.doors.http.problems import problem
from angarium.doors.http.publishing import BatchParameters, Publishing, PublishParameters
from angarium.doors.http.reading import (
    FetchParameters,
    OffsetParameters,
    Reading,
    RecordParameters,
)
from angarium.doors.http.routing import NoParameters, Route, Router
from angarium.doors.http.server import HttpLimits, HttpServer, Response
from angarium.doors.http.server.messages import JSON
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
from angarium.doors.partitions import TopicShapes

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.api import Broker
    from angarium.doors.http.server.messages import Answer, Request

_ANY: Final = ("application/octet-stream", "text/plain")
_PACKED: Final = ("application/vnd.angarium.batch",)


class HttpDoor:
    """Serves the broker over HTTP on one address."""

    def __init__(
        self,
        broker: Broker,
        *,
        host: str,
        port: int,
        limits: HttpLimits | None = None,
        origins: tuple[str, ...] = (),
        leader_hint: Callable[[str, int], str | None] | None = None,
    ) -> None:
        """Prepare a door to `broker`; `port` 0 takes a free one.

        `origins` are the web pages, besides our own, whose scripts may use the door. `leader_hint`
        returns the HTTP address of the node that leads a partition, None if that is this node or
        nobody knows.
        """
        self._broker = broker
        self._host = host
        self._port = port
        self._origins = frozenset(origins)
        self._leader_hint = leader_hint
        self.router = Router(self._routes())
        self._document = msgspec.json.encode(document(self.router.routes))
        self.server = HttpServer(self._handle, problem, limits or HttpLimits())

    async def start(self) -> int:
        """Open the door; return the port. `OSError` if the address cannot be had."""
        return await self.server.start(host=self._host, port=self._port)

    async def stop(self, grace_s: float = 2.0) -> None:
        """Close the door: streams end at once, other requests have `grace_s` to finish."""
        await self.server.stop(grace_s)

    def _handle(self, request: Request) -> Answer:
        check_origin(request, self._origins)
        return self.router.dispatch(request)

    def _routes(self) -> list[Route]:
        broker = self._broker
        shapes = TopicShapes(broker)
        self.lanes = Lanes(broker, shapes)
        publishing = Publishing(broker, shapes, self.lanes, self._leader_hint)
        return [
            *_record_routes(publishing, Reading(broker)),
            *_administration_routes(Administration(broker, shapes)),
            Route(
                method="GET",
                path="/v1/openapi.json",
                handler=self._openapi,
                summary="This document.",
            ),
        ]

    def _openapi(self, _: Request, __: NoParameters) -> Response:
        return Response(200, self._document, JSON)


def _record_routes(publishing: Publishing, reading: Reading) -> list[Route]:
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
            errors=(409, 507),
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
            errors=(409, 415, 507),
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


def _administration_routes(admin: Administration) -> list[Route]:
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
