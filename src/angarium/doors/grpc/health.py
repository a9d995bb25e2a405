"""grpc.health.v1: whether to send us anything, for those who ask and those who watch."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from angarium.doors.grpc.standard_messages import message_class
from angarium.wire.errors import Unreachable
from angarium.wire.grpc import GrpcCode, unary

if TYPE_CHECKING:
    from angarium.wire.grpc import Call, Method

SERVICE: Final = "grpc.health.v1.Health"
SERVING: Final = 1
NOT_SERVING: Final = 2
SERVICE_UNKNOWN: Final = 3

_Request: Final = message_class("grpc.health.v1.HealthCheckRequest")
_Response: Final = message_class("grpc.health.v1.HealthCheckResponse")


class Health:
    """What each service says of itself. The one without a name stands for the whole server."""

    def __init__(self, *services: str) -> None:
        self._states = dict.fromkeys(("", *services), NOT_SERVING)
        self._changed = asyncio.Event()
        self._is_closed = False

    def close(self) -> None:
        """Say for the last time that nothing serves: those who watch are sent elsewhere."""
        self._is_closed = True
        self.set_serving(serving=False)

    def set_serving(self, *, serving: bool) -> None:
        """Say of all services whether they serve."""
        self._states = dict.fromkeys(self._states, SERVING if serving else NOT_SERVING)
        self._changed.set()  # whoever waits on the old one has to look again
        self._changed = asyncio.Event()

    def methods(self) -> dict[str, Method]:
        """Return the service's methods, by their paths."""
        return {f"/{SERVICE}/Check": unary(self._check), f"/{SERVICE}/Watch": unary(self._watch)}

    def _check(self, data: bytes, call: Call) -> None:
        state = self._states.get(_Request.FromString(data).service)
        if state is None:
            call.refuse(GrpcCode.NOT_FOUND, "there is no such service here")
        else:
            call.finish(_Response(status=state).SerializeToString())

    async def _watch(self, data: bytes, call: Call) -> bytes:
        service = _Request.FromString(data).service
        told: Any = None
        while True:
            changed = self._changed
            state = self._states.get(service, SERVICE_UNKNOWN)
            if state != told:
                told = state
                await call.write(_Response(status=state).SerializeToString())
            if self._is_closed:
                raise Unreachable("this node is stopping")
            await changed.wait()
