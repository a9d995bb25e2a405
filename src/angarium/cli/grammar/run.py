"""`angarium run`"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

_MORE = """\
MODULE:APP names an `angarium.App`, imported from this folder: in shop/workers.py,

    app = App()

    @app.subscriber("orders", group="workers", concurrency=16)
    async def handle(order: dict) -> None: ...

is run by `angarium run shop.workers:app`. SIGTERM and Ctrl-C drain: what is being worked on is
finished and acknowledged, the rest goes back. A second one does not wait. --servers and --profile
are for an app that names no servers itself."""


def add(words: Words) -> None:
    """Add the word."""
    parser = words.add(
        "run", "run an app: handlers for records of groups", run="run:run", more=_MORE
    )
    parser.add_argument("app", metavar="MODULE:APP")
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="how much is logged, to standard error (default: info)",
    )
