"""`angarium group list | describe | alter | seek | pause | resume | delete`"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.cli.grammar.quantities import start
from angarium.cli.grammar.settings import add_group_settings
from angarium.cli.grammar.words import natural
from angarium.kinds import LENT_KINDS

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

KINDS = tuple(one.name.lower() for one in LENT_KINDS)

_SEEK = """\
What the group's consumers hold at that moment is taken from them, and what it had acknowledged
above the new position is forgotten.

    angarium group seek workers earliest --dry-run      what would move, and from where to where
    angarium group seek workers -15m                    everything of the last quarter of an hour
    angarium group seek workers 4711 --topic orders --partition 2"""


def add(words: Words) -> None:
    """Add the words."""
    family = words.add_family("group", "look at consumer groups, move and change them")

    family.add("list", "list all groups", run="group:list_all")

    describe = family.add(
        "describe", "show one group: members, positions and lag", run="group:describe"
    )
    describe.add_argument("name", metavar="GROUP")

    alter = family.add("alter", "change a group's settings", run="group:alter")
    alter.add_argument("name", metavar="GROUP")
    alter.add_later(add_group_settings)

    seek = family.add("seek", "move a group to another position", run="group:seek", more=_SEEK)
    seek.add_argument("name", metavar="GROUP")
    seek.add_argument(
        "start",
        type=start,
        metavar="START",
        help="earliest, latest, an offset, a time, an age such as -15m",
    )
    seek.add_argument("--topic", metavar="TOPIC", help="only there (default: all its topics)")
    seek.add_argument("--partition", type=natural, metavar="N", help="only this one")
    seek.add_argument("--dry-run", action="store_true", help="only show what would move")

    for word, sentence in (
        ("pause", "stop delivering to a group's consumers"),
        ("resume", "resume a paused group"),
    ):
        parser = family.add(word, sentence, run=f"group:{word}")
        parser.add_argument("name", metavar="GROUP")

    delete = family.add("delete", "delete a group that has no members", run="group:delete")
    delete.add_argument("name", metavar="GROUP")
    delete.add_argument("--topic", metavar="TOPIC", help="only its position in this topic")
    delete.add_argument("--yes", action="store_true", help="do not ask")
