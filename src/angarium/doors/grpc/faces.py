"""What the gRPC door is to one principal: its broker, its intake, its methods."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from angarium.doors.callers import counted_of, presence_of
from angarium.doors.grpc.ack_bytes import AckWriter
from angarium.doors.grpc.calls import answered, begun
from angarium.doors.grpc.contract_calls import contract_calls
from angarium.doors.grpc.fetching import fetch
from angarium.doors.grpc.leader_hints import LeaderHints
from angarium.doors.grpc.publish_stream import publish_stream
from angarium.doors.grpc.publishing import publish, publish_batch
from angarium.doors.grpc.subscribing import subscribe
from angarium.doors.intake import Intake
from angarium.proto.v1 import broker_pb2 as pb
from angarium.wire.grpc import streaming, unary

if TYPE_CHECKING:
    from angarium.doors.callers import Faces
    from angarium.doors.grpc.contract_calls import GrpcBroker
    from angarium.doors.grpc.door import GrpcDoor
    from angarium.wire.grpc import Call, Method, Requests

SERVICE: Final = "angarium.v1.Broker"


class GrpcFace:
    """Serves the calls of one principal; with authentication off, everybody's."""

    def __init__(self, door: GrpcDoor, broker: GrpcBroker) -> None:
        self.broker = broker
        self.intake = Intake(broker)
        self.counted = counted_of(broker)
        """Who counts the calls and streams."""
        self.limits = door.limits
        self.acks = AckWriter()
        self.hints = LeaderHints(door.leader_hint)
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


def asking_who(faces: Faces[GrpcBroker, GrpcFace]) -> dict[str, Method]:
    """Return methods that look at who calls, and let that principal's face serve."""
    declared = pb.DESCRIPTOR.services_by_name["Broker"].methods
    return {
        path: _streaming(faces, path) if one.client_streaming else _unary(faces, path)
        for one in declared
        for path in [f"/{SERVICE}/{one.name}"]
    }


def knowing_who(
    faces: Faces[GrpcBroker, GrpcFace], methods: dict[str, Method]
) -> dict[str, Method]:
    """Return unary methods that serve all alike, but only who has said who it is."""

    def known(method: Method) -> Method:
        serve = method.unary
        assert serve is not None

        async def serve_known(data: bytes, call: Call) -> None:
            await _found(faces, call)
            work = serve(data, call)
            if work is not None:
                call.finish(await work)

        def start(data: bytes, call: Call) -> object:
            call.attend(serve_known(data, call))
            return None

        return unary(start)  # type: ignore[arg-type]  # as below

    return {path: known(method) for path, method in methods.items()}


def _unary(faces: Faces[GrpcBroker, GrpcFace], path: str) -> Method:
    def start(data: bytes, call: Call) -> object:
        face = faces.known(call.authorization, call, certificate=call.peer_certificate)
        if face is None:
            call.attend(after_asking(data, call))
            return None
        call.proven()
        toll = face.counted.toll
        if toll is not None:
            wait_s = toll.begin_request()
            if wait_s > 0:
                call.attend(after(wait_s, face, data, call))
                return None
        serve = face.methods[path].unary
        assert serve is not None
        return serve(data, call)

    async def after_asking(data: bytes, call: Call) -> None:
        face = await _found(faces, call)
        toll = face.counted.toll
        await after(0.0 if toll is None else toll.begin_request(), face, data, call)

    async def after(wait_s: float, face: GrpcFace, data: bytes, call: Call) -> None:
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        serve = face.methods[path].unary
        assert serve is not None
        work = serve(data, call)
        if work is not None:
            call.finish(await work)

    return unary(start)  # type: ignore[arg-type]  # what it returns is what `serve` does


async def _found(faces: Faces[GrpcBroker, GrpcFace], call: Call) -> GrpcFace:
    shown = call.peer_certificate
    face = await faces.found(call.authorization, source=call.source, certificate=shown)
    call.proven()
    return face


def _streaming(faces: Faces[GrpcBroker, GrpcFace], path: str) -> Method:
    async def serve(requests: Requests, call: Call) -> bytes | None:
        face = await _found(faces, call)
        if face.counted.toll is not None:
            await face.counted.toll.admit_request()
        within = face.methods[path].streaming
        assert within is not None
        with presence_of(face.counted):
            return await within(requests, call)

    return streaming(serve)
