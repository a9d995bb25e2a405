"""`angarium token create | list | show | rotate | delete`"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.cli.grammar.grant import RESOURCES
from angarium.cli.grammar.quantities import duration_ms

if TYPE_CHECKING:
    import argparse

    from angarium.cli.grammar.words import Words

_CREATE = f"""\
The token is printed once, and kept nowhere: what the cluster keeps can check it, not make it.

    angarium token create ci --expires 30d --only topic.publish@topic:builds

{RESOURCES}"""


def add(words: Words) -> None:
    """Add the words."""
    family = words.add_family("token", "create tokens, which programs log in with")

    create = family.add(
        "create", "create a token, and print it once", run="token:create", more=_CREATE
    )
    create.add_argument("name", metavar="NAME")
    _add_owner(create)
    create.add_argument(
        "--expires", type=duration_ms, metavar="DURATION", help="30d; default: never"
    )
    create.add_argument(
        "--only",
        action="append",
        metavar="ACTION,...@RESOURCE",
        help="of what the owner may do, only this; may be repeated",
    )

    listing = family.add("list", "list tokens", run="token:list_all")
    listing.add_argument("--owner", metavar="USER", help="only of this user")

    show = family.add("show", "show one token, and what it may do", run="token:show")
    show.add_argument("name", metavar="NAME")
    _add_owner(show)

    rotate = family.add(
        "rotate", "give a token another secret; the old one ends", run="token:rotate"
    )
    rotate.add_argument("name", metavar="NAME")
    _add_owner(rotate)
    rotate.add_argument("--expires", type=duration_ms, metavar="DURATION", help="from now on")

    delete = family.add("delete", "revoke a token", run="token:delete")
    delete.add_argument("name", metavar="NAME")
    _add_owner(delete)


def _add_owner(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--owner", metavar="USER", help="whose it is (default: oneself)")
