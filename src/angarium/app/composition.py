"""From settings to the parts of a running node. The one place that knows every room."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from angarium.addresses import Address
from angarium.api.access import Action, Principal, ResourceKind
from angarium.app.administrators import Administrators
from angarium.app.audit_settings import AuditSettings
from angarium.app.facts import NodeFacts
from angarium.app.invitations import Invitations, join_token_in
from angarium.app.processes import is_new
from angarium.app.recovered_catalog import RecoveryRecord
from angarium.app.security_settings import SecuritySettings
from angarium.app.seeds import Seeds
from angarium.app.settings import DOOR_PORTS
from angarium.doors import timing
from angarium.doors.callers import Callers
from angarium.doors.served_by import ascii_of
from angarium.doors.wire.door import WireDoor
from angarium.errors import NotFound
from angarium.ids import NodeId
from angarium.node.config import NodeConfig
from angarium.node.node import Node
from angarium.node.ports import listening
from angarium.replica.config import HostConfig, ReplicaConfig
from angarium.security import Users
from angarium.security.authenticating import Authenticator
from angarium.security.jwt import JwtIssuer
from angarium.security.jwt_keys import IssuerKeys, check_installed, reader_of
from angarium.security.tls import Door, TlsWatch
from angarium.service.access import Access
from angarium.service.access.accounts import CatalogAccounts
from angarium.service.audit import Audit
from angarium.service.metering import MeteredService
from angarium.service.patience import patient

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from angarium.app.serving import ServingPart, Signals
    from angarium.app.settings import Settings
    from angarium.doors.grpc import GrpcLimits
    from angarium.doors.grpc.contract_calls import GrpcBroker
    from angarium.doors.served_by import ServedBy
    from angarium.security.tls import NodeTls
    from angarium.service.access import PermittedBroker
    from angarium.wire.http.admission import Admission
    from angarium.wire.http.hosts import Hosts
    from angarium.wire.listening import Context

BehindT = TypeVar("BehindT")

_log = logging.getLogger(__name__)


def parts(settings: Settings, signals: Signals) -> Sequence[ServingPart]:
    """Return what a node consists of, in the order in which it starts."""
    node = NodePart(config_of(settings), signals, settings.security, settings.audit)
    found: list[ServingPart] = [node]
    if settings.listen.grpc_port is not None:
        # Protobuf takes time to load; without the door it stays out.
        from angarium.doors.grpc import GrpcDoor  # noqa: PLC0415

        host, port = settings.listen.host, settings.listen.grpc_port
        hint = partial(node.leader_address, "grpc")
        callers: Callers[GrpcBroker] = node.callers(patient)
        limits, tls = grpc_limits(settings), tls_of(node, Door.GRPC)
        grpc = GrpcDoor(
            callers,
            host=host,
            port=port,
            limits=limits,
            tls=tls,
            leader_hint=hint,
            open_health=settings.security.open_health,
            served_by=node.served_by,
        )
        found.append(grpc)
        node.facts.doors.append(grpc.families)
    http = [] if settings.listen.http_port is None else [http_door(settings, node)]
    compat = compat_doors(settings, node)
    if not is_new(settings.node.data):
        return [node, *(ReturningDoor(one) for one in (*found[1:], *http, *compat))]
    if settings.node.form:
        return [*found, *http, *compat]
    # Until a node is let in may take long: meanwhile `/readyz` says what it waits for.
    return [ListeningPart(node.node), *http, *found, *compat]


class ListeningPart:
    """A node that can be asked how it is, and serves nobody yet; who starts it stops it."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def start(self) -> None:
        """Open the wire port."""
        await self._node.listen()

    async def stop(self) -> None:
        """Leave that to the node, which is stopped before."""


class ReturningDoor:
    """A door of a node that was here before: somebody may have its port for a while."""

    def __init__(self, door: ServingPart) -> None:
        self._door = door

    async def start(self) -> object:
        """Open the door, as soon as its port can be had."""
        return await listening(self._door.start)

    async def stop(self) -> None:
        """Close it."""
        await self._door.stop()


def http_door(settings: Settings, node: NodePart) -> ServingPart:
    """Return the HTTP door of a node."""
    from angarium.doors.http import HttpDoor, HttpLimits  # noqa: PLC0415  (as for gRPC)
    from angarium.doors.http.faces import Behind  # noqa: PLC0415

    def behind(broker: PermittedBroker) -> Behind:
        waiting = patient(broker)
        may_measure = partial(measuring, broker)
        return Behind(waiting, waiting, broker, broker.dead_letters, may_measure, access=broker)

    chosen = settings.http
    assert settings.listen.http_port is not None
    return HttpDoor(
        node.callers(behind),
        facts=node.facts,
        host=settings.listen.host,
        port=settings.listen.http_port,
        limits=HttpLimits(
            connections_max=chosen.connections_max, body_bytes_max=chosen.body_bytes_max
        ),
        admission=admission(settings),
        hsts_s=chosen.hsts_s,
        leader_hint=partial(node.leader_address, "http"),
        served_by=node.served_by,
        tls=tls_of(node, Door.HTTP),
    )


