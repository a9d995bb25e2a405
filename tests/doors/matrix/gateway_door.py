"""REST through a gateway, which has no account of its own and passes its callers' proofs on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tests.doors.matrix.answers import Door
from tests.doors.matrix.http_client import HttpConnection
from tests.doors.matrix.rest_door import METHODS, RestDoor

from angarium.app.gateway import GatewayPart

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.doors.matrix.answers import Answer
    from tests.doors.matrix.callers import Caller
    from tests.doors.matrix.world import World

    from angarium.bench.cluster import BenchNode

HOST = "127.0.0.1"


class GatewayDoor(Door):
    """A gateway in front of one node."""

    name = "gateway"
    methods: ClassVar = {
        name: calls for name, calls in METHODS.items() if not name.startswith("dead_letters.")
    }

    def __init__(self, world: World, node: BenchNode) -> None:
        self._world = world
        self._gateway = GatewayPart((node.wire,), host=HOST, port=0)
        self._door: RestDoor | None = None

    @classmethod
    def declared(cls) -> Mapping[str, str]:
        return {
            shape: method for shape, method in RestDoor.declared().items() if method in cls.methods
        }

    @classmethod
    def meant(cls, method: str, given: dict[str, Any]) -> dict[str, Any]:
        return RestDoor.meant(method, given)

    async def ask(self, caller: Caller, method: str, given: dict[str, Any]) -> Answer:
        if self._door is None:
            port = await self._gateway.start()
            self._door = RestDoor(self._world, HttpConnection(f"{HOST}:{port}"))
        return await self._door.ask(caller, method, given)

    async def close(self) -> None:
        if self._door is not None:
            await self._door.close()
        await self._gateway.stop()
