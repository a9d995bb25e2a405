"""The wire door: frames in, the contract behind, frames out. Translation only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.api import FetchRequest, PublishRequest
from angarium.batch import split
from angarium.doors.wire import requests
from angarium.doors.wire.attachments import attach
from angarium.doors.wire.consumptions import consume
from angarium.doors.wire.subscriptions import subscribe
from angarium.errors import AngariumError
from angarium.wire import Handlers, Role
from angarium.wire.operations import (
    FetchAnswer,
    FetchHeader,
    Operation,
    PublishAnswer,
    PublishHeader,
)
from angarium.wire.raft_codec import RAFT_OPERATION

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from angarium.api import Ack
    from angarium.node.node import Node
    from angarium.service.dispatching import Dispatcher
    from angarium.service.metering import MeteredService
    from angarium.wire import Connection, Request
    from angarium.wire.handlers import RequestHandler, StreamHandler


class WireDoor:
    """Serves clients and other nodes on the wire port."""

    def __init__(self, node: Node, service: MeteredService, dispatcher: Dispatcher) -> None:
        self._node = node
        self._service = service
        asked: dict[int, RequestHandler] = {
            int(Operation.PUBLISH): self._publish,
            int(Operation.FETCH): self._fetch,
            **_by_number(requests.of_clients(service, node, dispatcher)),
        }
        streams: dict[int, StreamHandler] = {
            int(Operation.SUBSCRIBE): lambda stream: subscribe(stream, service),
            int(Operation.CONSUME): lambda stream: consume(stream, service),
        }
        self._for_nodes = Handlers(requests=asked, streams=streams)
        """What a node may ask before it is a peer: to be let in, and who is who."""
        self._for_clients = Handlers(
            requests={one: how for one, how in asked.items() if one not in requests.OF_NODES},
            streams=streams,
        )
        self._for_peers = Handlers(
            messages={
                RAFT_OPERATION: node.take_raft,
                int(Operation.PEER): node.take_peer_message,
                int(Operation.DISPATCH): dispatcher.hear_dispatch,
                int(Operation.INTERESTS): dispatcher.hear_interests,
            },
            requests=asked | _by_number(requests.of_peers(service, node)),
            streams=streams
            | {int(Operation.ATTACH): lambda stream: attach(stream, service.groups.host)},
            on_closed=node.admission.left,
        )

    def welcome(self, connection: Connection) -> Handlers:
        """Return what the other side of a connection may do here; raises why nothing at all."""
        hello = connection.peer.hello
        if hello.role not in {Role.PEER, Role.PEER_BULK}:
            is_node = self._node.admission.is_proven(connection)
            return self._for_nodes if is_node else self._for_clients
        if not self._node.is_open:
            return Handlers()  # it does not know yet who it is, nor who the others are
        self._node.levels.check_peer(hello)
        self._node.admission.admit(connection)
        return self._for_peers

    # The two hot requests. A publish that this node leads is answered without a task of its own.

    def _publish(self, request: Request) -> Coroutine[None, None, None] | None:
        header = request.read(PublishHeader)
        publish = PublishRequest(
            topic=header.topic,
            partition=header.partition,
            batches=tuple(split(request.payload)),
            mode=header.mode,
        )

        def answer(outcome: tuple[Ack, ...] | AngariumError) -> None:
            if isinstance(outcome, AngariumError):
                request.fail(outcome)
            else:
                request.answer(PublishAnswer(outcome, self._service.partition_count(header.topic)))

        if self._service.begin_publish(publish, answer):
            return None
        return self._publish_elsewhere(request, publish)

    async def _publish_elsewhere(self, request: Request, publish: PublishRequest) -> None:
        acks = await self._service.publish(publish)
        request.answer(PublishAnswer(acks, self._service.partition_count(publish.topic)))

    async def _fetch(self, request: Request) -> None:
        header = request.read(FetchHeader)
        result = await self._service.fetch(
            FetchRequest(
                topic=header.topic,
                partition=header.partition,
                offset=header.offset,
                bytes_max=header.bytes_max,
                wait_ms=header.wait_ms,
                fresh=header.fresh,
            )
        )
        answer = FetchAnswer(result.start_offset, result.end_offset, result.expired)
        request.answer(answer, result.batches)


def _by_number(rows: requests.Rows) -> dict[int, RequestHandler]:
    return {int(operation): handler for operation, handler in rows.items()}
