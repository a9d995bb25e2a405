"""From settings to the parts of a running node. The one place that knows every room."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from angarium.app.addresses import Address
from angarium.app.facts import NodeFacts
from angarium.app.seeds import Seeds
from angarium.client import Client
from angarium.doors.patience import patient
from angarium.doors.wire.door import WireDoor
from angarium.errors import NotFound
from angarium.ids import NodeId
from angarium.node.config import NodeConfig
from angarium.node.node import Node
from angarium.replica.config import ReplicaConfig
from angarium.replica.host import HostConfig
from angarium.security import Users
from angarium.service.metering import MeteredService

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.app.serving import Part, Signals
    from angarium.app.settings import Settings

_log = logging.getLogger(__name__)


def parts(settings: Settings, signals: Signals) -> Sequence[Part]:
    """Return what a node consists of, in the order in which it starts."""
    node = NodePart(config_of(settings), signals)
    found: list[Part] = [node]
    if settings.listen.grpc_port is not None:
        # gRPC takes as long to load as everything else together; without the door it stays out.
        from angarium.doors.grpc import GrpcDoor  # noqa: PLC0415

        host, port = settings.listen.host, settings.listen.grpc_port
        hint = partial(node.leader_address, "grpc")
        found.append(GrpcDoor(patient(node.service), host=host, port=port, leader_hint=hint))
    if settings.listen.http_port is not None:
        found.append(http_door(settings, node))
    return found + compat_doors(settings, node)


def http_door(settings: Settings, node: NodePart) -> Part:
    """Return the HTTP door of a node."""
    from angarium.doors.http import HttpDoor, HttpLimits  # noqa: PLC0415  (as for gRPC)

    chosen = settings.http
    assert settings.listen.http_port is not None
    broker = patient(node.service)
    return HttpDoor(
        broker,
        groups=broker,
        sequenced=node.service.transactions,
        client=node.client,
        facts=NodeFacts(node.node, node.service.meters),
        host=settings.listen.host,
        port=settings.listen.http_port,
        limits=HttpLimits(
            connections_max=chosen.connections_max, body_bytes_max=chosen.body_bytes_max
        ),
        origins=chosen.origins,
        leader_hint=partial(node.leader_address, "http"),
    )


def compat_doors(settings: Settings, node: NodePart) -> list[Part]:
    """Return the listeners for clients of earlier brokers that have a port."""
    return [*hermes_doors(settings, node), *bale_doors(settings, node), *geo_doors(settings, node)]


def hermes_doors(settings: Settings, node: NodePart) -> list[Part]:
    """Return the listeners of the profile hermes that have a port."""
    chosen, host = settings.compat, settings.listen.host
    found: list[Part] = []
    if chosen.hermes_grpc_port is None and chosen.hermes_http_port is None:
        return found
    from angarium.doors.compat.hermes import (  # noqa: PLC0415  (as for gRPC)
        HermesDoor,
        HermesHttpDoor,
        Joining,
    )

    service = node.service
    joining = Joining(service, token=chosen.hermes_join_token)
    if chosen.hermes_grpc_port is not None:
        hint = partial(node.leader_address, "hermes")
        port = chosen.hermes_grpc_port
        found.append(
            HermesDoor(service, service, host=host, port=port, leader_hint=hint, joining=joining)
        )
    if chosen.hermes_http_port is not None:
        facts = NodeFacts(node.node, service.meters)
        port = chosen.hermes_http_port
        found.append(
            HermesHttpDoor(
                service,
                service,
                host=host,
                port=port,
                facts=facts,
                joining=joining,
                origins=settings.http.origins,
            )
        )
    return found


def bale_doors(settings: Settings, node: NodePart) -> list[Part]:
    """Return the listeners of the profile bale that have a port."""
    chosen, host = settings.compat, settings.listen.host
    if chosen.bale_grpc_port is None:
        return []
    from angarium.doors.compat.bale import (  # noqa: PLC0415  (as for gRPC)
        BaleDoor,
        BaleMetrics,
        BaleMetricsDoor,
    )

    metrics = BaleMetrics()
    port = chosen.bale_grpc_port
    found: list[Part] = [BaleDoor(node.service, host=host, port=port, metrics=metrics)]
    if chosen.bale_metrics_ports:
        found.append(BaleMetricsDoor(metrics, host=host, ports=chosen.bale_metrics_ports))
    return found


def geo_doors(settings: Settings, node: NodePart) -> list[Part]:
    """Return the listener of the profile geo, if it has a port."""
    chosen, host = settings.compat, settings.listen.host
    if chosen.geo_grpc_port is None:
        return []
    from angarium.doors.compat.geo import GeoDoor  # noqa: PLC0415  (as for gRPC)

    users = Users(settings.users.hashes)
    return [GeoDoor(node.service, users, host=host, port=chosen.geo_grpc_port)]


class NodePart:
    """The node with its service and its wire door; the process ends when the node gives up."""

    def __init__(self, config: NodeConfig, signals: Signals) -> None:
        self.node = Node(config)
        self.service = MeteredService(self.node)
        self.node.welcome = WireDoor(self.node, self.service, self.service.dispatcher).welcome
        self.node.background.append(Seeds(self.node, tuple(map(Address.parse, config.join))).run)
        self._signals = signals
        self._watch: asyncio.Task[None] | None = None
        self._client: Client | None = None

    async def start(self) -> None:
        """Come up on what the data directory holds, or form or join a cluster."""
        await self.node.start()
        self._watch = asyncio.create_task(self._tell_failure())
        _log.info("member", extra={"node": self.node.id, "wire_port": self.node.wire_port})

    async def stop(self) -> None:
        """Hand leadership over and close everything."""
        if self._watch is not None:
            self._watch.cancel()
        if self._client is not None:
            await self._client.close()
        await self.node.stop()

    def client(self) -> Client:
        """Return a client of the cluster, for what doors leave to one: dead letters."""
        if self._client is None:
            self._client = Client(self.node.addresses["wire"])
        return self._client

    def leader_address(self, door: str, topic: str, partition: int) -> str | None:
        """Return where the leader of a partition has a door, if that is another node."""
        node = self.node
        try:
            leader = node.leader_of(node.catalog.partition(topic, partition).group)
        except NotFound:
            return None
        if leader is None or leader == node.id:
            return None
        known = node.catalog.machine.nodes.by_id.get(leader)
        return None if known is None else dict(known.addresses).get(door)

    async def _tell_failure(self) -> None:
        await self.node.stopped.wait()
        if self.node.failure is not None:
            self._signals.fail(self.node.failure)


def config_of(settings: Settings) -> NodeConfig:
    """Return what the node itself needs to know."""
    node, cluster = settings.node, settings.cluster
    replica = ReplicaConfig(
        election_ticks=cluster.election_ticks, heartbeat_ticks=cluster.heartbeat_ticks
    )
    return NodeConfig(
        data_directory=node.data,
        wire_host=settings.listen.host,
        wire_port=settings.listen.wire_port,
        advertised=advertised(settings),
        form=node.form,
        join=tuple(map(str, node.join)),
        node_id=None if node.id is None else NodeId(node.id),
        region=node.region,
        zone=node.zone,
        host=node.host,
        tick_ms=cluster.tick_ms,
        auto_create_topics=cluster.auto_create_topics,
        catalog_voters=cluster.catalog_voters,
        host_config=HostConfig(replica=replica),
    )


def advertised(settings: Settings) -> dict[str, str]:
    """Return, by door, where others find this node. A port still to be chosen is left out."""
    listen, told = settings.listen, settings.advertise
    ports = {
        "wire": listen.wire_port if told.wire_port is None else told.wire_port,
        "grpc": listen.grpc_port if told.grpc_port is None else told.grpc_port,
        "http": listen.http_port if told.http_port is None else told.http_port,
        "hermes": settings.compat.hermes_grpc_port,
    }
    host = told.host or listen.host
    return {door: str(Address(host, port)) for door, port in ports.items() if port}
