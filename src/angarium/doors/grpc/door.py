"""The door itself: opening it, closing it, and which call goes where."""

from __future__ import annotations

import asyncio
import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from angarium.doors.grpc.administration import Administration
from angarium.doors.grpc.calls import streaming, unary
from angarium.doors.grpc.groups import Groups
from angarium.doors.grpc.limits import GrpcLimits, server_options
from angarium.doors.grpc.publish_stream import PublishStreaming
from angarium.doors.grpc.publishing import Publishing
from angarium.doors.grpc.reading import Reading
from angarium.doors.grpc.refusals import Refusals
from angarium.doors.grpc.subscribing import Subscribing
from angarium.doors.partitions import TopicShapes
from angarium.errors import AngariumError
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.api import Broker
    from angarium.ids import NodeId

SERVICE: Final = "angarium.v1.Broker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """What the door shows, and asks for, on an encrypted connection. All in PEM."""

    certificate: bytes
    """The node's certificate, and those between it and the authority."""
    key: bytes
    """The key of that certificate."""
    client_authorities: bytes | None = None
    """If given, clients must show a certificate signed by one of these."""


class GrpcDoor:
    """Serves `angarium.v1.Broker` on one address, with health and reflection."""

    def __init__(
        self,
        broker: Broker,
        *,
        host: str,
        port: int,
        limits: GrpcLimits | None = None,
        tls: Tls | None = None,
        leader_hint: Callable[[str, int], str | None] | None = None,
    ) -> None:
        """Prepare a door to `broker`; `port` 0 takes a free one.

        `leader_hint` returns the gRPC address of the node that leads a partition, None if that is
        this node or nobody knows. A publish that was passed on says so in its trailing metadata.
        """
        self._broker = broker
        self._host = host
        self._port = port
        self._limits = limits or GrpcLimits()
        self._tls = tls
        self._leader_hint = leader_hint
        self._stopping = asyncio.Event()
        self._health = health.aio.HealthServicer()
        self._server: grpc.aio.Server | None = None

    async def start(self) -> int:
        """Open the door; return the port. `OSError` if the address cannot be had."""
        assert self._server is None, "a door is opened once"
        server = grpc.aio.server(
            options=server_options(self._limits), maximum_concurrent_rpcs=self._limits.calls_max
        )
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, self._handlers()),)
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        reflection.enable_server_reflection(
            (SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), server
        )
        port = self._bound_port(server)
        await self.set_serving(serving=True)
        await server.start()
        self._server = server
        return port

    async def set_serving(self, *, serving: bool) -> None:
        """Say to those who ask for our health whether to send us anything."""
        state = (
            health_pb2.HealthCheckResponse.SERVING
            if serving
            else health_pb2.HealthCheckResponse.NOT_SERVING
        )
        for service in ("", SERVICE):
            await self._health.set(service, state)

    async def stop(self, grace_s: float = 2.0) -> None:
        """Close the door: streams end at once, other calls have `grace_s` to finish."""
        if self._server is None:
            return
        await self._health.enter_graceful_shutdown()
        self._stopping.set()
        await self._server.stop(grace_s)
        self._server = None

    def _bound_port(self, server: grpc.aio.Server) -> int:
        host = f"[{self._host}]" if ":" in self._host else self._host
        address = f"{host}:{self._port}"
        try:
            if self._tls is None:
                port = server.add_insecure_port(address)
            else:
                port = server.add_secure_port(address, _credentials(self._tls))
        except RuntimeError as error:
            raise OSError(errno.EADDRINUSE, f"gRPC cannot listen on {address}") from error
        if port == 0:
            raise OSError(errno.EADDRINUSE, f"gRPC cannot listen on {address}")
        return port

    def _handlers(self) -> dict[str, grpc.RpcMethodHandler[bytes, bytes]]:
        broker, limits = self._broker, self._limits
        shapes = TopicShapes(broker)
        refusals = Refusals(self._address_of)
        publishing = Publishing(broker, shapes, refusals, self._leader_hint)
        stream = PublishStreaming(broker, shapes, limits, self._stopping)
        subscribing = Subscribing(broker, limits, self._stopping)
        reading = Reading(broker, limits)
        admin = Administration(broker, shapes)
        groups = Groups(broker)
        return {
            "Publish": unary(pb.PublishRequest, publishing.publish, refusals),
            "PublishBatch": unary(pb.PublishBatchRequest, publishing.publish_batch, refusals),
            "PublishStream": streaming(stream.publish_stream, refusals),
            "Subscribe": streaming(subscribing.subscribe, refusals),
            "Fetch": unary(pb.FetchRequest, reading.fetch, refusals),
            "FindOffset": unary(pb.FindOffsetRequest, reading.find_offset, refusals),
            "OpenProducer": unary(pb.OpenProducerRequest, admin.open_producer, refusals),
            "Settle": unary(pb.SettleRequest, groups.settle, refusals),
            "ListGroups": unary(pb.ListGroupsRequest, groups.list_groups, refusals),
            "DescribeGroup": unary(pb.DescribeGroupRequest, groups.describe_group, refusals),
            "AlterGroup": unary(pb.AlterGroupRequest, groups.alter_group, refusals),
            "SeekGroup": unary(pb.SeekGroupRequest, groups.seek_group, refusals),
            "PauseGroup": unary(pb.PauseGroupRequest, groups.pause_group, refusals),
            "DeleteGroup": unary(pb.DeleteGroupRequest, groups.delete_group, refusals),
            "ReportCheckpoints": unary(
                pb.ReportCheckpointsRequest, groups.report_checkpoints, refusals
            ),
            "CreateTopic": unary(pb.CreateTopicRequest, admin.create_topic, refusals),
            "AlterTopic": unary(pb.AlterTopicRequest, admin.alter_topic, refusals),
            "DeleteTopic": unary(pb.DeleteTopicRequest, admin.delete_topic, refusals),
            "ListTopics": unary(pb.ListTopicsRequest, admin.list_topics, refusals),
            "DescribeTopic": unary(pb.DescribeTopicRequest, admin.describe_topic, refusals),
            "GetClusterStatus": unary(
                pb.GetClusterStatusRequest, admin.get_cluster_status, refusals
            ),
            "DrainNode": unary(pb.DrainNodeRequest, admin.drain_node, refusals),
            "RemoveNode": unary(pb.RemoveNodeRequest, admin.remove_node, refusals),
            "TransferLeader": unary(pb.TransferLeaderRequest, admin.transfer_leader, refusals),
            "RaiseLevel": unary(pb.RaiseLevelRequest, admin.raise_level, refusals),
        }

    async def _address_of(self, node: NodeId) -> str | None:
        """Return where `node` listens for gRPC, if the broker can say."""
        try:
            status = await self._broker.cluster_status()
        except AngariumError:
            return None  # a hint is a courtesy; the error it would go with matters more
        return next((one.addresses.get("grpc") for one in status.nodes if one.id == node), None)


def _credentials(tls: Tls) -> grpc.ServerCredentials:
    return grpc.ssl_server_credentials(
        [(tls.key, tls.certificate)],
        root_certificates=tls.client_authorities,
        require_client_auth=tls.client_authorities is not None,
    )
