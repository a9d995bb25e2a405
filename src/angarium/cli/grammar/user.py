"""`angarium user create | list | show | alter | rotate | delete | recover | hash`"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

_HASH = """\
The password is asked for twice on a terminal, and read from standard input (one line) without one.
The line that is printed goes into the section [users] of every node's node.toml. The password
itself is kept nowhere."""

_ASKED = """\
The password is asked for twice on a terminal, and read from standard input (one line) without one;
it never stands on the command line. It has at least 8 characters."""

_RECOVER = """\
For when no administrator can log in any more. Stop one node, run this on its data folder, and
start the node again: it makes the user an administrator with the new password, and says so in its
log. Whoever can write into the data folder of a node can do this; nobody else can."""


def add(words: Words) -> None:
    """Add the words."""
    family = words.add_family("user", "create and change accounts")

    create = family.add("create", "create a user", run="user:create", more=_ASKED)
    create.add_argument("name", metavar="NAME")
    create.add_argument(
        "--role", action="append", default=[], metavar="ROLE", help="may be repeated"
    )
    create.add_argument(
        "--no-password", action="store_true", help="it comes in by tokens or certificates alone"
    )

    family.add("list", "list users", run="user:list_all")

    show = family.add("show", "show one user: roles, grants and tokens", run="user:show")
    show.add_argument("name", metavar="NAME")

    alter = family.add("alter", "give a user other roles, lock or unlock it", run="user:alter")
    alter.add_argument("name", metavar="NAME")
    alter.add_argument(
        "--role", action="append", metavar="ROLE", help="the roles from now on; may be repeated"
    )
    alter.add_argument("--no-roles", action="store_true", help="take all roles away")
    locking = alter.add_mutually_exclusive_group()
    locking.add_argument("--lock", action="store_true", help="end what it has open, let it not in")
    locking.add_argument("--unlock", action="store_true", help="let it in again")

    rotate = family.add("rotate", "set another password", run="user:rotate", more=_ASKED)
    rotate.add_argument("name", metavar="NAME", nargs="?", help="default: oneself")

    delete = family.add("delete", "delete a user with its grants and tokens", run="user:delete")
    delete.add_argument("name", metavar="NAME")
    delete.add_argument("--yes", action="store_true", help="do not ask")

    recover = family.add(
        "recover",
        "make an administrator on the data folder of a stopped node",
        run="user:recover",
        more=_RECOVER,
        connects=False,
    )
    recover.add_argument("name", metavar="NAME", nargs="?", default="admin", help="default: admin")
    recover.add_argument("--data", metavar="DIR", required=True, help="the node's data folder")

    hashing = family.add(
        "hash",
        "print a user's line for node.toml",
        run="user:print_hash",
        more=_HASH,
        connects=False,
    )
    hashing.add_argument("name", metavar="NAME", nargs="?", help="without it, the hash alone")
