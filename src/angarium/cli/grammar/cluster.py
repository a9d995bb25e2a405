"""`angarium cluster status | add | drain | remove | transfer | raise-level`"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.cli.grammar.words import natural, positive

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words


def add(words: Words) -> None:
    """Add the words."""
    family = words.add_family("cluster", "look at the nodes, and change them")

    status = family.add("status", "show the nodes and who leads", run="cluster:status")
    status.add_argument("--watch", action="store_true", help="keep running and show changes")

    family.add("add", "show how to add a node", run="cluster:add")

    drain = family.add(
        "drain", "move everything away from a node, before it is removed", run="cluster:drain"
    )
    drain.add_argument("node", metavar="NODE", type=positive)
    drain.add_argument("--undo", action="store_true", help="allow replicas on it again")
    drain.add_argument(
        "--wait",
        action="store_true",
        help="wait until it holds no replicas, or until they cannot move",
    )

    remove = family.add("remove", "remove a node that holds no replicas", run="cluster:remove")
    remove.add_argument("node", metavar="NODE", type=positive)

    transfer = family.add(
        "transfer", "hand a partition's leadership to another node", run="cluster:transfer"
    )
    transfer.add_argument("topic", metavar="TOPIC")
    transfer.add_argument("partition", metavar="PARTITION", type=natural)
    transfer.add_argument("node", metavar="NODE", type=positive)

    raise_level = family.add(
        "raise-level",
        "end an upgrade: use the new release's features; cannot be undone",
        run="cluster:raise_level",
    )
    raise_level.add_argument(
        "level", metavar="LEVEL", type=positive, nargs="?", help="default: the highest all know"
    )
