"""What a client holds while it is open: its connections, its publisher, what ends with it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from angarium.client.publishing.producer_identities import ProducerIdentities
from angarium.client.publishing.publisher import Publisher
from angarium.client.publishing.sending import Sending
from angarium.client.transactions.face import TransactionBook

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.client.groups.keeper import Keeper
    from angarium.client.publishing.receipts import Loss
    from angarium.client.reach import Reach
    from angarium.client.reading.subscription import Subscription

_log = logging.getLogger(__name__)


class Opened:
    """Everything a client holds while it is open, on its event loop."""

    def __init__(
        self, reach: Reach, *, producer: str | None, on_loss: Callable[[Loss], None] | None
    ) -> None:
        self.reach = reach
        self.subscriptions: set[Subscription] = set()
        self.transactions = TransactionBook()
        self.keeper: Keeper | None = None
        """Holds what this client's consumers have on loan; made with the first of them."""
        self.publisher = Publisher(
            Sending(
                settings=reach.settings,
                routes=reach.routes,
                metadata=reach.metadata,
                calls=reach.calls,
                waiting=reach.waiting,
                producer_identities=ProducerIdentities(reach.calls, producer),
                on_loss=on_loss,
            )
        )

    async def close(self) -> None:
        """Publish what waits, for as long as the settings allow, then let go of everything."""
        settings = self.reach.settings
        try:
            async with asyncio.timeout(settings.close_timeout_s):
                await self.publisher.flush()
        except TimeoutError:
            _log.warning("closing although not everything published was answered")
        except Exception as error:
            _log.error("closing although something published failed: %s", error)
        finally:
            await self.transactions.close()
            for subscription in list(self.subscriptions):
                await subscription.close()
            if self.keeper is not None:
                await self.keeper.close()
            await self.publisher.close()
            await self.reach.close(timeout_s=settings.attempt_timeout_s)
