"""Reaching the cluster: everything publishing and reading share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.client.calls import Calls
from angarium.client.metadata import Metadata
from angarium.client.pool import Pool
from angarium.client.routes import Routes

if TYPE_CHECKING:
    from angarium.client.addresses import Address
    from angarium.client.settings import ClientSettings


class Reach:
    """Connections, the map of the cluster, and ways to ask."""

    def __init__(self, bootstrap: tuple[Address, ...], settings: ClientSettings) -> None:
        self.settings = settings
        self.pool = Pool(settings)
        self.routes = Routes(self.pool, bootstrap, topics_max=settings.topics_max)
        self.calls = Calls(self.routes, settings)
        self.metadata = Metadata(self.routes, self.calls)

    async def close(self, *, timeout_s: float) -> None:
        """Say goodbye to every node."""
        await self.metadata.close()
        await self.pool.close(timeout_s=timeout_s)
