"""`angarium whoami`, `angarium can`"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.cli.grammar.grant import RESOURCES

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

_CAN = f"""\
Exits with 0 if it is allowed and with 10 if not.

    angarium can alice topic.publish topic:team-a.orders

{RESOURCES} Without a kind, it is that of the action: topic.publish orders."""


def add(words: Words) -> None:
    """Add the words."""
    words.add("whoami", "show who you are to the cluster", run="whoami:whoami")
    can = words.add(
        "can", "tell whether a user may do something, and why", run="whoami:can", more=_CAN
    )
    can.add_argument("user", metavar="USER")
    can.add_argument("action", metavar="ACTION")
    can.add_argument(
        "resource", metavar="RESOURCE", nargs="?", default="", help="none: the cluster"
    )
