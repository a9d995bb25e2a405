"""What can be chosen about a node, and what about the cluster it belongs to.

Each class is a section of node.toml. `ClusterSettings` is kept apart: what stands there has to be
the same on every node, while everything else is each node's own. A value that makes no sense on
its own cannot be built; `settings_problems` finds what does not fit together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from angarium.addresses import PORT_MAX, Address, names_hosts
from angarium.app.audit_settings import AuditSettings
from angarium.app.discovery_settings import DiscoverySettings
from angarium.app.security_settings import (
    SecuritySettings,
    TlsSettings,
    UserSettings,
    check_hash,
)
from angarium.bounds import CONNECTIONS_MAX, REQUEST_BYTES_MAX
from angarium.errors import InvalidArgument
from angarium.machine.catalog.balance import BYTES_PER_S_MIN
from angarium.telemetry.logs import LEVELS, LogFormat

LABEL_CHARACTERS_MAX: Final = 64
"""Longer labels are refused: every node keeps every node's labels in memory."""

NODE_ID_END: Final = 1 << 14
"""Node ids are below it."""

PROCESSES_MAX: Final = 64
"""More processes on one machine are refused: each is a member that all others keep a link to."""

BODY_BYTES_LARGEST: Final = 32 << 20
"""The largest bound on bodies that may be chosen."""

HSTS_S_LARGEST: Final = 2 * 365 * 86_400
"""The longest time for which browsers may be bound to TLS."""

STAGED_BYTES_LEAST: Final = 1 << 20
STAGED_BYTES_LARGEST: Final = 1 << 40
"""The bounds between which that of a partition's open transactions may be chosen."""

DOOR_PORTS: Final = ("wire_port", "grpc_port", "http_port")
"""What the sections `[listen]` and `[advertise]` call the doors' ports."""

COMPAT_PORTS: Final = ("hermes_grpc_port", "hermes_http_port", "bale_grpc_port", "geo_grpc_port")
"""What the section `[compat]` calls its ports."""

PROCESS_PORT_STEP: Final = 10
"""Ports between one process of a machine and the next: wire, gRPC, HTTP, room for more."""


class Problem(NamedTuple):
    """One thing that is wrong with the settings, and what to do about it."""

    setting: str
    """section.field"""
    what: str
    origin: str = ""
    """Where the value came from: a file and line, a variable, a flag."""

    def __str__(self) -> str:
        """Return it as a sentence that begins with the place to look at."""
        return f"{self.origin or 'the settings'}: {self.setting}: {self.what}"


