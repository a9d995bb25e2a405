"""`angarium topology`"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

_MORE = """\
Every node is asked: how long the way to the others takes, and how far its replicas have come. `lag`
is in records, behind whoever has most of a partition; `reads` are copies without a vote.

    angarium topology
    angarium topology --format json"""


def add(words: Words) -> None:
    """Add the words."""
    words.add(
        "topology",
        "draw regions, nodes, leaders, readers, lag and round trips",
        run="topology:show",
        more=_MORE,
    )
