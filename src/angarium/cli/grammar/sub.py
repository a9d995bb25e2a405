"""`angarium sub`"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from angarium.cli.grammar.group import KINDS
from angarium.cli.grammar.quantities import start
from angarium.cli.grammar.words import natural, positive

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

RECORD_FORMATS = ("table", "json", "raw")

_MORE = """\
json prints an object per line; raw prints the values alone, byte for byte, a line each.

    angarium sub demo                                new records only
    angarium sub demo --from earliest --no-follow    stored records
    angarium sub demo --from -15m --max 100          a hundred from the last quarter of an hour
    angarium sub jobs --group workers                share them with the group's other consumers

With --group a record is acknowledged once it is printed. With --ack manual each record waits for a
line on standard input: ack, nack [REASON], or release."""


def add(words: Words) -> None:
    """Add the word."""
    parser = words.add("sub", "read topics as they grow", run="sub:run", more=_MORE)
    parser.add_argument("topics", metavar="TOPIC", nargs="+")
    parser.add_argument(
        "--from",
        dest="start",
        type=start,
        metavar="START",
        help="earliest, latest, live, an offset, a time, an age such as -15m"
        " (default: live, and earliest with --no-follow)",
    )
    parser.add_argument(
        "--follow",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="wait for more records, or stop at the present end of the topic (default: wait)",
    )
    parser.add_argument("--partition", type=natural, metavar="N", help="only this one")
    parser.add_argument("--max", type=positive, metavar="N", help="stop after N records")
    parser.add_argument(
        "--group",
        metavar="NAME",
        help="join this consumer group; it is created on first use, and --from is then where"
        " a new group begins (default: earliest)",
    )
    parser.add_argument(
        "--kind",
        choices=KINDS,
        help="with --group: the kind of the group (default: its own; queue for a new one)",
    )
    parser.add_argument(
        "--ack",
        choices=("auto", "manual"),
        default="auto",
        help="with --group: who acknowledges (default: auto)",
    )
    allow_raw(parser)


def allow_raw(parser: argparse.ArgumentParser) -> None:
    """Let `--format` take raw, too."""
    for action in parser._actions:
        if action.dest == "format":
            action.choices = RECORD_FORMATS
