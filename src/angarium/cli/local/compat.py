"""Which ports the listeners for clients of earlier brokers get in a local cluster.

One profile alone has its broker's own ports, node by node, so that its clients need no other
address than they always had. The brokers' ports clash with each other's; several profiles
therefore listen on ports of the cluster's own, behind those of each node's doors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from angarium.cli.complaints import Refusal
from angarium.cli.local.folder import HOST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from angarium.cli.local.folder import LocalNode

PROFILES: Final = ("hermes", "bale", "geo")

GEO_USER: Final = "admin"
GEO_PASSWORD: Final = "password"  # noqa: S105  (of a cluster that only this machine can reach)
"""Whom a local cluster knows: clients of geo have to say who they are, and say this unless told."""

_ORIGINAL: Final[Mapping[str, Sequence[tuple[str, int, int]]]] = {
    "hermes": (("hermes_grpc_port", 50_051, 1), ("hermes_http_port", 8_080, 1)),
    "bale": (
        ("bale_grpc_port", 8_081, 1),
        ("bale_metrics_ports", 8_000, 1),
        ("bale_metrics_ports", 9_091, 1),
    ),
    "geo": (("geo_grpc_port", 8_070, 10),),
}
"""By profile: settings, the first node's port, and how much higher the next node's is."""

_OWN: Final[Mapping[str, Sequence[tuple[str, int]]]] = {
    "hermes": (("hermes_grpc_port", 3), ("hermes_http_port", 4)),
    "bale": (("bale_grpc_port", 5), ("bale_metrics_ports", 6)),
    "geo": (("geo_grpc_port", 7),),
}
"""By profile: settings, and how far behind the node's wire their ports are."""


@dataclass(frozen=True, slots=True)
class Compat:
    """The profiles that are on, and on which ports."""

    profiles: tuple[str, ...] = ()
    original: bool = True

    @classmethod
    def chosen(cls, text: str | None, ports: str | None) -> Compat:
        """Return what `--compat` and `--compat-ports` say; raises `Refusal`."""
        profiles = tuple(
            dict.fromkeys(one.strip() for one in (text or "").split(",") if one.strip())
        )
        for one in profiles:
            if one not in PROFILES:
                raise Refusal(f"there is no profile {one!r}; there are {', '.join(PROFILES)}")
        original = len(profiles) == 1 if ports is None else ports == "original"
        if original and len(profiles) > 1:
            raise Refusal("the original ports of two profiles clash; take --compat-ports own")
        return cls(profiles, original)

    def ports(self, node: LocalNode) -> list[tuple[str, int]]:
        """Return a node's ports, with the settings they belong to."""
        if self.original:
            return [
                (name, first + step * (node.number - 1))
                for profile in self.profiles
                for name, first, step in _ORIGINAL[profile]
            ]
        return [
            (name, node.wire_port + behind)
            for profile in self.profiles
            for name, behind in _OWN[profile]
        ]

    def section(self, node: LocalNode, *, user_hash: str) -> str:
        """Return what a node's node.toml says about them."""
        if not self.profiles:
            return ""
        listed: dict[str, list[int]] = {}
        for name, port in self.ports(node):
            listed.setdefault(name, []).append(port)
        lines = [
            f"{name} = {ports if name.endswith('ports') else ports[0]}"
            for name, ports in listed.items()
        ]
        text = "\n".join(["", "[compat]", *lines, ""])
        if "geo" in self.profiles:
            text += f'\n[users]\n{GEO_USER} = "{user_hash}"\n'
        return text

    def lines(self, nodes: Sequence[LocalNode]) -> list[str]:
        """Return what to tell people: where each profile's clients go."""
        found = []
        for profile in self.profiles:
            alone = Compat((profile,), self.original)
            names = dict.fromkeys(name for one in nodes for name, _ in alone.ports(one))
            told = [
                f"{_what(name)} "
                + " ".join(
                    f"{HOST}:{port}"
                    for one in nodes
                    for known, port in alone.ports(one)
                    if known == name
                )
                for name in names
            ]
            if profile == "geo":
                told.append(f"user {GEO_USER}, password {GEO_PASSWORD}")
            found.append(f"Clients of {profile}: {'; '.join(told)}")
        return found


def _what(setting: str) -> str:
    """Return what a setting's port is for, as people call it."""
    return (
        setting.partition("_")[2].rpartition("_")[0].replace("grpc", "gRPC").replace("http", "HTTP")
    )
