"""`angarium tls init | renew | show`"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.cli.grammar.words import positive

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Parser, Words

_INIT = """\
Makes what is not there yet: an authority (ca.crt, ca.key), a certificate for each --node
(nodes/NAME.crt and .key), for each --client (clients/NAME.crt and .key) and for each --gateway
(gateways/NAME.crt and .key). Run it again to add some. Keep ca.key away from the nodes: whoever has
it can make nodes and clients.

    angarium tls init /etc/angarium/tls --cluster production \\
        --node node-1=node-1.example.org,10.0.0.1 --node node-2=node-2.example.org --client alice

It needs the library cryptography: pip install 'angarium[tls]'."""

_RENEW = """\
Makes the certificates of a folder anew, with the same names and new keys, and puts each in its
place in one step. Running nodes take them within seconds, and no connection is dropped.

With --authority only a new authority is made, and ca.crt holds it and the one before. Bring that
file to every node and client, then renew the certificates and bring them, too, and at last take the
old authority out of ca.crt."""

_SHOW = """\
Of each certificate: the days that are left, and its names. A folder stands for all *.crt in it and
in the folders below. The exit status is 1 if one has expired."""


def add(words: Words) -> None:
    """Add the words."""
    family = words.add_family("tls", "make and look at certificates")
    init = family.add(
        "init",
        "make an authority, and certificates for nodes and clients",
        run="tls:init",
        more=_INIT,
        connects=False,
    )
    _add_folder(init)
    init.add_argument(
        "--cluster",
        default="angarium",
        metavar="NAME",
        help="stands in every certificate; nodes of another cluster are strangers"
        " (default: angarium)",
    )
    init.add_argument(
        "--node",
        dest="nodes",
        action="append",
        default=[],
        metavar="NAME=HOST,...",
        help="a node, and the names and addresses it is dialled by; may be repeated (default: one"
        " for this machine)",
    )
    init.add_argument(
        "--client",
        dest="clients",
        action="append",
        default=[],
        metavar="NAME",
        help="a client; may be repeated",
    )
    init.add_argument(
        "--gateway",
        dest="gateways",
        action="append",
        default=[],
        metavar="NAME=HOST,...",
        help="a gateway, and the names and addresses it is dialled by; may be repeated",
    )
    _add_days(init)
    init.add_argument(
        "--authority-days",
        type=positive,
        default=3650,
        metavar="N",
        help="how long the authority lasts (default: 3650)",
    )
    renew = family.add(
        "renew", "make certificates anew", run="tls:renew", more=_RENEW, connects=False
    )
    _add_folder(renew)
    renew.add_argument(
        "names", nargs="*", metavar="NAME", help="of whom (default: all of the folder)"
    )
    renew.add_argument("--authority", action="store_true", help="make a new authority instead")
    _add_days(renew)
    show = family.add(
        "show",
        "show the days left and the names of certificates",
        run="tls:show",
        more=_SHOW,
        connects=False,
    )
    show.add_argument(
        "paths", nargs="*", default=["tls"], metavar="PATH", help="files or folders (default: tls)"
    )
    show.add_argument(
        "--format", choices=("table", "json"), default="table", help="how to print (default: table)"
    )


def _add_folder(parser: Parser) -> None:
    parser.add_argument(
        "folder", nargs="?", default="tls", metavar="FOLDER", help="where they are (default: tls)"
    )


def _add_days(parser: Parser) -> None:
    parser.add_argument(
        "--days",
        type=positive,
        default=365,
        metavar="N",
        help="how long certificates last (default: 365)",
    )
