"""What to measure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from angarium.bench.stamps import STAMP_BYTES, WORKERS_MAX
from angarium.errors import InvalidArgument
from angarium.modes import DeliveryMode

SIZE_MAX: Final = 1 << 20
"""Larger records are refused here; the cluster may take less."""

BATCH_MAX: Final = 16_384
"""Records handed over in one call at the most."""

DURATION_S_MAX: Final = 3_600.0
"""Every record's id is kept until the end, so that a run is bounded; use a rate for long ones."""


class Protocol(StrEnum):
    """How records travel between the benchmark and the cluster."""

    WIRE = "wire"
    """The Python client over our own frames."""
    GRPC = "grpc"
    """A call per publish."""
    GRPC_STREAM = "grpc-stream"
    """One stream per connection, on which answers come back as they are known."""
    REST = "rest"
    """A request per publish; deliveries as server-sent events."""
    GRAPHQL = "graphql"
    """A mutation per publish; deliveries the same."""

    @property
    def door(self) -> str:
        """Which of a node's doors it goes through."""
        if self is Protocol.WIRE:
            return "wire"
        return "http" if self in (Protocol.REST, Protocol.GRAPHQL) else "grpc"


class Scenario(StrEnum):
    """What happens in the timed window."""

    LIVE = "live"
    """Publish, while a subscriber receives everything."""
    PUBLISH = "publish"
    """Publish alone; what was stored is read back and checked after the window."""
    CATCH_UP = "catch-up"
    """Publish first; the window is the reading of what is stored, from its beginning."""
    SLOW = "slow"
    """Publish, while consumers of a group take 2 ms for each record."""
    LATE = "late"
    """Publish; the consumers of a group join at half time."""
    CRASH = "crash"
    """Publish; the consumers of a group vanish at half time, and others come 2 s later."""
    ISOLATION = "isolation"
    """Publish to two topics; of the first a consumer takes records and never settles any."""
    DISK = "disk"
    """Publish first; then consumers of a group work off what is stored."""

    @property
    def has_group(self) -> bool:
        """Whether a consumer group consumes, rather than a plain subscriber."""
        return self in (
            Scenario.SLOW,
            Scenario.LATE,
            Scenario.CRASH,
            Scenario.ISOLATION,
            Scenario.DISK,
        )


class Route(StrEnum):
    """Which node a publish is sent to; the Python client always finds the leader."""

    LEADER = "leader"
    FOLLOWER = "follower"
    """One that has to pass it on."""
    ALL = "all"
    """All of them in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One measurement. Anything that makes no sense cannot be built (`InvalidArgument`)."""

    protocol: Protocol = Protocol.WIRE
    mode: DeliveryMode = DeliveryMode.CONSISTENT
    scenario: Scenario = Scenario.LIVE
    route: Route = Route.LEADER
    grpc_targets: tuple[str, ...] = ()
    """HOST:PORT of gRPC doors that are published to in turn, leader or not."""
    http_targets: tuple[str, ...] = ()
    """The same for HTTP doors."""
    sub_target: str | None = None
    """The node that deliveries come from: HOST:PORT of any of its doors, `leader` or `follower`.
    None: the leader of the first partition; the Python client asks the leaders themselves."""
    workers: int = 8
    """Each publishes, waits for the acknowledgement, and publishes again."""
    connections: int = 1
    """Clients, each with its own connections; the workers are dealt out among them."""
    batch: int = 1
    """Records that a worker hands over in one call."""
    size: int = 100
    """Bytes in a record's value."""
    rate: float | None = None
    """Records per second, all workers together; None: as fast as the acknowledgements come.

    With a rate, latency counts from the moment at which a record was due, whether or not its
    worker was free then. Otherwise a slow answer would hide all those that it delayed."""
    warmup_s: float = 1.0
    """How long the load runs before the window: checked, but not timed."""
    duration_s: float = 10.0
    topics: int = 1
    partitions: int = 1
    """Per topic."""
    replication: int | None = None
    """None: three, or as many as there are nodes."""
    consumers: int = 4
    """Members of the group, in the scenarios that have one."""

    def __post_init__(self) -> None:
        for holds, complaint in (
            (0 < self.workers <= WORKERS_MAX, f"workers: between 1 and {WORKERS_MAX}"),
            (0 < self.connections <= self.workers, "connections: between 1 and one per worker"),
            (0 < self.batch <= BATCH_MAX, f"batch: between 1 and {BATCH_MAX} records"),
            (
                STAMP_BYTES <= self.size <= SIZE_MAX,
                f"size: {STAMP_BYTES} bytes to recognise a record, up to {SIZE_MAX}",
            ),
            (self.rate is None or self.rate > 0, "rate: more than nothing"),
            (0 < self.consumers <= 1_000, "consumers: between 1 and 1,000"),
            (
                self.scenario is not Scenario.ISOLATION or self.topics >= 2,
                "topics: isolation is between two topics or more",
            ),
            (0 < self.duration_s <= DURATION_S_MAX, f"duration: up to {DURATION_S_MAX:g} seconds"),
            (0 <= self.warmup_s <= DURATION_S_MAX, "warm-up: not before the beginning of time"),
            (0 < self.topics * self.partitions <= 10_000, "topics: up to 10,000 partitions in all"),
            (
                self.scenario is Scenario.LIVE or self.mode is not DeliveryMode.PERFORMANCE,
                "mode: performance stores nothing to read afterwards; use the scenario live",
            ),
            (
                self.protocol is not Protocol.WIRE or not (self.grpc_targets or self.http_targets),
                "targets: the Python client goes to the leaders by itself; it has --servers",
            ),
        ):
            if not holds:
                raise InvalidArgument(complaint)
