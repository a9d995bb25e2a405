"""What does not fit together in the settings of a node, although each value on its own would do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.addresses import PORT_MAX, Address
from angarium.app.audit_settings import NOBODY_TO_NAME
from angarium.app.settings import DOOR_PORTS, PROCESS_PORT_STEP, Problem

if TYPE_CHECKING:
    from angarium.app.settings import CompatSettings, Settings


def problems(settings: Settings) -> list[Problem]:
    """Return what does not fit together, although each value on its own would do."""
    found = []
    listen = settings.listen
    is_secured = settings.tls.is_on and settings.security.is_required
    if not (listen.insecure or is_secured or Address(listen.host, 0).is_loopback):
        what = open_door(
            listen.host, has_tls=settings.tls.is_on, asks_who=settings.security.is_required
        )
        found.append(Problem("listen.host", what))
    ports = [getattr(listen, name) for name in DOOR_PORTS]
    for number, (name, port) in enumerate(zip(DOOR_PORTS, ports, strict=True)):
        if port and port in ports[:number]:
            found.append(Problem(f"listen.{name}", "is another door's; each needs its own"))
    found += _problems_of_compat(settings)
    if settings.node.form and settings.node.join:
        found.append(Problem("node.join", _FORM_OR_JOIN))
    if settings.security.certificate_user != "off" and settings.tls.client_certificates == "none":
        found.append(Problem("security.certificate_user", _NO_CLIENT_CERTIFICATES))
    node = settings.node
    has_peers = bool(node.join) or settings.discovery.is_on or node.processes > 1
    if has_peers and not (settings.tls.is_on or settings.security.are_peers_trusted):
        found.append(Problem("security.trust_peers", _NO_CERTIFICATES))
    if settings.audit.record in {"changes", "data"} and not settings.security.is_required:
        found.append(Problem("audit.record", NOBODY_TO_NAME))
    if listen.host in EVERYWHERE and not settings.advertise.host:
        found.append(Problem("advertise.host", _NOWHERE.format(host=listen.host)))
    if settings.node.processes > 1:
        found += _problems_of_several(settings)
    return found


def _problems_of_compat(settings: Settings) -> list[Problem]:
    """Return what stands in the way of the listeners for clients of earlier brokers."""
    found = []
    listen, compat = settings.listen, settings.compat
    taken = {getattr(listen, name) for name in DOOR_PORTS}
    for name, port in compat.ports:
        if port in taken:
            found.append(Problem(f"compat.{name}", f"{port} is another door's; each needs its own"))
        taken.add(port)
    if settings.security.is_required:
        return found + _problems_of_strangers(compat)
    if compat.geo_grpc_port is not None and not settings.users.hashes:
        found.append(Problem("compat.geo_grpc_port", _NO_USERS))
    return found


def _problems_of_strangers(compat: CompatSettings) -> list[Problem]:
    """Return which listeners would serve somebody unknown although authentication is required."""
    has_hermes = compat.hermes_grpc_port is not None or compat.hermes_http_port is not None
    found = [
        Problem(f"compat.{name}_user", _NO_NAME.format(name=name))
        for name, is_on in (("hermes", has_hermes), ("bale", compat.bale_grpc_port is not None))
        if is_on and not getattr(compat, f"{name}_user")
    ]
    if compat.bale_metrics_ports:
        found.append(Problem("compat.bale_metrics_ports", _OPEN_METRICS))
    return found


def _problems_of_several(settings: Settings) -> list[Problem]:
    """Return what stands in the way of running more than one process with these settings."""
    found = []
    node, listen, told = settings.node, settings.listen, settings.advertise
    shifts = range(0, PROCESS_PORT_STEP * node.processes, PROCESS_PORT_STEP)
    if node.id is not None:
        found.append(Problem("node.id", _WHICH_PROCESS))
    if listen.wire_port == 0:
        found.append(Problem("listen.wire_port", _NO_FREE_PORT))
    for section, ports in (("listen", listen), ("advertise", told)):
        for name in DOOR_PORTS:
            port = getattr(ports, name)
            if port and port + shifts[-1] > PORT_MAX:
                what = f"{node.processes} processes would need ports above {PORT_MAX}"
                found.append(Problem(f"{section}.{name}", what))
    for name in DOOR_PORTS[1:]:
        port = getattr(listen, name)
        apart = (port or 0) - listen.wire_port
        if port and listen.wire_port and apart and abs(apart) in shifts:
            found.append(Problem(f"listen.{name}", _SAME_STEP))
    taken = {port for name in DOOR_PORTS if (port := getattr(listen, name))}
    for name, port in settings.compat.ports:
        if port + shifts[-1] > PORT_MAX:
            what = f"{node.processes} processes would need ports above {PORT_MAX}"
            found.append(Problem(f"compat.{name}", what))
        if any(abs(port - other) in shifts[1:] for other in taken):
            what = f"{port} is {PROCESS_PORT_STEP} (i - 1) away from another door's, and so taken"
            found.append(Problem(f"compat.{name}", f"{what} by process i"))
        taken.add(port)
    return found


EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104  (recognised here, not listened on)
"""Hosts that mean every interface of the machine."""

_WHICH_PROCESS: Final = (
    "names one node, and there are several processes; bring the one whose data are gone back by"
    " itself, with its own folder and ports, and let it join the others again afterwards"
)

_NO_FREE_PORT: Final = "several processes find each other by their ports; choose one other than 0"

_SAME_STEP: Final = (
    f"is where another process has its wire: process i has its ports {PROCESS_PORT_STEP} (i - 1)"
    " higher; the port after the wire's is free"
)

_NO_NAME: Final = (
    "authentication is required, and clients of {name} cannot say who they are; name the user whose"
    " grants count for everybody who reaches that port, or take its ports away"
)

_OPEN_METRICS: Final = (
    "shows these metrics to everybody, and authentication is required; take the ports away:"
    " `/metrics` of the HTTP door asks who reads them"
)

_NO_USERS: Final = (
    "clients of geo say who they are, and nobody has an account; add one to [users] with the line"
    " that `angarium user hash NAME` prints"
)

_FORM_OR_JOIN: Final = "a node forms a new cluster or joins one; take `form` or `join` away"

_NO_CERTIFICATES: Final = (
    "authentication is required, and who may speak as a node may do everything: nodes prove with"
    " certificates that they are nodes ([tls]; `angarium tls init` makes them). Where nobody else"
    " can reach the wire port, security.trust_peers = true goes without"
)

_NO_CLIENT_CERTIFICATES: Final = (
    "no door asks clients for a certificate: set client_certificates in [tls] to optional, or to"
    " required"
)

_OPEN_DOOR: Final = (
    "{host} can be reached from other machines, and what is missing for that is {missing}. {get}"
    "Listen on 127.0.0.1, or, where the network itself keeps strangers out, start with --insecure"
    " (listen.insecure = true)."
)

_GET_TLS: Final = "`angarium tls init` makes certificates, which go into [tls]. "

_GET_AUTHENTICATION: Final = "--authentication required asks everybody who it is. "

_NOWHERE: Final = (
    "{host} means every interface, which is nothing that others could dial; say which host they"
    " should use, for example node-1.example.org"
)


def open_door(host: str, *, has_tls: bool, asks_who: bool = False) -> str:
    """Return why a listener that others can reach does not start, and what would be needed."""
    missing = [
        what
        for what, is_there in (
            ("TLS ([tls] has no certificate)", has_tls),
            ("authentication ([security] authentication is off)", asks_who),
        )
        if not is_there
    ]
    return _OPEN_DOOR.format(
        host=host,
        missing=" and ".join(missing),
        get=("" if has_tls else _GET_TLS) + ("" if asks_who else _GET_AUTHENTICATION),
    )
