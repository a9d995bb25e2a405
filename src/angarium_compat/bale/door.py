"""The profile's listener: its five calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from angarium.doors.feeds.feed import TopicFeed
from angarium.service.patience import patient
from angarium_compat.bale.metrics import BaleMetrics
from angarium_compat.bale.schema import SCHEMA
from angarium_compat.bale.subjects import Subjects
from angarium_compat.listening import Listener

if TYPE_CHECKING:
    from angarium.api import Subscription
    from angarium.wire.grpc import Call, CallLimits
    from angarium.wire.listening import Context
    from angarium_compat.bale.subjects import SubjectBroker

_published = SCHEMA["PublishResponse"]
_message = SCHEMA["MessageResponse"]


class BaleDoor:
    """Serves the profile's `broker.Broker` on one address."""

    def __init__(
        self,
        broker: SubjectBroker,
        *,
        host: str,
        port: int,
        metrics: BaleMetrics | None = None,
        limits: CallLimits | None = None,
        tls: Context | None = None,
        is_traced: bool = False,
    ) -> None:
        self._subjects = Subjects(patient(broker))
        self._metrics = metrics or BaleMetrics()
        handlers = {
            "Publish": self._publish,
            "Subscribe": self._subscribe,
            "Fetch": self._fetch,
            "Broadcast": self._broadcast,
            "IncIdx": self._inc_idx,
        }
        self._listener = Listener(
            SCHEMA,
            handlers,
            host=host,
            port=port,
            on_ended=self._metrics.ended,
            limits=limits,
            tls=tls,
            traced_as="bale" if is_traced else "",
        )

    async def start(self) -> int:
        """Open the door; return the port."""
        return await self._listener.start()

    async def stop(self, grace_s: float = 2.0) -> None:
        """Close the door: subscriptions end as UNAVAILABLE at once."""
        await self._listener.stop(grace_s)

    async def _publish(self, request: Any, _: Call) -> Any:
        number = await self._subjects.publish(
            request.subject, request.body, expires_after_s=request.expirationSeconds
        )
        return _published(id=number)

    async def _fetch(self, request: Any, _: Call) -> Any:
        return _message(body=await self._subjects.fetch(request.subject, request.id))

    async def _broadcast(self, request: Any, _: Call) -> Any:
        await self._subjects.broadcast(request.subject, request.body)
        return SCHEMA["BroadcastResponse"](ack=True)

    async def _inc_idx(self, request: Any, _: Call) -> Any:
        return SCHEMA["IncIdxResponse"](newIdx=await self._subjects.reserve(request.subject))

    async def _subscribe(self, request: Any, call: Call) -> None:
        subscription = await self._subjects.subscribe(request.subject)
        metrics = self._metrics
        metrics.subscribers += 1
        try:
            # A client that waits for the headers knows that it misses nothing from here on.
            await call.send_initial_metadata(())
            await self._listener.until_one_ends(_deliver(subscription, call))
        finally:
            metrics.subscribers -= 1
            await self._listener.closings.see_to(subscription.close())


async def _deliver(subscription: Subscription, call: Call) -> None:
    async for portion in TopicFeed(subscription):
        for record in portion.records:
            await call.write(_message(body=record.value or b"").SerializeToString())
