"""`angarium role create | list | show | delete`"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words


def add(words: Words) -> None:
    """Add the words."""
    family = words.add_family("role", "create roles, and see what each may do")

    create = family.add("create", "create a role that may do nothing yet", run="role:create")
    create.add_argument("name", metavar="ROLE")
    create.add_argument("--about", default="", metavar="TEXT", help="what it is for")

    family.add("list", "list roles, the built-in ones first", run="role:list_all")

    show = family.add("show", "show one role and its grants", run="role:show")
    show.add_argument("name", metavar="ROLE")

    delete = family.add("delete", "delete a role with its grants", run="role:delete")
    delete.add_argument("name", metavar="ROLE")
