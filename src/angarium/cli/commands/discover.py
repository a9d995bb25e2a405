"""`angarium discover`: what a node with these settings would find."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from angarium.app.sources import load_settings
from angarium.cli.commands.serve import discovery_flags
from angarium.cli.complaints import Refusal
from angarium.cli.output import print_json, print_table
from angarium.discovery.lookout import Lookout
from angarium.discovery.static import StaticDiscovery
from angarium.doors.status import Exit
from angarium.node.greetings import greetings_at
from angarium.security.tls import client_tls
from angarium.telemetry.logs import escaped

if TYPE_CHECKING:
    from argparse import Namespace

    from angarium.addresses import Address
    from angarium.app.settings import Settings
    from angarium.discovery.lookout import Look
    from angarium.errors import AngariumError
    from angarium.wire import Hello


def run(options: Namespace) -> int:
    """Print where nodes are found, and who answers there."""
    settings = load_settings(
        file=Path(options.config) if options.config else None,
        environment=os.environ,
        flags=discovery_flags(options.discover),
    )
    if not settings.discovery.is_on and not settings.node.join:
        raise Refusal(
            "whom to ask? `angarium discover dns:NAME`, serf or kubernetes:SERVICE, or the"
            " settings of a node (--config node.toml)"
        )
    # A node's log would say that it tries again; a command does not.
    logging.getLogger("angarium.discovery").addHandler(logging.NullHandler())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        look, greeted = runner.run(_looked(settings))
    rows = [_row(address, hello) for address, hello in greeted.items()]
    if options.format == "json":
        print_json({"nodes": rows, "failures": [str(one) for one in look.failures]})
    else:
        for failure in look.failures:
            print(f"angarium: {escaped(str(failure))}", file=sys.stderr)
        if rows:
            columns = ("address", "node", "cluster", "answer")
            print_table(columns, [[row[one] or "-" for one in columns] for row in rows], none="")
    return Exit.OK if rows else Exit.UNAVAILABLE


async def _looked(settings: Settings) -> tuple[Look, dict[Address, Hello | AngariumError]]:
    found = settings.discovery.opened()
    listed = [StaticDiscovery(settings.node.join)] if settings.node.join else []
    look = await Lookout([*listed, *([] if found is None else [found])]).look()
    tls = settings.tls.opened() or client_tls()
    return look, await greetings_at(look.addresses, tls=tls)


def _row(address: Address, hello: Hello | AngariumError) -> dict[str, str | int]:
    row: dict[str, str | int] = {"address": str(address), "node": 0, "cluster": ""}
    if isinstance(hello, Exception):
        return {**row, "answer": escaped(str(hello))}
    if not hello.node:
        return {**row, "answer": "a node that has no data yet"}
    return {**row, "node": hello.node, "cluster": hello.cluster, "answer": "here"}
