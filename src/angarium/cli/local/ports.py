"""Is a port free? Asked before a cluster starts, so that the answer is a sentence."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from angarium.cli.complaints import Refusal
from angarium.cli.local.folder import HOST, PORT_STEP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.cli.local.compat import Compat
    from angarium.cli.local.folder import LocalNode


def check_ports(nodes: Iterable[LocalNode], port_base: int) -> None:
    """Raise `Refusal` if another program listens where one of `nodes` is to."""
    wanted = [port for node in nodes for port in (node.wire_port, node.grpc_port, node.http_port)]
    taken = [port for port in wanted if not is_free(port)]
    if not taken:
        return
    offsets = [port - port_base for port in wanted]
    better = next(
        base
        for base in range(port_base + 100, 65_536 - max(offsets), PORT_STEP * 10)
        if all(is_free(base + offset) for offset in offsets)
    )
    ports = f"port {taken[0]} is" if len(taken) == 1 else f"ports {_listed(taken)} are"
    raise Refusal(
        f"{ports} taken by another program.\n"
        f"Choose others: PORT_BASE={better} make run, or angarium up --port-base {better}"
    )


def check_compat_ports(compat: Compat, nodes: Iterable[LocalNode]) -> None:
    """Raise `Refusal` if another program listens where an earlier broker's clients look."""
    taken = [port for node in nodes for _, port in compat.ports(node) if not is_free(port)]
    if taken:
        ports = f"port {taken[0]} is" if len(taken) == 1 else f"ports {_listed(taken)} are"
        raise Refusal(
            f"{ports} taken by another program, and the profile's clients expect them.\n"
            "Stop it, or give the profile ports of the cluster's own: --compat-ports own"
        )


def is_free(port: int) -> bool:
    """Tell whether nobody listens on a port of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As the node's own listener does: a connection that lingers from before is no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _listed(ports: list[int]) -> str:
    return ", ".join(map(str, ports[:-1])) + f" and {ports[-1]}"
