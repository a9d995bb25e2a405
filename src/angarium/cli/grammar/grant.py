"""`angarium grant create | list | show | delete`"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.cli.grammar.words import positive

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

RESOURCES = """\
A resource is a kind and a name: topic:orders is that topic, topic:team-a* is team-a and everything
below it (team-a.orders, not team-ab), topic:* is every topic but the cluster's own (angarium.*),
which have to be named: topic:angarium*. There are topic, group, transaction, producer, user, role,
and cluster, which has no name."""

_CREATE = f"""\
    angarium grant create user:alice topic.publish,topic.read topic:team-a*
    angarium grant create role:audit topic.read topic:angarium.dlq
    angarium grant create user:bob '*' topic:secret --deny

{RESOURCES} docs/reference/permissions.md has every action; * is all of a kind."""


def add(words: Words) -> None:
    """Add the words."""
    family = words.add_family("grant", "say who may do what")

    create = family.add("create", "let somebody do something", run="grant:create", more=_CREATE)
    create.add_argument("subject", metavar="user:NAME|role:NAME")
    create.add_argument("actions", metavar="ACTION,...")
    create.add_argument("resource", metavar="RESOURCE")
    create.add_argument("--deny", action="store_true", help="forbid it: wins over every permission")

    listing = family.add("list", "list grants", run="grant:list_all")
    listing.add_argument("subject", metavar="user:NAME|role:NAME", nargs="?", help="only of this")

    show = family.add("show", "show one grant", run="grant:show")
    show.add_argument("id", type=positive, metavar="ID", help="as `grant list` shows it")

    delete = family.add("delete", "take a grant back", run="grant:delete")
    delete.add_argument("id", type=positive, metavar="ID", help="as `grant list` shows it")
