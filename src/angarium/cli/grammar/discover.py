"""`angarium discover`"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

_MORE = """\
    angarium discover dns:_wire._tcp.angarium.example.org
    angarium discover serf:127.0.0.1:7373
    angarium discover --config node.toml

Asks as a node with these settings would ([discovery] of the file and the environment), and
greets whoever is at the addresses that it finds. Exits with 5 if it finds none."""


def add(words: Words) -> None:
    """Add the word."""
    parser = words.add(
        "discover",
        "show where nodes are found, and who answers there",
        run="discover:run",
        more=_MORE,
        connects=False,
    )
    parser.add_argument(
        "discover",
        nargs="?",
        metavar="METHOD[:WHERE]",
        help="dns:NAME, serf[:HOST:PORT] or kubernetes:SERVICE (default: as the settings say)",
    )
    parser.add_argument("--config", metavar="FILE", help="a node.toml")
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="how to print (default: table)"
    )
