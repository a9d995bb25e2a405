"""`angarium cluster status | add | invite | drain | remove | rebalance | recover-… | …`"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.cli.grammar.quantities import duration_ms, size_bytes
from angarium.cli.grammar.words import natural, positive

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words


_INVITE = """\
Where authentication is required, a node without data needs a join token to come in, a new one as
well as one whose disk was replaced. It is good for one node, once. Give it to the node in a file:

    angarium cluster invite > join-token
    angarium serve --join HOST:PORT --join-token-file join-token"""


_REBALANCE = """\
The leader of the catalog carries it out, a few moves at a time; a new leader goes on where the last
one was. A partition keeps all of its replicas until its newcomer has caught up, and is never spread
over fewer hosts, zones or regions. Nothing begins while a node cannot be reached.

A new cluster also does it by itself, after a node came, came back from a drain, or was drained:
when all nodes have been there for a minute and no partition lacks a replica, at 16 MiB/s ([cluster]
rebalance_after_s and rebalance_bytes_per_s in node.toml). --auto off ends that.

    angarium cluster rebalance --dry-run
    angarium cluster rebalance --throttle 20MB --watch"""


_UPGRADE = """\
A node may be taken down while all partitions have all of their replicas in sync, nothing moves, the
catalog has all of its voters, and every node is ready. It ends with status 0 then, and with 4 while
none may. See docs/guides/upgrade.md.

    angarium cluster upgrade-check --wait 10m"""


_RECOVER = """\
The last resort when a majority of a partition's replicas is lost for good, and with it perhaps
records. Without --confirm it changes nothing: it says which replicas are lost, with which one the
partition would go on, what that may lose, and a code that stands for exactly this. It is refused
while a majority is there, or may still come back. See docs/guides/lost-majority.md.

    angarium cluster recover-partition orders 2
    angarium cluster recover-partition orders 2 --confirm 1f0a93c7"""


_CATALOG = """\
The last resort when a majority of the catalog's voters is lost for good: in a cluster of three
nodes whenever two are. It works on the data folder of a stopped node, which is the first of a
cluster with another id then, with all that this folder has; partitions that lack a majority are
recovered after it, with recover-partition. Without --confirm it changes nothing: it says what the
folder has of the catalog, what may be lost, and a code that stands for exactly this.

Where several nodes are left, run it on each of them, and go on with the one whose catalog ends last
(--other lets this command compare). The others follow, with what that one says, and keep what they
have of partitions. It is refused while another node of the cluster answers; where nodes speak TLS
it can tell that only with this node's certificate (--config). See docs/guides/lost-majority.md.

    angarium cluster recover-catalog --data /var/lib/angarium --config /etc/angarium/node.toml
    angarium cluster recover-catalog --data /var/lib/angarium --confirm 1f0a93c7"""


def add(words: Words) -> None:
    """Add the words."""
    family = words.add_family("cluster", "look at the nodes, and change them")

    status = family.add("status", "show the nodes and who leads", run="cluster:status")
    status.add_argument("--watch", action="store_true", help="keep running and show changes")

    family.add("add", "show how to add a node", run="cluster:add")

    invite = family.add(
        "invite",
        "make a join token, which lets one new node in, and print it once",
        run="invitations:create",
        more=_INVITE,
    )
    invite.add_argument(
        "--expires", type=duration_ms, metavar="DURATION", help="how long it is good (default: 1h)"
    )
    family.add("invitations", "list join tokens", run="invitations:list_all")
    uninvite = family.add("uninvite", "withdraw a join token", run="invitations:delete")
    uninvite.add_argument("token", metavar="NUMBER", type=positive)

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
    drain.add_argument(
        "--throttle",
        type=size_bytes,
        metavar="BYTES/S",
        help="rebalance beside it, and let all copies together take so much in a second, as 20MB;"
        " at least 64KiB, or none (default: what each node finds that it can spare)",
    )

    remove = family.add("remove", "remove a node that holds no replicas", run="cluster:remove")
    remove.add_argument("node", metavar="NODE", type=positive)

    rebalance = family.add(
        "rebalance",
        "even out replicas, bytes and leaders over the nodes",
        run="rebalance:rebalance",
        more=_REBALANCE,
    )
    rebalance.add_argument(
        "--dry-run", action="store_true", help="show what would move, and move nothing"
    )
    rebalance.add_argument(
        "--throttle",
        type=size_bytes,
        metavar="BYTES/S",
        help="what all moves together, drains too, may take in a second, as 20MB; at least 64KiB,"
        " or none (default: as before while one goes on, else no limit)",
    )
    rebalance.add_argument(
        "--watch", action="store_true", help="show how far it is until it is done"
    )
    rebalance.add_argument(
        "--cancel",
        action="store_true",
        help="begin nothing more; what is on its way goes back",
    )
    rebalance.add_argument(
        "--auto",
        choices=("on", "off"),
        help="whether it begins by itself when a node came, came back or was drained (a new cluster"
        " begins with: on)",
    )

    recover = family.add(
        "recover-partition",
        "go on with what is left of a partition whose majority is lost for good",
        run="recover:recover_partition",
        more=_RECOVER,
    )
    recover.add_argument("topic", metavar="TOPIC")
    recover.add_argument("partition", metavar="PARTITION", type=natural)
    recover.add_argument(
        "--confirm", metavar="CODE", help="do it: the code that the same command gave without this"
    )

    catalog = family.add(
        "recover-catalog",
        "go on with what a stopped node has, when the catalog's majority is lost for good",
        run="recover_catalog:run",
        more=_CATALOG,
        connects=False,
    )
    catalog.add_argument("--data", metavar="DIR", required=True, help="the node's data folder")
    catalog.add_argument(
        "--config",
        metavar="FILE",
        help="the node's node.toml: with its certificate the others are asked whether they live",
    )
    catalog.add_argument(
        "--other",
        metavar="END",
        action="append",
        default=[],
        help="where the catalog of another survivor ends, as this command says there (7.1042); may"
        " be repeated. Refused if that one has more",
    )
    catalog.add_argument(
        "--follow",
        metavar="CLUSTER",
        help="follow a node that was recovered: what this command said there",
    )
    catalog.add_argument(
        "--confirm", metavar="CODE", help="do it: the code that the same command gave without this"
    )

    upgrade = family.add(
        "upgrade-check",
        "say whether a rolling restart may take the next node down now, and which one",
        run="upgrade:check",
        more=_UPGRADE,
    )
    upgrade.add_argument(
        "--wait",
        type=duration_ms,
        metavar="DURATION",
        help="ask again until it may, for so long at most",
    )

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
