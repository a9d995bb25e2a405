"""`angarium fetch`"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.cli.grammar.sub import allow_raw
from angarium.cli.grammar.words import natural, positive

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words


def add(words: Words) -> None:
    """Add the word."""
    parser = words.add("fetch", "read records by their offset", run="fetch:run")
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("partition", metavar="PARTITION", type=natural)
    parser.add_argument("offset", metavar="OFFSET", type=natural)
    parser.add_argument(
        "--max", type=positive, default=1, metavar="N", help="up to this many (default: 1)"
    )
    allow_raw(parser)
