"""The door itself: opening it, closing it, and which call goes where."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from angarium.doors.grpc.calls import Calls
from angarium.doors.grpc.contract_calls import contract_calls
from angarium.doors.grpc.fetching import fetch
from angarium.doors.grpc.publish_stream import publish_stream
from angarium.doors.grpc.publishing import publish, publish_batch
from angarium.doors.grpc.refusals import Refusals
from angarium.doors.grpc.server_limits import GrpcLimits
from angarium.doors.grpc.serving import GrpcServer
from angarium.doors.grpc.subscribing import subscribe
from angarium.doors.intake import Intake
from angarium.errors import AngariumError
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable

    import grpc

    from angarium.api import Broker
    from angarium.doors.grpc.serving import Tls
    from angarium.ids import NodeId

SERVICE: Final = "angarium.v1.Broker"


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
        self.broker = broker
        self.intake = Intake(broker)
        self.limits = limits or GrpcLimits()
        self.leader_hint = leader_hint
        self.refusals = Refusals(self._address_of)
        self._server = GrpcServer(host=host, port=port, limits=self.limits, tls=tls)
        self.stopping = self._server.stopping
        self.closings = self._server.closings
        self._health = health.aio.HealthServicer()

    async def start(self) -> int:
        """Open the door; return the port. `OSError` if the address cannot be had."""
        inflating = self._server.prepare(SERVICE, self._handlers())
        health_pb2_grpc.add_HealthServicer_to_server(self._health, inflating)
        await self.set_serving(serving=True)
        return await self._server.start(inflating, SERVICE, health.SERVICE_NAME)

    async def set_serving(self, *, serving: bool) -> None:
        """Say to those who ask for our health whether to send us anything."""
        states = health_pb2.HealthCheckResponse
        state = states.SERVING if serving else states.NOT_SERVING
        for service in ("", SERVICE):
            await self._health.set(service, state)

    async def stop(self, grace_s: float = 2.0) -> None:
        """Close the door: streams end at once, other calls have `grace_s` to finish."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace_s)

    def _handlers(self) -> dict[str, grpc.RpcMethodHandler[bytes, bytes]]:
        calls = Calls(self.refusals, message_bytes_max=self.limits.message_bytes_max)
        return {
            "Publish": calls.unary(pb.PublishRequest, partial(publish, self)),
            "PublishBatch": calls.unary(pb.PublishBatchRequest, partial(publish_batch, self)),
            "PublishStream": calls.streaming(partial(publish_stream, self)),
            "Subscribe": calls.streaming(partial(subscribe, self)),
            "Fetch": calls.unary(pb.FetchRequest, partial(fetch, self)),
            **contract_calls(calls, self.broker, self.intake.shapes),
        }

    async def _address_of(self, node: NodeId) -> str | None:
        """Return where `node` listens for gRPC, if the broker can say."""
        try:
            status = await self.broker.cluster_status()
        except AngariumError:
            return None  # a hint is a courtesy; the error it would go with matters more
        return next((one.addresses.get("grpc") for one in status.nodes if one.id == node), None)
