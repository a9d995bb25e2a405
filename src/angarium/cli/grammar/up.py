"""`angarium up`"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.cli.grammar.words import port, positive

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

_MORE = """\
The first node forms a cluster and the others join it; the data stay in the folder, so the next
`up` finds everything again. Node 1 listens on PORT_BASE (wire) and the two ports after it
(gRPC and HTTP), each further node 10 higher.
Ctrl-C stops all nodes. Without a terminal, one line is written for each change."""


def add(words: Words) -> None:
    """Add the word."""
    parser = words.add(
        "up", "run a local cluster and watch it", run="up:run", more=_MORE, connects=False
    )
    parser.add_argument(
        "--nodes", type=positive, default=3, metavar="N", help="how many nodes (default: 3)"
    )
    parser.add_argument(
        "--data",
        default="./.angarium",
        metavar="DIR",
        help="the folder for all data (default: ./.angarium)",
    )
    parser.add_argument(
        "--port-base",
        type=port,
        default=7400,
        metavar="PORT",
        help="the first port (default: 7400)",
    )
    parser.add_argument(
        "--secure",
        action="store_true",
        help="with TLS, authentication and an administrator, whom commands in this folder are by"
        " themselves; once secure, always secure (needs the extra tls)",
    )
    parser.add_argument(
        "--compat",
        metavar="PROFILE,...",
        help="also listen for clients of earlier brokers: hermes, bale, geo",
    )
    parser.add_argument(
        "--compat-ports",
        choices=("original", "own"),
        help="the ports of the original brokers (the default for one profile), or free ports"
        " after each node's own (for several)",
    )
    parser.add_argument(
        "--pipeline",
        action="store_true",
        help="if Spark is installed: archive a topic in a lake table, and query it",
    )
    parser.add_argument(
        "--restart", action="store_true", help="tell the running `up` to restart dead nodes"
    )
    parser.add_argument("--stop", action="store_true", help="tell the running `up` to stop")
