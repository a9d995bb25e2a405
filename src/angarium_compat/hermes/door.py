"""The profile's gRPC listener: the five calls, with reflection."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from angarium.doors.feeds.feed import TopicFeed
from angarium.errors import AngariumError, InvalidArgument
from angarium.service.patience import patient
from angarium.wire.grpc import ReadyAnswer
from angarium_compat.hermes.feeds import acknowledge, begun, messages
from angarium_compat.hermes.joining import Joining
from angarium_compat.hermes.publishing import HermesPublishing
from angarium_compat.hermes.schema import SCHEMA
from angarium_compat.listening import Listener

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from angarium.api import Ack, GroupBroker
    from angarium.doors.feeds.feed import Feed
    from angarium.doors.intake import Placed
    from angarium.wire.grpc import Call, CallLimits, Requests
    from angarium.wire.listening import Context
    from angarium_compat.subscribing import LiveBroker

HINT_KEY: Final = "x-leader-hint"
STREAM_WAITING_MAX: Final = 4_096
"""Messages of one PublishStream that are not answered. At the bound no more are read."""

_DONE: Final = ReadyAnswer(SCHEMA["PublishResponse"](success=True).SerializeToString())
_request_of: Final = SCHEMA["PublishRequest"].FromString
_said_in: Final = SCHEMA["SubscribeRequest"].FromString
_message: Final = SCHEMA["Message"]


class HermesDoor:
    """Serves `broker.BrokerService` on one address."""

    def __init__(
        self,
        broker: LiveBroker,
        groups: GroupBroker,
        *,
        host: str,
        port: int,
        leader_hint: Callable[[str], str | None] | None = None,
        joining: Joining | None = None,
        limits: CallLimits | None = None,
        tls: Context | None = None,
        is_traced: bool = False,
    ) -> None:
        """Prepare; `leader_hint` returns the listener of the node that leads a topic, None if that
        is this node, if nobody knows, or if the topic's partitions have several."""
        broker = patient(broker)
        self._broker = broker
        self._groups = patient(groups)
        self._leader_hint = leader_hint
        self._answered: Ack | None = None
        self._answer = _DONE
        """What records of that batch are answered with, and whom it concerned last."""
        self._joining = joining or Joining(broker, token="")
        self._publishing = HermesPublishing(broker)
        handlers = {
            "PublishStream": self._publish_stream,
            "PublishBatch": self._publish_batch,
            "Subscribe": self._subscribe,
            "Join": self._join,
        }
        begins = {"Publish": self._publish}
        self._listener = Listener(
            SCHEMA,
            handlers,
            host=host,
            port=port,
            begins=begins,
            limits=limits,
            tls=tls,
            traced_as="hermes" if is_traced else "",
        )

    async def start(self) -> int:
        """Open the door; return the port."""
        return await self._listener.start()

    async def stop(self, grace_s: float = 2.0) -> None:
        """Close the door: streams end at once."""
        await self._listener.stop(grace_s)

    # --- publishing -----------------------------------------------------------------------------

    def _publish(self, request: Any, call: Call) -> Coroutine[None, None, None] | None:
        done = partial(self._tell, call)
        return self._publishing.begin(request.topic, request.payload, request.mode, done)

    def _tell(self, call: Call, outcome: Placed | Exception) -> None:
        if isinstance(outcome, Exception):
            call.fail(outcome)
            return
        ack = outcome.ack
        if ack is not self._answered:
            # Records that travelled together are answered in one turn, all of them alike.
            self._answered, self._answer = ack, self._done(ack.topic)
        call.finish_with(self._answer)

    def _done(self, topic: str) -> ReadyAnswer:
        """Return the answer to a publish. On a follower it says who leads: in headers and trailers,
        wherever that is looked for."""
        hint = self._hint(topic)
        return ReadyAnswer(_DONE.message, first=hint, last=hint) if hint else _DONE

    async def _publish_batch(self, request: Any, call: Call) -> Any:
        await self._publishing.publish_batch(request.topic, request.payloads, request.mode)
        hint = self._hint(request.topic)
        if hint:
            call.set_trailing_metadata(hint)
            call.begin(hint)
        return SCHEMA["PublishResponse"](success=True)

    async def _publish_stream(self, requests: Requests, call: Call) -> Any:
        # At once, as there: its clients wait for the headers before they say anything. Which topic
        # it is about is not known yet, so who leads is told at the end.
        call.begin()
        tally = Tally()
        publishing, done = self._publishing, tally.count
        topic = ""
        while some := await requests.together():
            for data in some:
                request = _request_of(data)
                if tally.waiting >= STREAM_WAITING_MAX:
                    await tally.has_room()
                tally.waiting += 1
                topic = request.topic
                try:
                    asking = publishing.begin(topic, request.payload, request.mode, done)
                    if asking is not None:
                        await asking
                except AngariumError as error:
                    done(error)
        await tally.has_ended()
        call.set_trailing_metadata(self._hint(topic))
        return SCHEMA["PublishSummary"](processed_count=tally.processed, failed_count=tally.failed)

    # --- subscribing ----------------------------------------------------------------------------

    async def _subscribe(self, requests: Requests, call: Call) -> None:
        opening = await anext(requests, None)
        first = None if opening is None else _said_in(opening)
        if first is None or first.action != "SUBSCRIBE" or not first.topic:
            raise InvalidArgument("a subscription begins with SUBSCRIBE and a topic")
        feed = await begun(self._broker, self._groups, first.topic, first.group_id)
        try:
            await call.send_initial_metadata(self._hint(first.topic))
            await self._listener.until_one_ends(
                _deliver(feed, call), _listen(feed, first.topic, requests)
            )
        finally:
            await self._listener.closings.see_to(feed.close())

    # --- the cluster ----------------------------------------------------------------------------

    async def _join(self, request: Any, call: Call) -> Any:
        metadata = dict(call.invocation_metadata() or ())
        refusal = await self._joining.asked(
            request.raft_addr, str(metadata.get("authorization", ""))
        )
        return SCHEMA["JoinResponse"](success=not refusal, error=refusal)

    def _hint(self, topic: str) -> tuple[tuple[str, str], ...]:
        if self._leader_hint is None or not topic:
            return ()
        hint = self._leader_hint(topic)
        return () if hint is None else ((HINT_KEY, hint),)


