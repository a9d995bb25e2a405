"""TLS: what a listener or a link shows, whom it believes, and how both change without a restart.

`certificate` reads certificates and the names in them, `contexts` makes what the standard library's
`ssl` needs, `reloading` makes it anew when files change. `node` is all of that for a node, `client`
for everybody who only dials, `watch` looks at the files and at the days that are left. `issuing`
makes certificates for those who have none; it alone needs the extra `tls`.
"""

from angarium.security.tls.certificate import Certificate, NodeName
from angarium.security.tls.client import ClientTls, TlsOptions, client_tls
from angarium.security.tls.contexts import ClientCertificates, Door, is_node_context
from angarium.security.tls.dialling import Dialling
from angarium.security.tls.errors import UntrustedNode, UnusableCertificate
from angarium.security.tls.files import CertificateFiles
from angarium.security.tls.listener import ListenerTls
from angarium.security.tls.node import NodeTls
from angarium.security.tls.watch import TlsWatch

__all__ = [
    "Certificate",
    "CertificateFiles",
    "ClientCertificates",
    "ClientTls",
    "Dialling",
    "Door",
    "ListenerTls",
    "NodeName",
    "NodeTls",
    "TlsOptions",
    "TlsWatch",
    "UntrustedNode",
    "UnusableCertificate",
    "client_tls",
    "is_node_context",
]