async def measuring(broker: PermittedBroker) -> None:
    """Raise if whom the broker asks for may not read metrics."""
    broker.check(Action.METRICS_READ, ResourceKind.CLUSTER)


def tls_of(node: NodePart, door: Door) -> Context | None:
    """Return the TLS of a door; None without."""
    tls = node.node.config.tls
    return None if tls is None else tls.listener(door)


def grpc_limits(settings: Settings) -> GrpcLimits:
    """Return the bounds of each gRPC listener of this node."""
    from angarium.doors.grpc import GrpcLimits  # noqa: PLC0415  (as for gRPC)

    return GrpcLimits(connections_max=settings.grpc.connections_max)


def admission(settings: Settings) -> Admission:
    """Return who may ask this node over HTTP: by its own names, and pages that were named."""
    from angarium.wire.http.admission import Admission  # noqa: PLC0415  (as for gRPC)
    from angarium.wire.http.origins import Origins  # noqa: PLC0415

    return Admission(hosts_of(settings), Origins(settings.http.origins))


def hosts_of(settings: Settings) -> Hosts:
    """Return the names that this node answers to over HTTP."""
    from angarium.wire.http.hosts import Hosts  # noqa: PLC0415  (as for gRPC)

    own = [one for one in (settings.listen.host, settings.advertise.host) if one]
    return Hosts([*own, *settings.http.hosts])


def compat_doors(settings: Settings, node: NodePart) -> Sequence[ServingPart]:
    """Return the listeners for clients of earlier brokers that have a port."""
    if not settings.compat.is_on:
        return []
    # Few nodes have any: without one the package is not loaded.
    from angarium_compat.profiles import Surroundings, listeners  # noqa: PLC0415

    around = Surroundings(
        broker_of=node.broker_of,
        callers=node.callers(_as_it_is) if node.access.is_required else None,
        host=settings.listen.host,
        users=Users(settings.users.hashes),
        facts=node.facts,
        admission=admission(settings),
        limits=grpc_limits(settings),
        leader_address=node.sole_leader_address,
        tls=node.node.config.tls,
        measuring=measuring if node.access.is_required else None,
        is_traced=node.audit is not None,
    )
    return listeners(settings.compat, around)


def issuers_of(security: SecuritySettings) -> list[JwtIssuer]:
    """Return those whose JWTs are a proof."""
    if not security.jwt_issuer or security.authentication == "off":
        return []
    check_installed()
    ca_file = Path(security.jwt_keys_ca) if security.jwt_keys_ca else None
    keys = IssuerKeys(reader_of(security.jwt_keys, ca_file=ca_file))
    return [JwtIssuer(security.jwt(), keys)]


def _as_it_is(broker: PermittedBroker) -> PermittedBroker:
    return broker


def watch_of(tls: NodeTls) -> TlsWatch:
    """Return what follows the files of a node's certificates."""
    return TlsWatch([tls.made], tls.certificates)


