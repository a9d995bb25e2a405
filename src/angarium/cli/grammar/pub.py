"""`angarium pub`"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from angarium.cli.grammar.quantities import duration_ms
from angarium.cli.grammar.topic import MODES
from angarium.cli.grammar.words import natural, positive

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

_MORE = """\
Values come from the arguments, or from files, or, if there are neither, from standard input, one
record per line:

    angarium pub demo hello 'good morning'
    seq 1 100000 | angarium pub demo --rate 2000
    tail -f log | angarium pub demo -          # "-" is standard input, too
    angarium pub photos --file cat.jpg --whole --key cat
    angarium pub jobs 'send the reminder' --delay 15m"""


def add(words: Words) -> None:
    """Add the word."""
    parser = words.add("pub", "publish records", run="pub:run", more=_MORE)
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument(
        "values",
        metavar="VALUE",
        nargs="*",
        default=[],
        help='one record each; "-": the lines of standard input',
    )
    parser.add_argument(
        "--file", metavar="PATH", action="append", default=[], help='lines of a file; "-" is stdin'
    )
    parser.add_argument(
        "--whole", action="store_true", help="take a file, or standard input, as one record"
    )
    parser.add_argument(
        "--mode",
        choices=MODES,
        help="when the publish is acknowledged (default: as the topic says)",
    )
    key = parser.add_mutually_exclusive_group()
    key.add_argument(
        "--key", help="the key of all records; equal keys go to one partition, in order"
    )
    key.add_argument(
        "--key-separator", metavar="TEXT", help="each line is a key, this text, and a value"
    )
    parser.add_argument(
        "--partition", type=natural, metavar="N", help="publish to this partition, whatever the key"
    )
    parser.add_argument(
        "--header", metavar="NAME=VALUE", action="append", default=[], type=header, dest="headers"
    )
    parser.add_argument(
        "--delay",
        type=duration_ms,
        metavar="TIME",
        help="deliver it to queue and key groups after this time, e.g. 15m",
    )
    parser.add_argument(
        "--expires-in",
        type=duration_ms,
        metavar="TIME",
        help="do not deliver it after this time, e.g. 1h",
    )
    parser.add_argument(
        "--null",
        action="store_true",
        help="one record without a value; in a compacted topic it deletes --key",
    )
    parser.add_argument("--rate", type=positive, metavar="N", help="at most N records per second")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def header(text: str) -> tuple[str, str]:
    """Read a header."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value
