"""`angarium dlq list | show | redrive | purge`"""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from angarium.cli.grammar.words import positive

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

_LETTER_ID = re.compile(r"(?:([0-9]{1,9})@)?([0-9]{1,18})", re.ASCII)


def add(words: Words) -> None:
    """Add the words."""
    family = words.add_family("dlq", "list, show, redrive and purge dead letters")

    listed = family.add(
        "list", "list dead letters that were neither sent back nor purged", run="dlq:list_all"
    )
    _add_filter(listed)
    listed.add_argument(
        "--max", type=positive, default=100, metavar="N", help="up to this many (default: 100)"
    )

    show = family.add("show", "show one dead letter completely", run="dlq:show")
    show.add_argument("letter", type=letter_id, metavar="LETTER", help=_LETTER)
    _add_topic(show)

    redrive = family.add(
        "redrive",
        "send dead letters back to where they came from, each once",
        run="dlq:redrive",
        more="A letter that was sent back or purged is not listed, and is never sent back again.",
    )
    _add_choice(redrive)

    purge = family.add(
        "purge", "remove dead letters from the list, without sending them back", run="dlq:purge"
    )
    _add_choice(purge)
    purge.add_argument("--yes", action="store_true", help="do not ask")


def letter_id(text: str) -> tuple[int, int]:
    """Read where a letter lies: PARTITION@OFFSET, or only OFFSET in partition 0."""
    found = _LETTER_ID.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a letter; `dlq list` shows them: 0@17")
    return int(found[1] or 0), int(found[2])


_LETTER = "as `dlq list` shows it: PARTITION@OFFSET"


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("letters", type=letter_id, nargs="*", metavar="LETTER", help=_LETTER)
    parser.add_argument(
        "--set", metavar="FILE", help='also those in a file, one per line; "-" is standard input'
    )
    _add_filter(parser)
    parser.add_argument("--all", action="store_true", help="all of them")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")


def _add_filter(parser: argparse.ArgumentParser) -> None:
    _add_topic(parser)
    parser.add_argument(
        "--from-topic", metavar="PATTERN", help="only those that came from here, e.g. orders.*"
    )
    parser.add_argument("--group", metavar="PATTERN", help="only those that this group gave up")
    parser.add_argument("--reason", metavar="TEXT", help="only those with this in their reason")


def _add_topic(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--topic",
        default="angarium.dlq",
        metavar="TOPIC",
        help="the dead-letter topic (default: angarium.dlq)",
    )
