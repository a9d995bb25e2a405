"""What `ssl` needs, made from files: TLS 1.2 at least, 1.3 where both sides have it.

Listeners hand out no session tickets: a session that is taken up again skips the look at the
client's certificate, and would outlive the authority that it was checked against.
"""

from __future__ import annotations

import ssl
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Final

from angarium.security.tls.files import believe

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.security.tls.files import CertificateFiles

NODE_SERVER_NAME: Final = "node.angarium.internal"
"""The name that nodes ask for when they dial each other: a listener then shows the certificate of
the cluster, and believes the authorities of the cluster alone. It is in no certificate."""


class ClientCertificates(StrEnum):
    """What listeners ask of clients."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRED = "required"


class Door(Enum):
    """What is spoken behind a listener, as ALPN calls it."""

    WIRE = ()
    GRPC = ("h2",)
    HTTP = ("http/1.1",)


class NodeContext(ssl.SSLContext):
    """A context that believes the authorities of the cluster alone.

    Who has shown a certificate under it is known by a certificate of the cluster's own authority.
    """


_VERIFY: Final = {
    ClientCertificates.NONE: ssl.CERT_NONE,
    ClientCertificates.OPTIONAL: ssl.CERT_OPTIONAL,
    ClientCertificates.REQUIRED: ssl.CERT_REQUIRED,
}


def listener_context(
    files: CertificateFiles, *, clients: ClientCertificates, door: Door
) -> ssl.SSLContext:
    """Return a listener's context; raises `UnusableCertificate`."""
    context = _of_listener(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), files)
    if door.value:
        context.set_alpn_protocols(list(door.value))
    if files.authorities is not None:
        context.verify_mode = _VERIFY[clients]
    return context


def wire_context(files: CertificateFiles, cluster: CertificateFiles) -> ssl.SSLContext:
    """Return the context of a wire port, where clients and other nodes come in.

    Whoever asks for `NODE_SERVER_NAME` meets the certificate and the authorities of the cluster.
    Whether a certificate is asked for is decided before that name is read, so everybody is asked.
    Whether one was needed is decided behind the handshake, where the refusal can be told.
    """
    context = listener_context(files, clients=ClientCertificates.OPTIONAL, door=Door.WIRE)
    for_nodes = _of_listener(NodeContext(ssl.PROTOCOL_TLS_SERVER), cluster)
    context.verify_mode = for_nodes.verify_mode = ssl.CERT_OPTIONAL

    def choose(one: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
        if name == NODE_SERVER_NAME:
            one.context = for_nodes

    context.sni_callback = choose
    return context


def is_node_context(context: ssl.SSLContext) -> bool:
    """Tell whether whoever has shown a certificate under `context` has one of the cluster's."""
    return isinstance(context, NodeContext)


def node_link_context(cluster: CertificateFiles) -> ssl.SSLContext:
    """Return the context with which a node dials another; raises `UnusableCertificate`.

    The host's name is not looked at: nodes move, and are known by the name in their certificate,
    which whoever dials looks at afterwards.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    assert cluster.authorities is not None
    believe(context, cluster.authorities)
    cluster.show(context)
    return context


def client_context(*, authorities: Path | None, files: CertificateFiles | None) -> ssl.SSLContext:
    """Return a client's context; without `authorities` it believes those of the system.

    The host that is dialled has to be in the certificate, as a DNS name or an IP address; the
    common name does not count.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.hostname_checks_common_name = False
    if authorities is None:
        context.load_default_certs()
    else:
        believe(context, authorities)
    if files is not None:
        files.show(context)
    return context


def _of_listener(context: ssl.SSLContext, files: CertificateFiles) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.num_tickets = 0
    files.show(context)
    if files.authorities is not None:
        believe(context, files.authorities)
    return context
