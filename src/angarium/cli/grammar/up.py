"""`angarium up`"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.cli.grammar.words import port, positive

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

_MORE = """\
The first node forms a cluster and the others join it; the data stay in the folder, so the next
`up` finds everything again. Node i listens on PORT_BASE + 10 i (wire) and the two ports after it
(gRPC and HTTP).
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
        "--data", default="./.angarium", metavar="DIR", help="where they keep everything"
    )
    parser.add_argument(
        "--port-base",
        type=port,
        default=7400,
        metavar="PORT",
        help="the first port (default: 7400)",
    )
    parser.add_argument(
        "--compat",
        metavar="PROFILE,...",
        help="also listen for clients of earlier brokers: hermes, bale, geo",
    )
    parser.add_argument(
        "--compat-ports",
        choices=("original", "own"),
        help="their brokers' own ports (the default for one profile), or free ones behind each"
        " node's (for several)",
    )
    parser.add_argument(
        "--pipeline",
        action="store_true",
        help="where Spark is installed: let a topic arrive in a lake table, and ask it something",
    )
    parser.add_argument(
        "--restart", action="store_true", help="tell the `up` that runs to restart dead nodes"
    )
    parser.add_argument("--stop", action="store_true", help="tell the `up` that runs to stop")
