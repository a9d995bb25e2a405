"""`angarium gateway`: the HTTP door in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from angarium.addresses import Address
from angarium.app.gateway import GatewayPart
from angarium.app.serving import serve
from angarium.app.settings import HttpSettings, LogSettings
from angarium.cli.complaints import Refusal
from angarium.cli.profiles import choices
from angarium.security.tls import CertificateFiles, ClientCertificates, ListenerTls
from angarium.wire.http.admission import Admission
from angarium.wire.http.hosts import Hosts
from angarium.wire.http.origins import Origins

if TYPE_CHECKING:
    from argparse import Namespace

_FLAGS: Final = {"origins": "--origins", "hosts": "--hosts", "hsts_s": "--hsts-s"}
"""What a setting of `[http]` is called here."""

_OPEN: Final = (
    "{host} can be reached from other machines, and what is missing for that is TLS: give"
    " --tls-certificate and --tls-private-key (`angarium tls init` makes them). Listen on"
    " 127.0.0.1, or, where the network itself keeps strangers out, start with --insecure"
)


def run(options: Namespace) -> int:
    """Serve until told to stop."""
    is_exposed = not (options.insecure or Address(options.listen, 0).is_loopback)
    tls = _tls(options)
    if is_exposed and tls is None:
        raise Refusal(_OPEN.format(host=options.listen))
    servers = tuple(str(one) for one in choices(options).servers)
    try:
        chosen = HttpSettings(
            origins=tuple(options.origins), hosts=tuple(options.hosts), hsts_s=options.hsts_s
        )
    except ValueError as error:
        name, _, what = str(error).partition(": ")
        raise Refusal(f"{_FLAGS[name]}: {what}") from None
    admission = Admission(
        Hosts([options.listen, *chosen.hosts], setting=f"{_FLAGS['hosts']} of the gateway"),
        Origins(chosen.origins, setting=f"{_FLAGS['origins']} of the gateway"),
    )
    part = GatewayPart(
        servers,
        host=options.listen,
        port=options.port,
        admission=admission,
        hsts_s=chosen.hsts_s,
        tls=tls,
        must_ask=is_exposed,
    )
    return serve(lambda _: [part], LogSettings())


def _tls(options: Namespace) -> ListenerTls | None:
    certificate, key = options.tls_certificate, options.tls_private_key
    if certificate is None and key is None and options.tls_authorities is None:
        return None
    if certificate is None or key is None:
        raise Refusal("--tls-certificate and --tls-private-key are needed together")
    authorities = options.tls_authorities
    return ListenerTls(
        CertificateFiles(
            certificate=Path(certificate),
            key=Path(key),
            authorities=None if authorities is None else Path(authorities),
        ),
        clients=ClientCertificates.NONE if authorities is None else ClientCertificates.REQUIRED,
    )
