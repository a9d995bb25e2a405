"""`angarium topic create | list | describe | alter | delete`"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.cli.grammar.quantities import duration_ms, size_bytes
from angarium.cli.grammar.words import positive

if TYPE_CHECKING:
    import argparse

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
        "--replication",
        type=positive,
        metavar="N",
        help="copies of each partition (default: 3, or as many as there are hosts)",
    )
    _add_settings(create)
    create.add_argument(
        "--if-not-exists",
        action="store_true",
        help="be content with one of that name, even in another form",
    )

    family.add("list", "list all topics", run="topic:list_all")

    describe = family.add("describe", "show one topic with its partitions", run="topic:describe")
    describe.add_argument("name", metavar="TOPIC")

    alter = family.add("alter", "change a topic's settings", run="topic:alter")
    alter.add_argument("name", metavar="TOPIC")
    alter.add_argument("--partitions", type=positive, metavar="N", help="more than now")
    _add_settings(alter)

    delete = family.add("delete", "delete topics with everything in them", run="topic:delete")
    delete.add_argument("names", metavar="TOPIC", nargs="+")
    delete.add_argument("--yes", action="store_true", help="do not ask")


def _add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mode", choices=MODES, help="when a publish is answered, by default")
    parser.add_argument(
        "--retention",
        type=duration_ms,
        metavar="AGE",
        help='drop records older than this, e.g. 7d; "none" keeps them',
    )
    parser.add_argument(
        "--retention-bytes",
        type=size_bytes,
        metavar="SIZE",
        help='drop the oldest records of a partition beyond this, e.g. 10GiB; "none" keeps them',
    )
    parser.add_argument(
        "--retention-groups",
        choices=("yes", "no"),
        help="drop what every group has settled (default: no)",
    )
    parser.add_argument(
        "--expiry",
        type=duration_ms,
        metavar="AGE",
        help='deliver no record later than this after it was stored, e.g. 1h; "none": no limit',
    )
    parser.add_argument(
        "--cleanup",
        choices=("delete", "compact"),
        help="compact: keep the latest record of each key (default: delete)",
    )
    parser.add_argument(
        "--tombstone",
        type=duration_ms,
        metavar="AGE",
        help="compact: keep a null value so long for readers to see (default: 1d)",
    )
    parser.add_argument(
        "--dirty-percent",
        type=positive,
        metavar="N",
        help="compact: begin when so much of a partition is new (default: 50)",
    )
    parser.add_argument(
        "--batch-bytes-max", type=size_bytes, metavar="SIZE", help="refuse larger batches"
    )
