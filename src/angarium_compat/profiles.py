"""From settings to listeners: the one module that knows every profile.

A profile is loaded when it has a port: hermes alone needs GraphQL, which takes longer to load than
the rest together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from angarium.security.tls import Door

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from angarium.api import Broker, GroupBroker, OffsetBroker, PassingBroker
    from angarium.doors.callers import Callers
    from angarium.doors.http.observing import Facts
    from angarium.security import Users
    from angarium.security.tls import NodeTls
    from angarium.wire.grpc import CallLimits
    from angarium.wire.http.admission import Admission
    from angarium.wire.listening import Context

    class NodeBroker(Broker, GroupBroker, OffsetBroker, PassingBroker, Protocol):
        """A node's broker: whatever a profile may need of it."""


class Chosen(Protocol):
    """What the section `[compat]` of node.toml says; a port that is None is off."""

    @property
    def hermes_grpc_port(self) -> int | None: ...
    @property
    def hermes_http_port(self) -> int | None: ...
    @property
    def hermes_join_token(self) -> str: ...
    @property
    def hermes_user(self) -> str: ...
    @property
    def bale_user(self) -> str: ...
    @property
    def bale_grpc_port(self) -> int | None: ...
    @property
    def bale_metrics_ports(self) -> tuple[int, ...]: ...
    @property
    def geo_grpc_port(self) -> int | None: ...


class Opened(Protocol):
    """A listener."""

    async def start(self) -> object:
        """Listen."""

    async def stop(self) -> None:
        """Close."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a node gives its listeners."""

    broker_of: Callable[[str], NodeBroker]
    """The broker of a listener whose clients cannot say who they are; it asks in a user's name."""
    callers: Callers[NodeBroker] | None
    """Who may come in where clients say who they are; None: those of `users`, who may do all."""
    host: str
    users: Users
    facts: Facts
    admission: Admission
    limits: CallLimits
    leader_address: Callable[[str, str], str | None]
    """(door, topic): where the node that leads the topic has that door; None if it is this node,
    if nobody knows, or if the topic's partitions have several leaders."""
    tls: NodeTls | None = None
    measuring: Callable[[Any], Awaitable[object]] | None = None
    """Raises if whom a broker asks for may not read metrics; None: everybody may."""
    is_traced: bool = False
    """Whether somebody wants to know where each call comes from."""

    def tls_of(self, door: Door) -> Context | None:
        """Return the TLS of a listener; None without."""
        return None if self.tls is None else self.tls.listener(door)


def listeners(chosen: Chosen, around: Surroundings) -> list[Opened]:
    """Return a listener for each port that was chosen."""
    return [*_hermes(chosen, around), *_bale(chosen, around), *_geo(chosen, around)]


def _hermes(chosen: Chosen, around: Surroundings) -> Iterator[Opened]:
    if chosen.hermes_grpc_port is None and chosen.hermes_http_port is None:
        return
    from angarium_compat.hermes import HermesDoor, HermesHttpDoor, Joining  # noqa: PLC0415

    broker, host = around.broker_of(chosen.hermes_user), around.host
    joining = Joining(broker, token=chosen.hermes_join_token)
    if chosen.hermes_grpc_port is not None:
        yield HermesDoor(
            broker,
            broker,
            host=host,
            port=chosen.hermes_grpc_port,
            leader_hint=partial(around.leader_address, "hermes"),
            joining=joining,
            limits=around.limits,
            tls=around.tls_of(Door.GRPC),
            is_traced=around.is_traced,
        )
    if chosen.hermes_http_port is not None:
        yield HermesHttpDoor(
            broker,
            broker,
            host=host,
            port=chosen.hermes_http_port,
            facts=around.facts,
            joining=joining,
            admission=around.admission,
            leader_hint=partial(around.leader_address, "hermes_http"),
            measuring=None if around.measuring is None else partial(around.measuring, broker),
            tls=around.tls_of(Door.HTTP),
            is_traced=around.is_traced,
        )


def _bale(chosen: Chosen, around: Surroundings) -> Iterator[Opened]:
    port, metrics_ports = chosen.bale_grpc_port, chosen.bale_metrics_ports
    if port is None:
        return
    from angarium_compat.bale import BaleDoor, BaleMetrics, BaleMetricsDoor  # noqa: PLC0415

    metrics = BaleMetrics()
    yield BaleDoor(
        around.broker_of(chosen.bale_user),
        host=around.host,
        port=port,
        metrics=metrics,
        limits=around.limits,
        tls=around.tls_of(Door.GRPC),
        is_traced=around.is_traced,
    )
    if metrics_ports:
        yield BaleMetricsDoor(
            metrics,
            host=around.host,
            ports=metrics_ports,
            admission=around.admission,
            tls=around.tls_of(Door.HTTP),
        )


def _geo(chosen: Chosen, around: Surroundings) -> Iterator[Opened]:
    port = chosen.geo_grpc_port
    if port is None:
        return
    from angarium_compat.geo import GeoDoor  # noqa: PLC0415

    yield GeoDoor(
        around.callers or around.broker_of(""),
        around.users,
        host=around.host,
        port=port,
        limits=around.limits,
        tls=around.tls_of(Door.GRPC),
    )
