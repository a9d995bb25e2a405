"""`angarium gateway`"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.cli.grammar.words import port

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

_MORE = """\
REST, server-sent events, WebSockets, GraphQL and metrics, as a node serves them on its HTTP port,
in a process of its own in front of the cluster that --servers or the profile names.

    angarium gateway --servers node-1:7400,node-2:7400 --port 8080"""


def add(words: Words) -> None:
    """Add the word."""
    parser = words.add("gateway", "serve HTTP in front of a cluster", run="gateway:run", more=_MORE)
    parser.add_argument("--listen", default="127.0.0.1", metavar="HOST", help="the interface")
    parser.add_argument(
        "--port", type=port, default=7402, metavar="PORT", help="for HTTP (default: 7402)"
    )
    parser.add_argument(
        "--origins",
        "--origin",
        dest="origins",
        action="append",
        default=[],
        metavar="URL",
        help="an origin of web pages whose scripts may use it; may be repeated",
    )
    parser.add_argument(
        "--hosts",
        "--allow-host",
        dest="hosts",
        action="append",
        default=[],
        metavar="NAME",
        help="a host name that requests may use, besides localhost, IP addresses and the one it"
        " listens on; may be repeated",
    )
    for flag, sentence in (
        ("--tls-certificate", "what it shows, in PEM; with it the gateway speaks TLS"),
        ("--tls-private-key", "the key of that certificate"),
        ("--tls-authorities", "ask clients for a certificate of one of these authorities"),
    ):
        parser.add_argument(flag, metavar="FILE", help=sentence)
    parser.add_argument(
        "--hsts-s",
        type=int,
        default=0,
        metavar="SECONDS",
        help="with TLS: for how long browsers use TLS alone for this host name, on all its ports",
    )
    parser.add_argument(
        "--insecure",
        action="store_true",
        help="listen beyond this machine without TLS, or for a cluster that asks nobody who it is",
    )
