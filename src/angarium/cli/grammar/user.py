"""`angarium user hash`"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

_MORE = """\
The password is asked for twice on a terminal, and read from standard input (one line) without one.
The line that is printed goes into the section [users] of every node's node.toml. The password
itself is kept nowhere."""


def add(words: Words) -> None:
    """Add the words."""
    family = words.add_family("user", "create accounts for clients that log in")
    parser = family.add(
        "hash",
        "print a user's line for node.toml",
        run="user:print_hash",
        more=_MORE,
        connects=False,
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="without it, the hash alone")
