"""`angarium log inspect`"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.cli.grammar.words import positive

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

_MORE = """\
A file of a node's data folder: a segment (*.seg), a footer (*.foot), or a part of the write-ahead
log (*.log); or a folder, to sum up every such file in it. Nothing is changed, and a running node is
not disturbed. Every checksum is verified; damage makes the exit status 8."""


def add(words: Words) -> None:
    """Add the words."""
    family = words.add_family("log", "look into a node's files")
    inspect = family.add(
        "inspect", "show what is in a segment or write-ahead log", run="log_inspect:run", more=_MORE
    )
    inspect.add_argument("path", metavar="PATH")
    inspect.add_argument(
        "--max", type=positive, default=100, metavar="N", help="list at most N items (default: 100)"
    )
    inspect.add_argument("--records", action="store_true", help="of a segment, list the records")
