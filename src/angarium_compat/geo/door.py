"""The profile's listener: two calls, each with a name and a password."""

from __future__ import annotations

import base64
import binascii
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from angarium.doors.callers import Callers, Faces
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
    from angarium.wire.listening import Context
    from angarium_compat.geo.feeds import Feed

_SCHEME: Final = "basic "
_message: Final = SCHEMA["MessageResponse"]


class GeoFace:
    """What the door is to one principal."""

    def __init__(self, broker: Broker) -> None:
        self.broker = patient(broker)
        self.publishing = GeoPublishing(self.broker)


class GeoDoor:
    """Serves the profile's `broker.Broker` on one address."""

    def __init__(
        self,
        broker: Broker | Callers[Any],
        users: Users,
        *,
        host: str,
        port: int,
        limits: CallLimits | None = None,
        tls: Context | None = None,
    ) -> None:
        """Prepare; with `Callers` in the place of a broker it is they who know everybody, and
        `users` nobody."""
        self._users = None if isinstance(broker, Callers) else users
        callers = broker if isinstance(broker, Callers) else Callers.everybody(broker)
        self._faces = Faces(callers, GeoFace, door="geo")
        handlers = {"Publish": self._publish, "Subscribe": self._subscribe}
        self._listener = Listener(
            SCHEMA, handlers, host=host, port=port, admit=self._admit, limits=limits, tls=tls
        )

    async def start(self) -> int:
        """Open the door; return the port."""
        return await self._listener.start()

    async def stop(self, grace_s: float = 2.0) -> None:
        """Close the door: subscriptions end as UNAVAILABLE at once."""
        await self._listener.stop(grace_s)

    async def _admit(self, call: Call) -> None:
        try:
            name, password = _credentials(call.authorization or "")
        except Refused:
            self._faces.missing(call.source)  # in the words of the profile, but recorded
            raise
        if self._users is None:
            await self._faces.found(call.authorization, source=call.source)
        elif not await self._users.knows(name, password):
            # Which of the two is wrong is nobody's business.
            raise Refused(GrpcCode.UNAUTHENTICATED, "no user has this name and password")

    async def _face(self, call: Call) -> GeoFace:
        return await self._faces.found(call.authorization, source=call.source)

    async def _publish(self, request: Any, call: Call) -> Any:
        face = await self._face(call)
        number = await face.publishing.publish(request.topic, request.body)
        return SCHEMA["PublishResponse"](id=number)

    async def _subscribe(self, request: Any, call: Call) -> None:
        face = await self._face(call)
        feed = await begun(face.broker, face.publishing, dict(request.topics))
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
