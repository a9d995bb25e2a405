"""The door itself: opening it, closing it, and which call goes where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf import descriptor_pool

from angarium.doors.callers import Callers, Faces
from angarium.doors.grpc import health
from angarium.doors.grpc.door_limits import GrpcLimits
from angarium.doors.grpc.faces import SERVICE, GrpcFace, asking_who, knowing_who
from angarium.doors.grpc.reflection import Reflection
from angarium.doors.grpc.refusals import Refusals
from angarium.errors import AngariumError
from angarium.wire.grpc import GrpcServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.doors.grpc.contract_calls import GrpcBroker
    from angarium.doors.served_by import ServedBy
    from angarium.ids import NodeId
    from angarium.wire.listening import Context


class GrpcDoor:
    """Serves `angarium.v1.Broker` on one address, with health and reflection."""

    def __init__(
        self,
        broker: GrpcBroker | Callers[GrpcBroker],
        *,
        host: str,
        port: int,
        limits: GrpcLimits | None = None,
        tls: Context | None = None,
        leader_hint: Callable[[str, int], str | None] | None = None,
        open_health: bool = True,
        served_by: Callable[[], ServedBy] = lambda: (),
    ) -> None:
        """Prepare a door to `broker`, or to that of each of the callers; `port` 0 takes a free one.

        `leader_hint` returns the gRPC address of the node that leads a partition, None if that is
        this node or nobody knows. A publish that was passed on says so in its trailing metadata.
        `open_health`: anybody may ask how the door is, although others have to say who they are.
        `served_by` is what each answer's initial metadata says of the node.
        """
        callers = broker if isinstance(broker, Callers) else Callers.everybody(broker)
        self.limits = limits or GrpcLimits()
        self.leader_hint = leader_hint
        self.refusals = Refusals(self._address_of)
        self._health = health.Health(SERVICE)
        reflection = Reflection((SERVICE, health.SERVICE), descriptor_pool.Default())
        self._server = GrpcServer(
            reflection.methods(),
            self.limits,
            refusal_of=self.refusals.of,
            asks_who=callers.anonymous is None,
        )
        self._address = (host, port)
        self._tls = tls
        self._served_by = served_by
        self.stopping = self._server.stopping
        self.closings = self._server.closings
        self.families = self._server.families
        self._faces = Faces(callers, lambda one: GrpcFace(self, one), door="grpc")
        everybodys = self._faces.everybodys
        self._server.serve(asking_who(self._faces) if everybodys is None else everybodys.methods)
        asked = self._health.methods()
        self._server.serve(asked if open_health else knowing_who(self._faces, asked))

    async def start(self) -> int:
        """Open the door; return the port. `OSError` if the address cannot be had."""
        host, port = self._address
        self._health.set_serving(serving=True)
        self._server.begin_with(self._served_by())
        return await self._server.start(host=host, port=port, tls=self._tls)

    async def set_serving(self, *, serving: bool) -> None:
        """Say to those who ask for our health whether to send us anything."""
        self._health.set_serving(serving=serving)

    async def stop(self, grace_s: float = 2.0) -> None:
        """Close the door: streams end at once, other calls have `grace_s` to finish."""
        self._health.close()
        await self._server.stop(grace_s)
        for face in self._faces.all():
            face.intake.lanes.cancel()

    async def _address_of(self, node: NodeId) -> str | None:
        """Return where `node` listens for gRPC, if everybody may know that."""
        everybodys = self._faces.everybodys
        if everybodys is None:
            return None
        try:
            status = await everybodys.broker.cluster_status()
        except AngariumError:
            return None  # a hint is a courtesy; the error it would go with matters more
        return next((one.addresses.get("grpc") for one in status.nodes if one.id == node), None)
