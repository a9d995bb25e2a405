"""`angarium gateway`: the HTTP door in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.app.addresses import Address
from angarium.app.gateway import GatewayPart
from angarium.app.serving import serve
from angarium.app.settings import HttpSettings, LogSettings
from angarium.cli.complaints import Refusal
from angarium.cli.profiles import choices

if TYPE_CHECKING:
    from argparse import Namespace


def run(options: Namespace) -> int:
    """Serve until told to stop."""
    if not options.insecure and not Address(options.listen, 0).is_loopback:
        raise Refusal(
            f"{options.listen} can be reached from other machines, and there is no authentication"
            " yet; listen on 127.0.0.1, or, where the network itself keeps strangers out, add"
            " --insecure"
        )
    servers = tuple(str(one) for one in choices(options).servers)
    try:
        HttpSettings(origins=tuple(options.origin))
    except ValueError as error:
        raise Refusal(f"--origin: {error}") from None
    part = GatewayPart(
        servers, host=options.listen, port=options.port, origins=tuple(options.origin)
    )
    return serve(lambda _: [part], LogSettings())
