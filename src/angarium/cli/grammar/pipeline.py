"""`angarium pipeline`"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.cli.grammar.sql import add_spark_options

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

_MORE = """\
A pipeline is a small file (docs/guides/pipelines.md):

    name = "loud-orders"
    checkpoint = "checkpoints/loud-orders"
    trigger = "5 seconds"
    sql = "SELECT key, upper(string(value)) AS value FROM orders"

    [source.orders]
    subscribe = "orders"

    [sink]
    topic = "loud-orders"

Needs the extra: pip install 'angarium[spark]'; an archive also 'angarium[lake]'."""


def add(words: Words) -> None:
    """Add the word and those below it."""
    family = words.add_family("pipeline", "run jobs over topics, on Spark", _MORE)
    parser = family.add(
        "run", "run a pipeline here until it ends or is told to", run="pipeline:run_here"
    )
    parser.add_argument("file", metavar="FILE")
    parser.add_argument(
        "--once", action="store_true", help="do what is there now and end, whatever the file says"
    )
    add_spark_options(parser)
    parser = family.add(
        "validate",
        "say what is wrong with a pipeline's file, without starting anything",
        run="pipeline:validate",
        connects=False,
    )
    parser.add_argument("file", metavar="FILE")
    parser = family.add(
        "demo",
        "publish some records, archive them, and ask a question about them",
        run="pipeline:show",
    )
    parser.add_argument(
        "--data",
        metavar="FOLDER",
        default=".angarium/pipeline",
        help="where the table and the checkpoint go (default: .angarium/pipeline)",
    )
    add_spark_options(parser)
    family.add("list", "list the pipelines that say they run, or ran", run="pipeline:list_all")
    parser = family.add("status", "show one pipeline", run="pipeline:status")
    parser.add_argument("name", metavar="NAME")
    parser = family.add("stop", "tell a pipeline to stop, wherever it runs", run="pipeline:stop")
    parser.add_argument("name", metavar="NAME")
