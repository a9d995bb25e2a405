"""TLS for a node: every listener, and the links to the other nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from angarium.security.tls.certificate import Certificate, NodeName
from angarium.security.tls.contexts import (
    NODE_SERVER_NAME,
    ClientCertificates,
    Door,
    is_node_context,
    listener_context,
    node_link_context,
    wire_context,
)
from angarium.security.tls.errors import UntrustedNode, UnusableCertificate
from angarium.security.tls.reloading import Reloading

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator, Mapping

    from angarium.security.tls.files import CertificateFiles

LINKS: Final = "nodes"
"""What metrics call the certificate that nodes show each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    doors: Mapping[Door, ssl.SSLContext]
    link: ssl.SSLContext
    shown: Certificate
    """What clients see."""
    own: Certificate
    """What other nodes see."""
    name: NodeName


class NodeTls:
    """Contexts for what a node opens and dials; from one state of the files, all of them."""

    def __init__(
        self,
        files: CertificateFiles,
        *,
        cluster: CertificateFiles | None = None,
        clients: ClientCertificates = ClientCertificates.NONE,
    ) -> None:
        """Read the files; raises `UnusableCertificate`.

        `cluster` is what nodes prove themselves to each other with, where that is another
        certificate, or another authority, than what clients see.
        """
        among_nodes = cluster or files
        self.requires_certificates = clients is ClientCertificates.REQUIRED
        """Whether clients need one."""
        if among_nodes.authorities is None:
            raise UnusableCertificate("nodes need the authorities of the cluster to be known")

        self._name: NodeName | None = None

        def make() -> _Made:
            own = Certificate.in_file(among_nodes.certificate)
            name = own.node_name
            if name is None:
                raise UnusableCertificate(_NAMELESS.format(path=among_nodes.certificate))
            if self._name not in (None, name):
                raise UnusableCertificate(
                    f"{among_nodes.certificate}: it is for {name}, and this node runs as "
                    f"{self._name}: a renewed certificate keeps its name; for another one, restart"
                )
            self._name = name
            doors = {
                one: listener_context(files, clients=clients, door=one)
                for one in (Door.GRPC, Door.HTTP)
            }
            doors[Door.WIRE] = wire_context(files, among_nodes)
            return _Made(
                doors=doors,
                link=node_link_context(among_nodes),
                shown=Certificate.in_file(files.certificate),
                own=own,
                name=name,
            )

        paths = tuple(dict.fromkeys((*files.paths, *among_nodes.paths)))
        self.made = Reloading("the node", paths, make)

    # --- listeners ----------------------------------------------------------------------------

    def listener(self, door: Door) -> Callable[[], ssl.SSLContext]:
        """Return what gives the context of each new connection of a listener."""
        return lambda: self.made.current.doors[door]

    @property
    def name(self) -> NodeName:
        """Which node this is, to other nodes; the same as long as the process lasts."""
        return self.made.current.name

    @property
    def shown(self) -> Certificate:
        """The certificate that clients see now."""
        return self.made.current.shown

    def is_node(self, shown: Certificate | None, context: ssl.SSLContext | None) -> bool:
        """Tell whether `shown`, believed under `context`, is that of a node of this cluster."""
        if shown is None or context is None or not is_node_context(context):
            return False
        return self._is_of_this_cluster(shown)

    # --- links --------------------------------------------------------------------------------

    def context(self) -> ssl.SSLContext:
        """Return the context with which the next node is dialled."""
        return self.made.current.link

    def server_name(self, host: str) -> str:  # noqa: ARG002  (every node answers to this one)
        """Return the name that makes a listener show what is meant for nodes."""
        return NODE_SERVER_NAME

    def check(self, shown: Certificate) -> None:
        """Raise `UntrustedNode` unless a node of this cluster has answered."""
        if not self._is_of_this_cluster(shown):
            raise UntrustedNode(
                f"who answers shows a certificate for {shown.node_name or 'no node'}, and nodes of"
                f" this cluster are angarium://{self.made.current.name.cluster}/node/NAME"
            )

    def _is_of_this_cluster(self, shown: Certificate) -> bool:
        name = shown.node_name
        return name is not None and name.cluster == self.made.current.name.cluster

    # --- what there is to tell ----------------------------------------------------------------

    def certificates(self) -> Iterator[tuple[str, Certificate]]:
        """Return the certificates in use, by what they are for."""
        made = self.made.current
        yield from ((door.name.lower(), made.shown) for door in Door)
        yield LINKS, made.own


_NAMELESS: Final = (
    "{path}: nodes are known by one URI angarium://CLUSTER/node/NAME among the subject alternative"
    " names, and it has none (or several); `angarium tls init` makes such certificates"
)
