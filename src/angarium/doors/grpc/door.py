"""The door itself: opening it, closing it, and which call goes where."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from google.protobuf import descriptor_pool

from angarium.doors.grpc import health
from angarium.doors.grpc.calls import answered, begun
from angarium.doors.grpc.contract_calls import contract_calls
from angarium.doors.grpc.door_limits import GrpcLimits
from angarium.doors.grpc.fetching import fetch
from angarium.doors.grpc.publish_stream import publish_stream
from angarium.doors.grpc.publishing import publish, publish_batch
from angarium.doors.grpc.reflection import Reflection
from angarium.doors.grpc.refusals import Refusals
from angarium.doors.grpc.subscribing import subscribe
from angarium.doors.intake import Intake
from angarium.errors import AngariumError
from angarium.proto.v1 import broker_pb2 as pb
from angarium.wire.grpc import GrpcServer, streaming

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.api import Broker
    from angarium.ids import NodeId
    from angarium.wire.grpc import Method, Tls

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
        self._health = health.Health(SERVICE)
        reflection = Reflection((SERVICE, health.SERVICE), descriptor_pool.Default())
        self._server = GrpcServer(
            {**self._methods(), **self._health.methods(), **reflection.methods()},
            self.limits,
            refusal_of=self.refusals.of,
        )
        self._address = (host, port)
        self._tls = tls
        self.stopping = self._server.stopping
        self.closings = self._server.closings
        self.families = self._server.families

    async def start(self) -> int:
        """Open the door; return the port. `OSError` if the address cannot be had."""
        host, port = self._address
        self._health.set_serving(serving=True)
        return await self._server.start(host=host, port=port, tls=self._tls)

    async def set_serving(self, *, serving: bool) -> None:
        """Say to those who ask for our health whether to send us anything."""
        self._health.set_serving(serving=serving)

    async def stop(self, grace_s: float = 2.0) -> None:
        """Close the door: streams end at once, other calls have `grace_s` to finish."""
        self._health.close()
        await self._server.stop(grace_s)
        self.intake.lanes.cancel()

    def _methods(self) -> dict[str, Method]:
        methods = {
            "Publish": begun(pb.PublishRequest, partial(publish, self)),
            "PublishBatch": answered(pb.PublishBatchRequest, partial(publish_batch, self)),
            "PublishStream": streaming(partial(publish_stream, self)),
            "Subscribe": streaming(partial(subscribe, self)),
            "Fetch": answered(pb.FetchRequest, partial(fetch, self)),
            **contract_calls(self.broker, self.intake.shapes),
        }
        return {f"/{SERVICE}/{name}": method for name, method in methods.items()}

    async def _address_of(self, node: NodeId) -> str | None:
        """Return where `node` listens for gRPC, if the broker can say."""
        try:
            status = await self.broker.cluster_status()
        except AngariumError:
            return None  # a hint is a courtesy; the error it would go with matters more
        return next((one.addresses.get("grpc") for one in status.nodes if one.id == node), None)
