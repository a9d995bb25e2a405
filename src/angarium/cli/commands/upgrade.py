"""`angarium cluster upgrade-check`"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.cli.grammar.quantities import shown_size
from angarium.cli.output import print_json, table_lines
from angarium.cli.own_name import own_name
from angarium.cli.session import talk
from angarium.doors.status import Exit
from angarium.errors import AngariumError

if TYPE_CHECKING:
    from argparse import Namespace

    from angarium.api.upgrades import NodeState, UpgradeInfo
    from angarium.cli.profiles import Choices
    from angarium.client import Client

LOOK_SECONDS: Final = 1.0
"""How often it is asked again with --wait."""

_HEADINGS: Final = ("node", "alive", "version", "level", "certificate", "disk free", "catalog")


def check(options: Namespace) -> int:
    """Say whether the next node may be taken down, and which one; wait for it if told to."""

    async def work(client: Client, chosen: Choices) -> int:
        info = await _allowed(client, options.wait)
        if chosen.is_json:
            print_json({**msgspec.to_builtins(info), "may_go_on": not info.hindrances})
        else:
            print("\n".join(lines(info)))
        return int(Exit.CONFLICT if info.hindrances else Exit.OK)

    return talk(options, work)


async def _allowed(client: Client, wait_ms: int | None) -> UpgradeInfo:
    """Ask until nothing hinders, or the time is up."""
    deadline = time.monotonic() + (wait_ms or 0) / 1_000
    while True:
        try:
            info = await client.describe_upgrade()
            if not info.hindrances or time.monotonic() >= deadline:
                return info
        except AngariumError:
            # While a node comes back it may be the one that is asked, or have led the catalog.
            if time.monotonic() >= deadline:
                raise
        await asyncio.sleep(LOOK_SECONDS)


def lines(info: UpgradeInfo) -> list[str]:
    """Return what was found."""
    told = [*table_lines(_HEADINGS, map(_row, info.nodes)), ""]
    told += [f"Note: {one}." for one in info.remarks]
    if info.hindrances:
        told.append("No node may be taken down now:")
        told += [f"  {one}" for one in info.hindrances]
        told.append(f"`{own_name()} cluster upgrade-check --wait 10m` waits until one may.")
    elif info.next_node is not None:
        told.append(f"The next node may be taken down: node {info.next_node}.")
    return told


def _row(one: NodeState) -> tuple[object, ...]:
    days, free = one.certificate_days, one.disk_free_bytes
    return (
        one.node,
        "yes" if one.alive else "no",
        one.version or None,
        one.level_max,
        None if days is None else f"{days:.0f} days",
        None if free is None else shown_size(free),
        "leads" if one.leads_catalog else None,
    )
