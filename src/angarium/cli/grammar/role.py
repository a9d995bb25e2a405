"""`angarium role create | list | show | delete`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

_CREATE: Final = """\
    angarium role create reader --about "reads what team-a publishes"

A new role is held by no user, also if there was one of that name before. It counts at once for each
JWT whose claims name it."""

_DELETE: Final = """\
    angarium role delete reader --force

A role that users hold is not deleted; the refusal names some of them. --force takes it from them in
the same step, so that a later role of that name begins without holders. That does not reach JWTs:
their claims name roles, so a role that is created again counts for every JWT that claims its name.
Before you create a role again, see to it that the issuer does not put its old name into tokens."""


def add(words: Words) -> None:
    """Add the words."""
    family = words.add_family("role", "create roles, and see what each may do")

    create = family.add(
        "create", "create a role that may do nothing yet", run="role:create", more=_CREATE
    )
    create.add_argument("name", metavar="ROLE")
    create.add_argument("--about", default="", metavar="TEXT", help="what it is for")

    family.add("list", "list roles, the built-in ones first", run="role:list_all")

    show = family.add("show", "show one role and its grants", run="role:show")
    show.add_argument("name", metavar="ROLE")

    delete = family.add("delete", "delete a role with its grants", run="role:delete", more=_DELETE)
    delete.add_argument("name", metavar="ROLE")
    delete.add_argument(
        "--force", action="store_true", help="also take it from the users that hold it"
    )
