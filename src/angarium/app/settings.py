"""What can be chosen about a node, and what about the cluster it belongs to.

Each class is a section of node.toml. `ClusterSettings` is kept apart: what stands there has to be
the same on every node, while everything else is each node's own. A value that makes no sense on
its own cannot be built; `problems` finds what does not fit together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple

from angarium.app.addresses import Address
from angarium.errors import InvalidArgument
from angarium.telemetry.logs import LEVELS, LogFormat

LABEL_CHARACTERS_MAX: Final = 64
"""Longer labels are refused: every node keeps every node's labels in memory."""

WIRE: Final = Address("127.0.0.1", 7400)
GRPC: Final = Address("127.0.0.1", 7401)
"""Where a node listens unless it is told otherwise: this machine only."""


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

    code = "INVALID_SETTINGS"

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
    comes back tells them where it is now."""

    region: str = ""
    """Where the node stands, widest circle first. Replicas of a partition are spread over as
    many regions, zones and hosts as there are."""

    zone: str = ""
    """A part of the region that can fail on its own: a building, a power feed."""

    host: str = ""
    """The machine. Two nodes of one host never hold replicas of the same partition; empty: every
    node counts as a machine of its own."""

    def __post_init__(self) -> None:
        for name in ("region", "zone", "host"):
            label: str = getattr(self, name)
            if len(label) > LABEL_CHARACTERS_MAX or not label.isprintable():
                raise ValueError(
                    f"{name}: a label is up to {LABEL_CHARACTERS_MAX} printable characters"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenSettings:
    """`[listen]`: the doors that this node opens."""

    wire: Address = WIRE
    """For other nodes and the Python client."""

    grpc: Address | None = GRPC
    """For every other language; "off" leaves this door closed."""

    insecure: bool = False
    """Listen where other machines can connect although nobody has to say who they are. There is
    no authentication yet, so this is the only way to leave the machine: only in a network that
    keeps strangers out by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvertiseSettings:
    """`[advertise]`: where others find this node, if not where it listens."""

    wire: Address | None = None
    """What other nodes and clients dial; needed when the node listens on all interfaces or sits
    behind a translated address."""

    grpc: Address | None = None
    """The same for the gRPC door."""


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

    election_ticks: int = 20
    """After this many ticks without a word from a leader its followers look for another one. It
    has to stay far above the pauses that nodes and network make."""

    heartbeat_ticks: int = 2
    """How often a leader says that it is there."""

    auto_create_topics: bool = True
    """Create a topic when somebody publishes to it for the first time, instead of refusing."""

    def __post_init__(self) -> None:
        if not 5 <= self.tick_ms <= 1_000:
            raise ValueError("tick_ms: between 5 and 1000 milliseconds")
        if not 1 <= self.heartbeat_ticks <= 100:
            raise ValueError("heartbeat_ticks: between 1 and 100")
        if not 5 * self.heartbeat_ticks <= self.election_ticks <= 1_000:
            raise ValueError(
                "election_ticks: at least five times heartbeat_ticks, so that one lost heartbeat"
                " is no reason for an election, and at most 1000"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything, section by section."""

    node: NodeSettings = field(default_factory=NodeSettings)
    listen: ListenSettings = field(default_factory=ListenSettings)
    advertise: AdvertiseSettings = field(default_factory=AdvertiseSettings)
    log: LogSettings = field(default_factory=LogSettings)
    cluster: ClusterSettings = field(default_factory=ClusterSettings)


SECTIONS: Final = {
    "node": NodeSettings,
    "listen": ListenSettings,
    "advertise": AdvertiseSettings,
    "log": LogSettings,
    "cluster": ClusterSettings,
}

Door = Literal["wire", "grpc"]


def problems(settings: Settings) -> list[Problem]:
    """Return what does not fit together, although each value on its own would do."""
    found = []
    doors: dict[str, Address | None] = {
        "wire": settings.listen.wire,
        "grpc": settings.listen.grpc,
    }
    for door, address in doors.items():
        if address is not None and not address.is_loopback and not settings.listen.insecure:
            found.append(Problem(f"listen.{door}", _OPEN_DOOR.format(address=address)))
    wire, grpc = settings.listen.wire, settings.listen.grpc
    if grpc is not None and wire == grpc and wire.port:
        found.append(Problem("listen.grpc", f"{grpc} is the wire's own; each door needs a port"))
    if settings.node.form and settings.node.join:
        found.append(
            Problem(
                "node.join",
                "a node forms a new cluster or joins one; take either `form` or `join` away",
            )
        )
    return found + [
        Problem(f"advertise.{door}", _NOWHERE.format(address=listens))
        for door, listens, told in (
            ("wire", wire, settings.advertise.wire),
            ("grpc", grpc, settings.advertise.grpc),
        )
        if listens is not None and listens.host in _EVERYWHERE and told is None
    ]


_EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104  (recognised here, not listened on)

_OPEN_DOOR: Final = (
    "{address} can be reached from other machines, and this version has no authentication yet,"
    " so the node does not start. Listen on 127.0.0.1, or, where the network itself keeps"
    " strangers out, start with --insecure (listen.insecure = true)."
)

_NOWHERE: Final = (
    "listening on {address} means every interface, which is no address that others could dial;"
    " say which one they should use, for example node-1.example.org:7400"
)
