"""`[discovery]`: who else knows where the nodes of the cluster are."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from angarium.addresses import PORT_MAX, Address
from angarium.errors import PreconditionFailed

if TYPE_CHECKING:
    from angarium.discovery.port import Discovery

KEY_BYTES_MAX: Final = 4_096
"""A longer key of a Serf agent is refused: it is some other file."""

_DNS_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")
_KUBERNETES_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_TAG: Final = re.compile(r"[^=\s]+=.+")

_NEEDED: Final = {"dns": "dns_name", "kubernetes": "kubernetes_service"}
"""What each method cannot do without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverySettings:
    """`[discovery]`: who else knows where the nodes of the cluster are. It is asked besides
    `node.join` by a node that wants to join, and by one that finds nobody where the others were."""

    method: Literal["static", "dns", "serf", "kubernetes"] = "static"
    """"static": nobody but `node.join`. "dns": a name. "serf": a Serf agent. "kubernetes": the
    endpoints of a service."""

    port: int = 7400
    """The wire port of nodes that are found without one: by A and AAAA records, as members of Serf
    without a tag `wire`, and in a service without a port of that name."""

    cluster_id: str = ""
    """The cluster that a node with an empty folder joins, where nodes of several are found: 32
    digits, which `angarium cluster status` shows. Empty: the only one there is."""

    probe_gone: bool = True
    """When a node is said to be gone, ask it at once, and let the partitions that it leads elect
    others if it does not answer. It stays a member."""

    dns_name: str = ""
    """With "dns": the name. One that begins with an underscore (_wire._tcp.angarium.example.org) is
    a service, whose SRV records have hosts and ports; of another the A and AAAA records count."""

    dns_servers: tuple[str, ...] = ()
    """With "dns": the servers to ask, ADDRESS or ADDRESS:PORT. None: those of the system."""

    serf_agent: str = "127.0.0.1:7373"
    """With "serf": where the agent takes commands (its rpc_addr)."""

    serf_tags: tuple[str, ...] = ()
    """With "serf": NAME=VALUE, which members have that are nodes of this cluster. None: all are."""

    serf_key_file: Path | None = None
    """With "serf": a file with the agent's key (its rpc_auth), if it has one."""

    kubernetes_service: str = ""
    """With "kubernetes": the name of the service. A headless one, which publishes addresses that
    are not ready."""

    kubernetes_namespace: str = ""
    """Its namespace. Empty: the pod's own."""

    kubernetes_port: str = "wire"
    """What the service calls the nodes' wire port."""

    kubernetes_api: str = ""
    """The API server, HOST:PORT. Empty: the one that every pod is told."""

    kubernetes_credentials: Path = Path("/var/run/secrets/kubernetes.io/serviceaccount")
    """The folder with the service account's `token`, `ca.crt` and `namespace`."""

    def __post_init__(self) -> None:
        needed = _NEEDED.get(self.method)
        if needed is not None and not getattr(self, needed):
            raise ValueError(f'{needed}: needed with method = "{self.method}"')
        if self.cluster_id and not re.fullmatch(r"[0-9a-f]{32}", self.cluster_id):
            raise ValueError("cluster_id: 32 hexadecimal digits, as `cluster status` shows them")
        if not 1 <= self.port <= PORT_MAX:
            raise ValueError(f"port: from 1 to {PORT_MAX}")
        if self.dns_name and (len(self.dns_name) > 253 or not _DNS_NAME.fullmatch(self.dns_name)):
            raise ValueError(f"dns_name: {self.dns_name!r} is no name that DNS can have")
        for name in ("kubernetes_service", "kubernetes_namespace"):
            text = getattr(self, name)
            if text and not _KUBERNETES_NAME.fullmatch(text):
                raise ValueError(f"{name}: {text!r} is no name that Kubernetes can have")
        for tag in self.serf_tags:
            if not _TAG.fullmatch(tag):
                raise ValueError(f"serf_tags: {tag!r} is not NAME=VALUE")
        for name in ("dns_servers", "serf_agent", "kubernetes_api"):
            try:
                self._addresses(name)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None

    @property
    def is_on(self) -> bool:
        """Whether anybody is asked but `node.join`."""
        return self.method != "static"

    def opened(self) -> Discovery | None:
        """Return who is asked; None for nobody. Raises `PreconditionFailed`.

        An adapter is loaded where it is used, and nowhere else.
        """
        match self.method:
            case "static":
                return None
            case "dns":
                from angarium.discovery.dns import (  # noqa: PLC0415
                    DnsDiscovery,
                    check_installed,
                )

                check_installed()
                servers = self._addresses("dns_servers")
                return DnsDiscovery(self.dns_name, port=self.port, servers=servers)
            case "serf":
                from angarium.discovery.serf import SerfDiscovery  # noqa: PLC0415

                (agent,) = self._addresses("serf_agent")
                return SerfDiscovery(
                    agent,
                    port=self.port,
                    tags=dict(_halves(one) for one in self.serf_tags),
                    key=self._serf_key,
                )
            case "kubernetes":
                from angarium.discovery.kubernetes import KubernetesDiscovery  # noqa: PLC0415

                return KubernetesDiscovery(
                    self.kubernetes_service,
                    api=self._api(),
                    credentials=self.kubernetes_credentials,
                    namespace=self.kubernetes_namespace,
                    port_name=self.kubernetes_port,
                    port=self.port,
                )

    def _addresses(self, name: str) -> list[Address]:
        """Return the addresses in a setting; `ValueError` says what is wrong with one."""
        match getattr(self, name):
            case tuple() as servers:
                return [_server(one) for one in servers]
            case str() as text:
                return [Address.parse(text)] if text else []
            case _:
                raise AssertionError(f"{name} has no addresses")

    def _serf_key(self) -> str:
        if self.serf_key_file is None:
            return ""
        with self.serf_key_file.open(encoding="utf-8") as file:
            return file.read(KEY_BYTES_MAX).strip()

    def _api(self) -> Address:
        for api in self._addresses("kubernetes_api"):
            return api
        host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
        port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        if not host or not port.isdecimal():
            raise PreconditionFailed(
                "discovery by Kubernetes works inside a pod, which is told where the API server is "
                "(KUBERNETES_SERVICE_HOST); elsewhere set kubernetes_api in [discovery]"
            )
        return Address(host, int(port))


def _server(text: str) -> Address:
    """Return a DNS server; its port may be left out. `ValueError` if it is a name."""
    try:
        return Address(str(ipaddress.ip_address(text)), 53)
    except ValueError:
        found = Address.parse(text)
    ipaddress.ip_address(found.host)
    return found


def _halves(tag: str) -> tuple[str, str]:
    name, _, value = tag.partition("=")
    return name, value
