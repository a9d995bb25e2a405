"""`angarium cluster recover-catalog`"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from angarium.cli.grammar.quantities import shown_time
from angarium.cli.output import print_json, table_lines
from angarium.cli.own_name import own_name
from angarium.cli.profiles import choices
from angarium.node.succession import End, Invitation

if TYPE_CHECKING:
    from argparse import Namespace

    from angarium.app.recovered_catalog import Looked, Recovered
    from angarium.security.tls import Dialling

REFUSED_STATUS = 1
"""Nothing was confirmed, and nothing could be."""


def run(options: Namespace) -> int:
    """Say what going on with a folder would do; with the code that this gave, do it."""
    from angarium.app import recovered_catalog  # noqa: PLC0415 - loads a node

    folder = Path(options.data)
    others = [*map(End.parse, options.other)]
    follow = None if options.follow is None else Invitation.parse(options.follow)
    tls = None if options.config is None else _node_tls(Path(options.config))
    is_json = choices(options).is_json
    if options.confirm is not None:
        done = recovered_catalog.carry_out(
            folder, options.confirm, others=others, follow=follow, tls=tls
        )
        if is_json:
            print_json(asdict(done))
        else:
            print("\n".join(done_lines(done, folder)))
        return 0
    looked = recovered_catalog.looked_at(folder, others=others, follow=follow, tls=tls)
    if is_json:
        print_json({**msgspec.to_builtins(asdict(looked)), "end": str(looked.end)})
    else:
        print("\n".join(lines(looked, options)))
    return REFUSED_STATUS if looked.objection else 0


def _node_tls(config: Path) -> Dialling | None:
    """Return how the node with these settings dials others."""
    from angarium.app.sources import load_settings  # noqa: PLC0415 - loads a node

    return load_settings(file=config, environment=os.environ).tls.opened()


def lines(looked: Looked, options: Namespace) -> list[str]:
    """Return what was found, what would be done, and what it may lose."""
    from angarium.app.recovered_catalog import SOMEBODY  # noqa: PLC0415 - loads a node

    again = [f"{own_name()} cluster recover-catalog --data {options.data}"]
    again += [f"--config {options.config}"] if options.config else []
    again += [f"--follow {options.follow}"] if options.follow else []
    again += [f"--other {one}" for one in options.other]
    command = f"{' '.join(again)} --confirm {looked.code}"
    if looked.begun is not None:
        return [
            f"A recovery of the cluster {looked.cluster} was begun on this folder and did not end."
            " No node starts on it before it has.",
            "",
            f"To end it: {command}",
        ]
    told = [
        f"Node {looked.node} of the cluster {looked.cluster}. Its catalog ends at {looked.end}"
        f" (term and entry); up to entry {looked.commit} it knows that a majority had it. The last"
        f" change in it is of {shown_time(looked.changed_at)}. It has {looked.topics}"
        f" topics and {looked.users} users, and nodes {', '.join(map(str, looked.voters))} vote on"
        " it.",
        "",
    ]
    if looked.others:
        rows = [
            (one.node, one.address or None, "yes" if one.votes else "no", one.answers or "nobody")
            for one in looked.others
        ]
        told += ["The others:"]
        told += [*table_lines(("node", "address", "votes", "answers there"), rows), ""]
    if not options.config and any(one.answers.startswith(SOMEBODY) for one in looked.others):
        told += [
            "Who answers cannot be told. If the nodes speak TLS, say --config node.toml, this"
            " node's own: the others are asked with its certificate then, and nothing is done"
            " while one of them lives.",
            "",
        ]
    if looked.objection:
        return [*told, f"Nothing is done: {looked.objection}."]
    if options.follow:
        told += [
            f"To follow would make node {looked.node} one of the recovered cluster, with all that"
            " it has of partitions. Its own copy of the catalog goes, and it gets that one's."
        ]
    else:
        told += [
            f"To recover would make node {looked.node} the first node of a cluster with another id,"
            " with this catalog and with all that this folder has of partitions.",
            "",
            *looked.may_lose,
            "",
            "If the disks of others are left, too, run this there before, and go on with the"
            " catalog that ends last.",
        ]
    return [*told, "", f"To do exactly this: {command}"]


def done_lines(done: Recovered, folder: Path) -> list[str]:
    """Return what was done, and what to do next."""
    if not done.invitation:
        return [
            f"Node {done.node} follows the cluster {done.cluster}. Start it again, with --join and"
            " where the recovered node is."
        ]
    return [
        f"The cluster {done.previous} goes on as {done.cluster}, with node {done.node}. Start it"
        " again as before.",
        "",
        "On each other node whose disk is left:",
        f"    {own_name()} cluster recover-catalog --data {folder} --follow {done.invitation}",
        "",
        "Then recover the partitions that `angarium cluster status` names, one by one, with"
        " `angarium cluster recover-partition`; angarium.audit first, where there is one.",
    ]