class InvalidSettings(InvalidArgument):
    """The settings cannot be used; `problems` has every reason that was found."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """`[node]`: who this node is, and how it comes into its cluster."""

    data: Path = Path("angarium-data")
    """The folder that holds everything the node keeps. In node.toml a relative one starts from
    the folder of that file. Never share it between nodes, and never copy it to make a new one."""

    form: bool = False
    """Form a new cluster, with this node as its first. A cluster is formed once: on a node that
    belongs to one already this changes nothing."""

    join: tuple[Address, ...] = ()
    """Wire addresses of nodes that are members. A new node asks them to be let in; one that
    comes back tells them where it is now. `[discovery]` finds more of them."""

    id: int | None = None
    """With `join`, and only if the data are gone: come back as this node of the cluster, instead
    of as a new one."""

    join_token_file: Path | None = None
    """With `join`, where the cluster requires authentication: a file with the join token that lets
    this node in (`angarium cluster invite`). Without it ANGARIUM_JOIN_TOKEN is looked at. A node
    that has its data needs none."""

    region: str = ""
    """Where the node stands, widest circle first. Replicas of a partition are spread over as
    many regions, zones and hosts as there are."""

    zone: str = ""
    """A part of the region that can fail on its own: a building, a power feed."""

    host: str = ""
    """The machine. Two nodes of one host never hold replicas of the same partition; empty: every
    node counts as a machine of its own, or, with several processes, the machine's name."""

    processes: int = 1
    """How many nodes to run on this machine, each a process that keeps one core busy. With more
    than one, process i has its data in process-i of the folder and its ports 10 (i - 1) higher."""

    def __post_init__(self) -> None:
        if not 1 <= self.processes <= PROCESSES_MAX:
            raise ValueError(f"processes: from 1 to {PROCESSES_MAX}")
        if self.id is not None and not 0 < self.id < NODE_ID_END:
            raise ValueError(f"id: a node's id is a number from 1 to {NODE_ID_END - 1}")
        for name in ("region", "zone", "host"):
            label: str = getattr(self, name)
            if len(label) > LABEL_CHARACTERS_MAX or not label.isprintable():
                raise ValueError(
                    f"{name}: a label is up to {LABEL_CHARACTERS_MAX} printable characters"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenSettings:
    """`[listen]`: the doors that this node opens."""

    host: str = "127.0.0.1"
    """The interface. The default can be reached from this machine only."""

    wire_port: int = 7400
    """For other nodes and the Python client. Port 0 takes a free one."""

    grpc_port: int | None = 7401
    """For every other language; "off" leaves this door closed."""

    http_port: int | None = 7402
    """For REST, server-sent events, WebSockets, GraphQL and metrics; "off" leaves it closed."""

    insecure: bool = False
    """Listen where other machines can connect although nobody has to say who they are, or without
    `[tls]`, so that everybody on the way can read along: only in a network that keeps strangers out
    by itself. With `[tls]` and `[security]` authentication it is not needed."""

    def __post_init__(self) -> None:
        if not self.host or not self.host.isprintable() or " " in self.host:
            raise ValueError("host: that is not a host; write for example 127.0.0.1")
        for name in DOOR_PORTS:
            _check_port(name, getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvertiseSettings:
    """`[advertise]`: where others find this node, if not where it listens."""

    host: str = ""
    """What other nodes and clients dial; needed when the node listens on all interfaces or sits
    behind a translated address. Empty: the one it listens on."""

    wire_port: int | None = None
    """The wire's port as others see it, where it is another than the node's own."""

    grpc_port: int | None = None
    """The same for gRPC."""

    http_port: int | None = None
    """The same for HTTP."""

    def __post_init__(self) -> None:
        for name in DOOR_PORTS:
            _check_port(name, getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """`[http]`: what the HTTP door takes."""

    origins: tuple[str, ...] = ()
    """Origins of web pages whose scripts may use this node: https://console.example.org. Pages of
    the node's own scheme, host and port always may; programs that are no browsers are not asked.
    Behind a proxy that ends TLS the node's own pages have the proxy's origin: name it here."""

    hosts: tuple[str, ...] = ()
    """Names under which this node may be asked over HTTP besides the hosts it listens on and
    advertises, localhost and IP addresses: that of a proxy, of a service. *.example.org are all
    below it, * is any. Requests for another host are answered 421."""

    hsts_s: int = 0
    """For how many seconds browsers use TLS alone for this host name (Strict-Transport-Security),
    on every port of it, other services' included; 0: the header is not sent. Sent over TLS only."""

    connections_max: int = CONNECTIONS_MAX
    """Connections open at a time. For one more, the one that has been idle the longest is closed;
    if none is, it is answered 503."""

    body_bytes_max: int = REQUEST_BYTES_MAX
    """The largest body taken; a larger one is answered 413."""

    def __post_init__(self) -> None:
        for origin in self.origins:
            if not re.fullmatch(r"https?://[^/\s]+|\*", origin):
                what = "write https://example.org, or * for every page there is"
                raise ValueError(f"origins: {origin!r} is not an origin; {what}")
        for host in self.hosts:
            if not names_hosts(host):
                what = "write node.example.org without a port, *.example.org, or * for any"
                raise ValueError(f"hosts: {host!r} is not a host name; {what}")
        if not 0 <= self.hsts_s <= HSTS_S_LARGEST:
            raise ValueError(f"hsts_s: from 0 to {HSTS_S_LARGEST} seconds, which are two years")
        if not 1 <= self.connections_max <= 1_000_000:
            raise ValueError("connections_max: from 1 to 1,000,000")
        if not 1_024 <= self.body_bytes_max <= BODY_BYTES_LARGEST:
            # What a body brings for one partition goes on in one frame, with room to spare.
            raise ValueError(f"body_bytes_max: from 1024 bytes to {BODY_BYTES_LARGEST >> 20} MiB")


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcSettings:
    """`[grpc]`: what each gRPC listener takes, those for earlier clients included."""

    connections_max: int = CONNECTIONS_MAX
    """Connections open at a time. One more is closed as soon as it comes."""

    def __post_init__(self) -> None:
        if not 1 <= self.connections_max <= 1_000_000:
            raise ValueError("connections_max: from 1 to 1,000,000")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompatSettings:
    """`[compat]`: listeners for clients of earlier brokers, each off until it has a port."""

    hermes_grpc_port: int | None = None
    """For gRPC clients of hermes, which expect 50051."""

    hermes_http_port: int | None = None
    """For its HTTP and GraphQL clients, which expect 8080."""

    hermes_join_token: str = ""
    """The hash (`angarium user hash`) of the token with which its Join is answered; empty: nobody
    may ask."""

    hermes_user: str = ""
    """In whose name its clients act where authentication is required: they cannot say who they are,
    so the grants of this user are everybody's who reaches the port."""

    bale_grpc_port: int | None = None
    """For clients of bale, which expect 8081."""

    bale_user: str = ""
    """The same for clients of bale."""

    bale_metrics_ports: tuple[int, ...] = ()
    """Where Prometheus finds the metrics of that family: at 8000 of the one broker, at 9091 of the
    other. Each port serves both."""

    geo_grpc_port: int | None = None
    """For clients of geo, which expect 8070, 8080 or 8090. They say who they are: see `[users]`."""

    def __post_init__(self) -> None:
        for name in COMPAT_PORTS:
            _check_port(name, getattr(self, name))
        for port in self.bale_metrics_ports:
            _check_port("bale_metrics_ports", port)
        if self.hermes_join_token:
            check_hash("hermes_join_token", self.hermes_join_token)

    @property
    def is_on(self) -> bool:
        """Whether any profile has a listener; a port of 0 is one that the system chooses."""
        return any(getattr(self, name) is not None for name in COMPAT_PORTS)

    @property
    def ports(self) -> list[tuple[str, int]]:
        """Every port that was chosen, with the setting's name."""
        single = [(name, port) for name in COMPAT_PORTS if (port := getattr(self, name))]
        return single + [("bale_metrics_ports", port) for port in self.bale_metrics_ports if port]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """`[log]`: what the node says while it runs."""

    level: str = "INFO"
    """The least grave level that is written: DEBUG, INFO, WARNING or ERROR. A running node
    switches to DEBUG and back on SIGUSR2."""

    format: LogFormat = "auto"
    """"human" or "json"; "auto" is human on a terminal and json otherwise."""

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise ValueError(f"level: there are {', '.join(LEVELS)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """`[cluster]`: what must be the same on every node."""

    tick_ms: int = 50
    """The beat of the Raft clock, in milliseconds: elections and heartbeats count in it."""

    election_ticks: int = 10
    """After this many ticks without a word from a leader its followers look for another one. It
    has to stay far above the pauses that nodes and network make. Between regions they wait longer
    by a round trip, which nodes measure."""

    heartbeat_ticks: int = 2
    """How often a leader says that it is there."""

    catalog_voters: int = 3
    """How many nodes vote on the catalog, the list of topics and nodes; the others listen. Odd."""

    staged_bytes_max: int = 16 << 30
    """How many bytes, as packed, may wait in one partition for the commits of their transactions:
    the bound of one Spark write, or micro-batch, per partition. They lie on disk."""

    clock_skew_max_ms: int = 2_000
    """How far apart the clocks of two nodes may be, in milliseconds. A node whose clock is further
    from those of a majority says so, goes by their time, gives leadership away and trims nothing
    by age. NTP keeps clocks within a tenth of a second."""

    recover_after_s: int = 60
    """How long, in seconds, nodes have to be silent before a partition may be recovered without
    them (`angarium cluster recover-partition`). Whoever may still come back should."""

    rebalance_after_s: int = 60
    """How long, in seconds, all nodes have to be there, and the same, before what they hold is
    evened out by itself (`angarium cluster rebalance --auto`): nodes that are added one after the
    other are one change, and one that restarts is none."""

    rebalance_bytes_per_s: int = 16 << 20
    """What all copies together may take in a second when that began by itself; 0: no bound. About
    an eighth of a network of 1 Gbit/s."""

    copy_bytes_per_s_min: int = 8 << 20
    """What copies of segments, from and to this node together, may take in a second however busy
    it is, so that every move ends; four times as much each time that one is outrun by what is
    published meanwhile."""

    copy_bytes_per_s_max: int = 0
    """What they may take at most; 0: as much as the node can spare. In between it finds out by
    itself: it copies quickly while nobody needs it, and yields to publishers who wait longer."""

    follow_window_s: int = 60
    """Over how long, in seconds, most publishes to a partition have to come from another region
    before its leader goes there, in topics with `leaders_follow`."""

    follow_pause_s: int = 300
    """How long, in seconds, such a leader stays once it was chosen: by publishers, by a rebalance
    or with `angarium cluster transfer`."""

    auto_create_topics: bool = True
    """Create a topic with one partition when somebody publishes to a name that is not there,
    instead of refusing."""

    def __post_init__(self) -> None:
        if not 5 <= self.tick_ms <= 1_000:
            raise ValueError("tick_ms: between 5 and 1000 milliseconds")
        if not STAGED_BYTES_LEAST <= self.staged_bytes_max <= STAGED_BYTES_LARGEST:
            raise ValueError("staged_bytes_max: between 1 MiB and 1 TiB")
        if not 100 <= self.clock_skew_max_ms <= 60_000:
            raise ValueError("clock_skew_max_ms: between 100 milliseconds and a minute")
        if not 1 <= self.recover_after_s <= 86_400:
            raise ValueError("recover_after_s: between a second and a day")
        if not 0 <= self.rebalance_after_s <= 86_400:
            raise ValueError("rebalance_after_s: up to a day")
        self._check_paces()
        if not 6 <= self.follow_window_s <= 86_400:
            raise ValueError("follow_window_s: between 6 seconds and a day")
        if not 0 <= self.follow_pause_s <= 86_400:
            raise ValueError("follow_pause_s: up to a day")
        if not 1 <= self.catalog_voters <= 9 or self.catalog_voters % 2 == 0:
            raise ValueError("catalog_voters: an odd number up to 9")
        if not 1 <= self.heartbeat_ticks <= 100:
            raise ValueError("heartbeat_ticks: between 1 and 100")
        if not 5 * self.heartbeat_ticks <= self.election_ticks <= 1_000:
            raise ValueError(
                "election_ticks: at least five times heartbeat_ticks, so that one lost heartbeat"
                " is no reason for an election, and at most 1000"
            )

    def _check_paces(self) -> None:
        if 0 != self.rebalance_bytes_per_s < BYTES_PER_S_MIN:
            raise ValueError(
                f"rebalance_bytes_per_s: at least {BYTES_PER_S_MIN} bytes, or 0 for no bound"
            )
        if self.copy_bytes_per_s_min < BYTES_PER_S_MIN:
            raise ValueError(f"copy_bytes_per_s_min: at least {BYTES_PER_S_MIN} bytes")
        if 0 != self.copy_bytes_per_s_max < self.copy_bytes_per_s_min:
            raise ValueError(
                "copy_bytes_per_s_max: at least copy_bytes_per_s_min, or 0 for no bound"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything, section by section."""

    node: NodeSettings = field(default_factory=NodeSettings)
    discovery: DiscoverySettings = field(default_factory=DiscoverySettings)
    listen: ListenSettings = field(default_factory=ListenSettings)
    advertise: AdvertiseSettings = field(default_factory=AdvertiseSettings)
    tls: TlsSettings = field(default_factory=TlsSettings)
    http: HttpSettings = field(default_factory=HttpSettings)
    grpc: GrpcSettings = field(default_factory=GrpcSettings)
    compat: CompatSettings = field(default_factory=CompatSettings)
    users: UserSettings = field(default_factory=UserSettings)
    security: SecuritySettings = field(default_factory=SecuritySettings)
    audit: AuditSettings = field(default_factory=AuditSettings)
    log: LogSettings = field(default_factory=LogSettings)
    cluster: ClusterSettings = field(default_factory=ClusterSettings)


SECTIONS: Final = {
    "node": NodeSettings,
    "discovery": DiscoverySettings,
    "listen": ListenSettings,
    "advertise": AdvertiseSettings,
    "tls": TlsSettings,
    "http": HttpSettings,
    "grpc": GrpcSettings,
    "compat": CompatSettings,
    "users": UserSettings,
    "security": SecuritySettings,
    "audit": AuditSettings,
    "log": LogSettings,
    "cluster": ClusterSettings,
}


def _check_port(name: str, port: int | None) -> None:
    if port is not None and not 0 <= port <= PORT_MAX:
        raise ValueError(f"{name}: {port} is not a port; they go from 0 to {PORT_MAX}")