class Tally:
    """What became of the messages of one stream."""

    __slots__ = ("_moved", "failed", "processed", "waiting")

    def __init__(self) -> None:
        self.processed = 0
        self.failed = 0
        self.waiting = 0
        self._moved = asyncio.Event()

    def count(self, outcome: Placed | Exception) -> None:
        """Count one that is answered."""
        if isinstance(outcome, Exception):
            self.failed += 1
        else:
            self.processed += 1
        self.waiting -= 1
        self._moved.set()

    async def has_room(self) -> None:
        """Wait until half of those that wait are answered: in one go rather than one by one."""
        await self._until_only(STREAM_WAITING_MAX // 2)

    async def has_ended(self) -> None:
        """Wait until all are answered."""
        await self._until_only(0)

    async def _until_only(self, count: int) -> None:
        while self.waiting > count:
            self._moved.clear()
            await self._moved.wait()


async def _deliver(feed: Feed, call: Call) -> None:
    async for portion in feed:
        await call.write_all(
            [
                _message(
                    id=name, topic=topic, payload=payload, timestamp=time_us * 1_000
                ).SerializeToString()
                for name, topic, payload, time_us in messages(portion)
            ]
        )


async def _listen(feed: Feed, topic: str, requests: Requests) -> None:
    while some := await requests.together():
        if not isinstance(feed, TopicFeed):  # there it means nothing, however often it is said
            for request in map(_said_in, some):
                if request.action == "ACK":
                    await acknowledge(feed, topic, request.ack_message_id)
