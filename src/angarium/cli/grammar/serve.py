"""`angarium serve`"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from angarium.cli.grammar.words import natural, port, port_or_off, positive

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

_MORE = """\
A flag overrides the environment (ANGARIUM_NODE_DATA, ANGARIUM_LISTEN_WIRE_PORT, ...), which
overrides the file; docs/reference/node-toml.md has every setting. A cluster is formed once,
by one node with --form; every other node joins with --join. SIGTERM or Ctrl-C stops the node
gracefully, SIGUSR2 switches debug logging on and off."""


def add(words: Words) -> None:
    """Add the word."""
    parser = words.add(
        "serve", "run one node, or one per core", run="serve:run", more=_MORE, connects=False
    )
    parser.add_argument("--config", metavar="FILE", help="a node.toml")
    parser.add_argument("--data", metavar="DIR", help="the folder for everything the node keeps")
    entry = parser.add_mutually_exclusive_group()
    entry.add_argument(
        "--form", action="store_true", default=None, help="form a new cluster with this node"
    )
    entry.add_argument("--join", metavar="HOST:PORT,...", help="join the cluster of these nodes")
    parser.add_argument(
        "--join-token-file",
        metavar="FILE",
        help="the join token of a new node, where the cluster asks for one"
        " (default: ANGARIUM_JOIN_TOKEN)",
    )
    parser.add_argument(
        "--discover",
        metavar="METHOD[:WHERE]",
        help="who else knows where nodes are: dns:NAME, serf[:HOST:PORT], kubernetes:SERVICE",
    )
    parser.add_argument(
        "--processes",
        type=positive,
        metavar="N",
        help="nodes to run on this machine, a core each; their ports are 10 apart (default: 1)",
    )
    parser.add_argument(
        "--host",
        metavar="LABEL",
        help="the machine's label; replicas of a partition never share one"
        " (default with several processes: the machine's name)",
    )
    parser.add_argument("--listen", metavar="HOST", help="the interface for all doors")
    parser.add_argument("--advertise", metavar="HOST", help="the host that others dial")
    parser.add_argument("--wire-port", type=port, metavar="PORT", help="for nodes and clients")
    parser.add_argument("--grpc-port", type=port_or_off, metavar="PORT", help='for gRPC, or "off"')
    parser.add_argument("--http-port", type=port_or_off, metavar="PORT", help='for HTTP, or "off"')
    parser.add_argument(
        "--insecure",
        action="store_true",
        default=None,
        help="listen beyond this machine although there is no authentication, or no TLS",
    )
    parser.add_argument(
        "--authentication",
        choices=("off", "required"),
        help="whether everybody has to prove who it is (default: off)",
    )
    parser.add_argument("--log-level", metavar="LEVEL", help="DEBUG, INFO, WARNING or ERROR")
    parser.add_argument("--log-format", metavar="FORMAT", help="auto, human or json")
    parser.add_argument(
        "--check",
        action="store_true",
        help="print the settings, or what is wrong with them, and exit",
    )
    # For `angarium up` and --processes: the node ends when the process with this id does.
    parser.add_argument("--parent", type=natural, help=argparse.SUPPRESS)
