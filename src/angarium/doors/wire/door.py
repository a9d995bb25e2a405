"""The wire door: frames in, the contract behind, frames out. Translation only."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from angarium.api import PublishRequest
from angarium.batch import split
from angarium.doors.wire import requests
from angarium.doors.wire.attachments import attach
from angarium.doors.wire.consumptions import consume
from angarium.doors.wire.logins import Logins
from angarium.doors.wire.subscriptions import subscribe
from angarium.errors import AngariumError
from angarium.security.origin import ORIGIN, Origin
from angarium.service.access.access import BROKERS_MAX
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
    from collections.abc import Coroutine, Mapping

    from angarium.api import Ack
    from angarium.node.node import Node
    from angarium.security.authenticating import Authenticator
    from angarium.service.access import Access, PermittedBroker
    from angarium.service.metering import MeteredService
    from angarium.wire import Connection, Request
    from angarium.wire.handlers import RequestHandler, StreamHandler


class WireDoor:
    """Serves clients and other nodes on the wire port."""

    def __init__(
        self,
        node: Node,
        service: MeteredService,
        access: Access,
        authenticator: Authenticator | None = None,
    ) -> None:
        """Without an authenticator nobody can log in: what needs no proof is all there is."""
        self._node = node
        self._access = access
        self._dispatcher = service.dispatcher
        self._of_nodes = _by_number(requests.of_nodes(service, node))
        """What a node may ask before it is a peer: to be let in, and who is who."""
        self._of_strangers = _by_number(requests.of_strangers(node))
        self._handlers: dict[PermittedBroker, Handlers] = {}
        self._logins = None
        if authenticator is not None:
            self._logins = Logins(
                authenticator,
                served=lambda principal: self._for(access.broker_for(principal)),
                attend=access.attend,
                enter=access.presences.enter,
            )
        for_nodes = self._for(access.for_nodes())
        self._for_peers = Handlers(
            messages={
                RAFT_OPERATION: node.take_raft,
                int(Operation.PEER): node.take_peer_message,
                int(Operation.DISPATCH): service.dispatcher.hear_dispatch,
                int(Operation.INTERESTS): service.dispatcher.hear_interests,
            },
            requests={
                **for_nodes.requests,
                **self._of_nodes,
                **_by_number(requests.of_peers(service, node, access)),
            },
            streams={
                **for_nodes.streams,
                int(Operation.ATTACH): lambda stream: attach(stream, service.groups.host),
            },
            on_closed=node.admission.left,
        )

    def welcome(self, connection: Connection) -> Handlers:
        """Return what the other side of a connection may do here; raises why nothing at all."""
        if self._access.audit is not None:
            origin = Origin("wire", connection.source)
            ORIGIN.set(origin)
            connection.on_entered = partial(ORIGIN.set, origin)
        hello = connection.peer.hello
        if hello.role not in {Role.PEER, Role.PEER_BULK}:
            is_node = self._node.admission.is_proven(connection)
            return self._of_clients(connection, self._of_nodes if is_node else self._of_strangers)
        if not self._node.is_open:
            return Handlers()  # it does not know yet who it is, nor who the others are
        self._node.levels.check_peer(hello)
        self._node.admission.admit(connection)
        return self._for_peers

    def _of_clients(self, connection: Connection, beside: Mapping[int, RequestHandler]) -> Handlers:
        """Return what a client may do, and `beside` it what needs no principal."""
        if self._logins is not None:
            return self._logins.welcome(connection, beside)
        anonymous = self._access.anonymous
        if anonymous is None:
            return Handlers(requests=beside)
        return self._for(self._access.broker_for(anonymous)).and_requests(beside)

    def _for(self, broker: PermittedBroker) -> Handlers:
        """Return what is served to a principal; made once for each that is kept."""
        known = self._handlers.get(broker)
        if known is None:
            if len(self._handlers) >= BROKERS_MAX:
                del self._handlers[next(iter(self._handlers))]
            known = self._handlers[broker] = self._made_for(broker)
        return known

    def _made_for(self, broker: PermittedBroker) -> Handlers:
        asked: dict[int, RequestHandler] = {
            int(Operation.PUBLISH): _publishing(broker),
            int(Operation.FETCH): _fetching(broker),
            **_by_number(requests.of_clients(broker, self._dispatcher)),
        }
        streams: dict[int, StreamHandler] = {
            int(Operation.SUBSCRIBE): lambda stream: subscribe(stream, broker),
            int(Operation.CONSUME): lambda stream: consume(stream, broker),
        }
        return Handlers(requests=asked, streams=streams, tolled=broker)


# The two hot requests. A publish that this node leads is answered without a task of its own.


def _publishing(broker: PermittedBroker) -> RequestHandler:
    def serve(request: Request) -> Coroutine[None, None, None] | None:
        header = request.read(PublishHeader)
        publish = PublishRequest(
            topic=header.topic,
            partition=header.partition,
            batches=tuple(split(request.payload)),
            mode=header.mode,
            layout=header.layout,
            region=header.region,
        )

        def answer(outcome: tuple[Ack, ...] | AngariumError) -> None:
            if isinstance(outcome, AngariumError):
                request.fail(outcome)
            else:
                request.answer(PublishAnswer(outcome, broker.partition_count(header.topic)))

        is_taken = broker.take_publish(publish, answer)
        if broker.toll is not None:
            # Who is over its quota is kept from sending more: so nothing of it waits in memory,
            # and nothing overtakes.
            request.connection.rest(broker.toll.rest_s())
        return None if is_taken else elsewhere(request, publish)

    async def elsewhere(request: Request, publish: PublishRequest) -> None:
        acks = await broker.publish_taken(publish)
        request.answer(PublishAnswer(acks, broker.partition_count(publish.topic)))

    return serve


def _fetching(broker: PermittedBroker) -> RequestHandler:
    async def serve(request: Request) -> None:
        result = await broker.fetch(request.read(FetchHeader).request())
        request.answer(FetchAnswer.of(result), result.batches)

    return serve


def _by_number(rows: requests.Rows) -> dict[int, RequestHandler]:
    return {int(operation): handler for operation, handler in rows.items()}
