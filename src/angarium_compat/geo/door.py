"""The profile's listener: two calls, each with a name and a password."""

from __future__ import annotations

import base64
import binascii
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from angarium.service.patience import patient
from angarium.wire.grpc import GrpcCode
from angarium_compat.geo.feeds import begun
from angarium_compat.geo.publishing import GeoPublishing
from angarium_compat.geo.schema import SCHEMA
from angarium_compat.listening import Listener, Refused

if TYPE_CHECKING:
    from angarium.api import Broker
    from angarium.security import Users
    from angarium.wire.grpc import Call, CallLimits
    from angarium_compat.geo.feeds import Feed

_KEY: Final = "authorization"
_SCHEME: Final = "basic "
_message: Final = SCHEMA["MessageResponse"]


class GeoDoor:
    """Serves the profile's `broker.Broker` on one address."""

    def __init__(
        self,
        broker: Broker,
        users: Users,
        *,
        host: str,
        port: int,
        limits: CallLimits | None = None,
    ) -> None:
        broker = patient(broker)
        self._broker = broker
        self._users = users
        self._publishing = GeoPublishing(broker)
        handlers = {"Publish": self._publish, "Subscribe": self._subscribe}
        self._listener = Listener(
            SCHEMA, handlers, host=host, port=port, admit=self._admit, limits=limits
        )

    async def start(self) -> int:
        """Open the door; return the port."""
        return await self._listener.start()

    async def stop(self, grace_s: float = 2.0) -> None:
        """Close the door: subscriptions end as UNAVAILABLE at once."""
        await self._listener.stop(grace_s)

    async def _admit(self, call: Call) -> None:
        said = next((value for key, value in call.invocation_metadata() if key == _KEY), "")
        name, password = _credentials(said if isinstance(said, str) else said.decode("latin-1"))
        if not await self._users.knows(name, password):
            # Which of the two is wrong is nobody's business.
            raise Refused(GrpcCode.UNAUTHENTICATED, "no user has this name and password")

    async def _publish(self, request: Any, _: Call) -> Any:
        number = await self._publishing.publish(request.topic, request.body)
        return SCHEMA["PublishResponse"](id=number)

    async def _subscribe(self, request: Any, call: Call) -> None:
        feed = await begun(self._broker, self._publishing, dict(request.topics))
        # A client that waits for the headers knows that it misses nothing from here on.
        await call.send_initial_metadata(())
        await self._listener.until_one_ends(_deliver(feed, call))


async def _deliver(feed: Feed, call: Call) -> None:
    async with aclosing(feed.messages()) as messages:
        async for one in messages:
            message = _message(id=one.id, timestamp=one.shown_us, topic=one.topic, body=one.body)
            await call.write(message.SerializeToString())


def _credentials(said: str) -> tuple[str, str]:
    """Return the name and the password in an authorization header; `Refused` without them."""
    if said[: len(_SCHEME)].lower() == _SCHEME:
        try:
            decoded = base64.b64decode(said[len(_SCHEME) :].strip(), validate=True).decode()
        except (binascii.Error, ValueError):
            decoded = ""
        name, colon, password = decoded.partition(":")
        if colon:
            return name, password
    raise Refused(
        GrpcCode.UNAUTHENTICATED, "say who you are: `authorization: basic base64(user:password)`"
    )
