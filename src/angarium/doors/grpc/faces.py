"""What the gRPC door is to one principal: its broker, its intake, its methods."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from angarium.doors.grpc.calls import answered, begun
from angarium.doors.grpc.contract_calls import contract_calls
from angarium.doors.grpc.fetching import fetch
from angarium.doors.grpc.publish_stream import publish_stream
from angarium.doors.grpc.publishing import publish, publish_batch
from angarium.doors.grpc.subscribing import subscribe
from angarium.doors.intake import Intake
from angarium.proto.v1 import broker_pb2 as pb
from angarium.wire.grpc import streaming, unary

if TYPE_CHECKING:
    from angarium.api import Broker
    from angarium.doors.callers import Faces
    from angarium.doors.grpc.door import GrpcDoor
    from angarium.wire.grpc import Call, Method, Requests

SERVICE: Final = "angarium.v1.Broker"


class GrpcFace:
    """Serves the calls of one principal; with authentication off, everybody's."""

    def __init__(self, door: GrpcDoor, broker: Broker) -> None:
        self.broker = broker
        self.intake = Intake(broker)
        self.limits = door.limits
        self.leader_hint = door.leader_hint
        self.refusals = door.refusals
        self.stopping = door.stopping
        self.closings = door.closings
        self.methods = self._methods()

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


def asking_who(faces: Faces[Broker, GrpcFace]) -> dict[str, Method]:
    """Return methods that look at who calls, and let that principal's face serve."""
    declared = pb.DESCRIPTOR.services_by_name["Broker"].methods
    return {
        path: _streaming(faces, path) if one.client_streaming else _unary(faces, path)
        for one in declared
        for path in [f"/{SERVICE}/{one.name}"]
    }


def _unary(faces: Faces[Broker, GrpcFace], path: str) -> Method:
    def start(data: bytes, call: Call) -> object:
        face = faces.known(call.authorization)
        if face is None:
            call.attend(after_asking(data, call))
            return None
        serve = face.methods[path].unary
        assert serve is not None
        return serve(data, call)

    async def after_asking(data: bytes, call: Call) -> None:
        face = await faces.found(call.authorization, source=call.source)
        serve = face.methods[path].unary
        assert serve is not None
        work = serve(data, call)
        if work is not None:
            call.finish(await work)

    return unary(start)  # type: ignore[arg-type]  # what it returns is what `serve` does


def _streaming(faces: Faces[Broker, GrpcFace], path: str) -> Method:
    async def serve(requests: Requests, call: Call) -> bytes | None:
        face = await faces.found(call.authorization, source=call.source)
        within = face.methods[path].streaming
        assert within is not None
        return await within(requests, call)

    return streaming(serve)
