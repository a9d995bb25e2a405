"""`angarium topic create | list | describe | alter | delete`"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.cli.grammar.settings import add_topic_settings
from angarium.cli.grammar.words import positive

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

MODES = ("consistent", "eventual", "performance")


def add(words: Words) -> None:
    """Add the words."""
    family = words.add_family("topic", "create, look at, change and delete topics")

    create = family.add("create", "create a topic", run="topic:create")
    create.add_argument("name", metavar="TOPIC")
    create.add_argument(
        "--partitions", type=positive, default=3, metavar="N", help="how many (default: 3)"
    )
    create.add_argument(
        "--if-not-exists",
        action="store_true",
        help="do nothing if a topic of that name exists, whatever its settings",
    )
    create.add_later(add_topic_settings)

    family.add("list", "list all topics", run="topic:list_all")

    describe = family.add("describe", "show one topic with its partitions", run="topic:describe")
    describe.add_argument("name", metavar="TOPIC")

    alter = family.add("alter", "change a topic's settings", run="topic:alter")
    alter.add_argument("name", metavar="TOPIC")
    alter.add_argument("--partitions", type=positive, metavar="N", help="more than now")
    alter.add_later(add_topic_settings)

    delete = family.add("delete", "delete topics with everything in them", run="topic:delete")
    delete.add_argument("names", metavar="TOPIC", nargs="+")
    delete.add_argument("--yes", action="store_true", help="do not ask")