class NodePart:
    """The node with its service and its wire door; the process ends when the node gives up."""

    def __init__(
        self,
        config: NodeConfig,
        signals: Signals,
        security: SecuritySettings | None = None,
        audit: AuditSettings | None = None,
    ) -> None:
        security = security or SecuritySettings()
        self.node = Node(config)
        self.service = MeteredService(self.node)
        choices = (audit or AuditSettings()).choices(is_required=security.is_required)
        self.audit = None if choices is None else Audit(self.service, choices)
        issuers = issuers_of(security)
        self.access = Access(
            self.service,
            is_required=security.is_required,
            audit=self.audit,
            published=lambda: frozenset().union(*(one.keys.published for one in issuers)),
        )
        self.node.background.extend(one.keys.run for one in issuers)
        self.authenticator = Authenticator(
            CatalogAccounts(self.node.catalog),
            anonymous=self.access.anonymous,
            issuers=issuers,
            certificates=security.certificates(),
        )
        if self.audit is not None:
            self.authenticator.on_failure = self.audit.login_failed
            self.service.cluster.on_join = self.audit.joined
            self.node.admission.on_refusal = self.audit.turned_away
            self.node.bindings.on_moved = self.audit.moved
        door = WireDoor(self.node, self.service, self.access, self.authenticator)
        self.node.welcome = door.welcome
        administrators = Administrators(
            self.access, config.data_directory, security, is_forming=config.form
        )
        self.node.background.append(administrators.run)
        self.node.readiness.sources.append(administrators.reasons)
        self.node.background.append(RecoveryRecord(self.node, self.audit).run)
        self.node.background.append(Invitations(self.access, config.data_directory).run)
        self.node.background.append(Seeds(self.node).run)
        self.watch = None if config.tls is None else watch_of(config.tls)
        self.facts = NodeFacts(self.node, self.service.meters, tls=self.watch)
        self.facts.doors.append(self.access.throttled.families)
        if self.audit is not None:
            self.facts.doors.append(self.audit.families)
            if self.watch is not None:
                self.watch.on_change = self.audit.certificates_changed
        self._signals = signals
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Come up on what the data directory holds, or form or join a cluster."""
        if self.watch is not None:
            await (
                self.watch.start()
            )  # before: to be let in may take longer than a certificate lasts
        await self.node.start()
        timing.follow(self.node.now)
        self._watch = asyncio.create_task(self._tell_failure())
        _log.info("member", extra={"node": self.node.id, "wire_port": self.node.wire_port})

    async def stop(self) -> None:
        """Hand leadership over and close everything."""
        if self._watch is not None:
            self._watch.cancel()
        if self.audit is not None:
            await self.audit.close()  # while this node can still publish
        await self.node.stop()
        if self.watch is not None:
            await self.watch.stop()

    def callers(self, behind: Callable[[PermittedBroker], BehindT]) -> Callers[BehindT]:
        """Return who may come in by a door, and what it finds: made of the broker of each."""
        return Callers(
            self.authenticator,
            lambda principal: behind(self.access.broker_for(principal)),
            are_traced=self.audit is not None,
        )

    def broker_of(self, user: str) -> PermittedBroker:
        """Return the broker of a listener whose clients cannot say who they are: it asks in the
        name of a user, or of everybody while authentication is off.

        Raises `ValueError` if there is no such name: nobody's listener must not be opened.
        """
        principal = self.access.anonymous
        if principal is None:
            if not user:
                raise ValueError("authentication is required, and this listener has no user")
            principal = Principal(name=user)
        return self.access.broker_for(principal)

    def served_by(self) -> ServedBy:
        """Return what doors say of this node with each answer; nothing where regions have no
        names, for it costs bytes."""
        region = self.node.config.region
        if not region or not self.node.is_open:
            return ()
        return (("angarium-node", str(self.node.id)), ("angarium-region", ascii_of(region)))

    def leader_address(self, door: str, topic: str, partition: int) -> str | None:
        """Return where the leader of a partition has a door, if that is another node."""
        node = self.node
        try:
            leader = node.leader_of(node.catalog.partition(topic, partition).group)
        except NotFound:
            return None
        if leader is None or leader == node.id:
            return None
        known = node.catalog.member(leader)
        return None if known is None else dict(known.addresses).get(door)

    def sole_leader_address(self, door: str, topic: str) -> str | None:
        """Return the same for a topic with one partition; None for one with several.

        Their leaders are on several nodes: a client that followed each record's hint would go from
        node to node with every record.
        """
        known = self.node.catalog.find(topic)
        if known is None or len(known.groups) != 1:
            return None
        return self.leader_address(door, topic, 0)

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
        discovery=settings.discovery.opened(),
        cluster_id=settings.discovery.cluster_id,
        probe_gone=settings.discovery.probe_gone,
        node_id=None if node.id is None else NodeId(node.id),
        join_token=join_token_in(node.join_token_file),
        tls=settings.tls.opened(),
        are_peers_trusted=settings.security.are_peers_trusted,
        asks_for_join_tokens=settings.security.is_required,
        region=node.region,
        zone=node.zone,
        host=node.host,
        tick_ms=cluster.tick_ms,
        auto_create_topics=cluster.auto_create_topics,
        catalog_voters=cluster.catalog_voters,
        staged_bytes_max=cluster.staged_bytes_max,
        clock_skew_max_ms=cluster.clock_skew_max_ms,
        recover_after_s=cluster.recover_after_s,
        rebalance_after_s=cluster.rebalance_after_s,
        rebalance_bytes_per_s=cluster.rebalance_bytes_per_s,
        copy_bytes_per_s_min=cluster.copy_bytes_per_s_min,
        copy_bytes_per_s_max=cluster.copy_bytes_per_s_max,
        follow_window_s=cluster.follow_window_s,
        follow_pause_s=cluster.follow_pause_s,
        host_config=HostConfig(replica=replica),
    )


def advertised(settings: Settings) -> dict[str, str]:
    """Return, by door, where others find this node. A port still to be chosen is left out."""
    listen, told = settings.listen, settings.advertise
    ports = {
        name.removesuffix("_port"): getattr(listen if getattr(told, name) is None else told, name)
        for name in DOOR_PORTS
    } | {
        "hermes": settings.compat.hermes_grpc_port,
        "hermes_http": settings.compat.hermes_http_port,
    }
    host = told.host or listen.host
    return {door: str(Address(host, port)) for door, port in ports.items() if port}
