"""What goes out over a WebSocket under one id: a topic's records, or what a group is lent."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from angarium.doors.feeds.credit import Credit
from angarium.doors.feeds.feed import GroupFeed, TopicFeed
from angarium.doors.feeds.positions import word_of
from angarium.doors.http.record_json import record_out
from angarium.errors import AngariumError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from angarium.api import Consumption, Subscription
    from angarium.doors.feeds.feed import Feed, Portion
    from angarium.doors.http.socket_messages import Consume, Subscribe
    from angarium.wire.http.websocket import WebSocket

_encode: Final = msgspec.json.Encoder().encode


class SocketFeed:
    """One subscription, or one member of a group, on a socket."""

    def __init__(self, feed: Feed, websocket: WebSocket, said: Subscribe | Consume) -> None:
        self._feed = feed
        self._websocket = websocket
        self._id = said.id
        self._in_base64 = said.encoding == "base64"
        self._is_lost = True
        self._closing: asyncio.Task[None] | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """What the client is told when it begins."""
        raise NotImplementedError

    async def more_credit(self, records: int) -> None:
        """Let records go out, or be on loan."""
        raise NotImplementedError

    async def marks(self, portion: Portion) -> dict[str, Any]:
        """Return what is told beside a portion, when it may go out."""
        raise NotImplementedError

    def stop(self) -> None:
        """Send nothing more; a member leaves its group."""
        self._closing = asyncio.get_running_loop().create_task(self._feed.close())

    async def run(self) -> None:
        """Send until told to stop; raises what broke it. `close` has to follow."""
        try:
            async for portion in self._feed:
                await self._send(portion)
            self._is_lost = False
        except AngariumError:
            self._is_lost = False
            raise

    async def close(self) -> None:
        """End it, whether it ran or not."""
        if self._closing is not None:
            await self._closing
        else:
            await self._feed.close(lost=self._is_lost)

    async def _send(self, portion: Portion) -> None:
        topic, partition, records, live, *_ = portion
        marks = await self.marks(portion)
        shown = [
            record_out(one, partition=partition, in_base64=self._in_base64, live=live)
            for one in records
        ]
        message = {"type": "records", "id": self._id, "topic": topic, "records": shown, **marks}
        await self._websocket.send(_encode(message))


class TopicSocketFeed(SocketFeed):
    """The records of a topic, as far as credit goes."""

    def __init__(
        self,
        subscription: Subscription,
        websocket: WebSocket,
        said: Subscribe,
        starts: Mapping[int, int],
    ) -> None:
        """Begin; `starts`, by partition, may become more while it runs."""
        super().__init__(TopicFeed(subscription), websocket, said)
        self._starts = starts
        self._positions = dict(starts)
        self._credit = Credit(said.credit)

    @property
    def facts(self) -> dict[str, Any]:
        return {"position": word_of(list(self._positions.values()))}

    async def more_credit(self, records: int) -> None:
        self._credit.add(records)

    async def marks(self, portion: Portion) -> dict[str, Any]:
        """Wait for credit, which may go below zero by a portion; return how far the reader is."""
        await self._credit.some()
        self._credit.left -= len(portion.records)
        for number in list(self._starts)[len(self._positions) :]:
            self._positions[number] = self._starts[number]
        if not portion.live:
            self._positions[portion.partition] = portion.records[-1].offset + 1
        return self.facts


class GroupSocketFeed(SocketFeed):
    """What one member of a group is lent."""

    def __init__(self, consumption: Consumption, websocket: WebSocket, said: Consume) -> None:
        super().__init__(GroupFeed(consumption), websocket, said)
        self.consumption = consumption

    @property
    def facts(self) -> dict[str, Any]:
        return {"member": self.consumption.member, "kind": self.consumption.kind.name.lower()}

    async def more_credit(self, records: int) -> None:
        await self.consumption.set_credit(records)

    async def marks(self, portion: Portion) -> dict[str, Any]:
        """Return what a member has to know of a loan."""
        return {
            "partition": portion.partition,
            "attempt": portion.attempt,
            "lease_ms": portion.lease_ms,
        }
