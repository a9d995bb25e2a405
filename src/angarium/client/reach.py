"""Reaching the cluster: everything publishing and reading share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.client.calls import Calls
from angarium.client.freshness import Freshness
from angarium.client.metadata import Metadata
from angarium.client.nearby import Nearby
from angarium.client.pool import Pool
from angarium.client.reading.bounds import Seen
from angarium.client.region import Region
from angarium.client.routes import Routes
from angarium.client.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.client.addresses import Address
    from angarium.client.login import Login
    from angarium.client.settings import ClientSettings
    from angarium.errors import AngariumError


class Reach:
    """Connections, the map of the cluster, and ways to ask; on the event loop it is made on."""

    def __init__(
        self,
        bootstrap: tuple[Address, ...],
        settings: ClientSettings,
        *,
        login: Login,
        on_wait: Callable[[AngariumError], None] | None = None,
    ) -> None:
        self.settings = settings
        self.waiting = Waiting(on_wait)
        self.pool = Pool(settings, login)
        self.region = Region(settings.region)
        nearby = Nearby(self.region)
        self.routes = Routes(self.pool, bootstrap, nearby, topics_max=settings.topics_max)
        self.seen = Seen()
        self.calls = Calls(self.routes, settings, self.waiting)
        self.metadata = Metadata(self.routes, self.calls, self.pool)
        self.pool.on_change = self.routes.doubted.set
        self._freshness = Freshness(self.routes, self.metadata, refresh_s=settings.refresh_s)

    async def close(self, *, timeout_s: float) -> None:
        """Say goodbye to every node."""
        await self._freshness.close()
        await self.metadata.close()
        await self.region.close()
        await self.pool.close(timeout_s=timeout_s)
