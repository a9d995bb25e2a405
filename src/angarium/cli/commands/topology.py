"""`angarium topology`"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.addresses import Address
from angarium.cli.output import print_json
from angarium.cli.probe import Probe
from angarium.cli.session import talk
from angarium.cli.topology import lines, topology
from angarium.errors import Unreachable
from angarium.telemetry.logs import escaped

if TYPE_CHECKING:
    from argparse import Namespace

    from angarium.cli.profiles import Choices
    from angarium.client import Client


def show(options: Namespace) -> int:
    """Print the cluster's shape."""

    async def work(client: Client, chosen: Choices) -> int:
        seen = await client.cluster_status()
        probes = [
            Probe(Address.parse(one.addresses["wire"]), tls=chosen.tls)
            for one in seen.nodes
            if one.addresses.get("wire")
        ]
        try:
            views = await asyncio.gather(*(probe.view() for probe in probes))
        finally:
            await asyncio.gather(*(probe.close() for probe in probes))
        found = [view for view in views if view is not None]
        if not found:
            raise Unreachable("no node says what it sees; `angarium cluster status` asks one")
        # Whoever answered first was asked by the client, and so is near.
        found.sort(key=lambda view: view.status.node != seen.node)
        document = topology(found)
        if chosen.is_json:
            print_json(document)
        else:
            print("\n".join(map(escaped, lines(document))))
        return 0

    return talk(options, work)
