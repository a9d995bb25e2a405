"""`angarium gateway`: the HTTP door in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.app.addresses import Address
from angarium.app.gateway import GatewayPart
from angarium.app.serving import serve
from angarium.app.settings import HttpSettings, LogSettings
from angarium.cli.complaints import Refusal
from angarium.cli.profiles import choices
from angarium.wire.http.admission import Admission
from angarium.wire.http.hosts import Hosts
from angarium.wire.http.origins import Origins

if TYPE_CHECKING:
    from argparse import Namespace

_FLAGS: Final = {"origins": "--origins", "hosts": "--hosts"}
"""What a setting of `[http]` is called here."""


def run(options: Namespace) -> int:
    """Serve until told to stop."""
    if not options.insecure and not Address(options.listen, 0).is_loopback:
        raise Refusal(
            f"{options.listen} can be reached from other machines, and there is no authentication"
            " yet; listen on 127.0.0.1, or, if the network itself is protected, add"
            " --insecure"
        )
    servers = tuple(str(one) for one in choices(options).servers)
    try:
        chosen = HttpSettings(origins=tuple(options.origins), hosts=tuple(options.hosts))
    except ValueError as error:
        name, _, what = str(error).partition(": ")
        raise Refusal(f"{_FLAGS[name]}: {what}") from None
    admission = Admission(
        Hosts([options.listen, *chosen.hosts], setting=f"{_FLAGS['hosts']} of the gateway"),
        Origins(chosen.origins, setting=f"{_FLAGS['origins']} of the gateway"),
    )
    part = GatewayPart(servers, host=options.listen, port=options.port, admission=admission)
    return serve(lambda _: [part], LogSettings())
