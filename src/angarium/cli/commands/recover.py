"""`angarium cluster recover-partition`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from angarium.cli.grammar.quantities import shown_age
from angarium.cli.output import print_json, table_lines
from angarium.cli.own_name import own_name
from angarium.cli.session import talk

if TYPE_CHECKING:
    from argparse import Namespace

    from angarium.api.recovery import RecoveryInfo
    from angarium.cli.profiles import Choices
    from angarium.client import Client

REFUSED_STATUS = 1
"""Nothing was confirmed, and nothing could be."""


def recover_partition(options: Namespace) -> int:
    """Say what going on with one replica would do; with the code that this gave, do it."""

    async def work(client: Client, chosen: Choices) -> int:
        topic, partition = options.topic, options.partition
        if options.confirm is None:
            info = await client.describe_recovery(topic, partition)
        else:
            info = await client.recover_partition(topic, partition, options.confirm)
        if chosen.is_json:
            print_json(msgspec.to_builtins(info))
        else:
            print("\n".join(done_lines(info) if info.is_done else lines(info)))
        return REFUSED_STATUS if info.objection else 0

    return talk(options, work)


def lines(info: RecoveryInfo) -> list[str]:
    """Return what would be done, and what it may lose."""
    name = f"partition {info.partition} of {info.topic}"
    told = []
    if info.lost:
        lost = [(one.node, one.address or None, _away(one.silent_ms)) for one in info.lost]
        told += ["Lost:", *table_lines(("node", "address", "away for"), lost), ""]
    if info.left:
        left = [(one.node, one.last_term, one.last_index, one.halted or None) for one in info.left]
        told += ["Left:", *table_lines(("node", "term", "entries", "stopped"), left), ""]
    if info.objection:
        return [*told, f"Nothing can be recovered: {info.objection}."]
    told += [
        f"To recover {name} would go on with the replica of node {info.source}, whose log ends at"
        f" entry {info.last_index} of term {info.last_term}, and whose records end at offset"
        f" {info.end_offset}. All its other replicas would be void for ever: a node that comes back"
        " with one gives it up.",
        "",
        *info.may_lose,
    ]
    if info.groups:
        groups = [(one.name, one.position) for one in info.groups]
        told += ["", *table_lines(("group", "position"), groups)]
    command = f"{own_name()} cluster recover-partition {info.topic} {info.partition}"
    return [*told, "", f"To do exactly this: {command} --confirm {info.code}"]


def done_lines(info: RecoveryInfo) -> list[str]:
    """Return what was done."""
    return [
        f"Partition {info.partition} of {info.topic} goes on with the replica of node"
        f" {info.source}, from entry {info.last_index} of term {info.last_term}. Its other replicas"
        " are copied from there."
    ]


def _away(silent_ms: int | None) -> str:
    return "there, without its replica" if silent_ms is None else shown_age(silent_ms)
