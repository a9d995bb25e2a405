"""`angarium pipeline`"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.cli.grammar.quantities import start
from angarium.cli.grammar.sql import add_spark_options
from angarium.cli.grammar.words import natural, positive

if TYPE_CHECKING:
    from argparse import ArgumentParser

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
    createTopic = true

Needs the extra: pip install 'angarium[spark]'; archives and tables also 'angarium[lake]'."""

_REPLAY = """\
    angarium pipeline replay orders --into orders-again --from -1h --rate 5000
    angarium pipeline replay orders --into orders --lake lake --to other:7400

Every record is written once, however often the command is repeated: the same arguments, or the
same --id, are the same replay, which continues where it stopped. Keys, values, headers and times
are kept."""

_ANALYTICS = """\
    angarium pipeline analytics orders returns --window '1 minute' --from -1h --plot

Per topic and window: records, bytes, rates, distinct keys, the time between records, from producer
to broker, and late records. To run it continuously: [analytics] in a file."""

_LETTERS = """\
    angarium pipeline dead-letters
    angarium pipeline dead-letters --cause 'timed out' --set FILE
    angarium dlq redrive --set FILE"""

_QUALITY = """\
    angarium pipeline quality orders.toml --from -1h

The file is a pipeline with [quality]; `pipeline run` sorts out the records that fail. Exits with
status 1 if an expectation is not met."""


def add(words: Words) -> None:
    """Add the word and those below it."""
    family = words.add_family("pipeline", "run jobs over topics, on Spark", _MORE)
    _add_files(family)
    _add_replay(family)
    _add_mirror(family)
    _add_analytics(family)
    _add_dead_letters(family)
    _add_quality(family)
    family.add("list", "list pipelines that run or ran", run="pipeline:list_all")
    parser = family.add("status", "show one pipeline", run="pipeline:status")
    parser.add_argument("name", metavar="NAME")
    parser = family.add("stop", "tell a pipeline to stop, wherever it runs", run="pipeline:stop")
    parser.add_argument("name", metavar="NAME")


def _add_files(family: Words) -> None:
    parser = family.add(
        "run", "run a pipeline here until it ends or is stopped", run="pipeline:run_here"
    )
    parser.add_argument("file", metavar="FILE")
    parser.add_argument(
        "--once",
        action="store_true",
        help="process what is there now and end, whatever the file says",
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
        "publish some records, archive them, and query them",
        run="pipeline:show",
    )
    parser.add_argument(
        "--data",
        metavar="FOLDER",
        default=".angarium/pipeline",
        help="where the table and the checkpoint go (default: .angarium/pipeline)",
    )
    add_spark_options(parser)


def _add_replay(family: Words) -> None:
    parser = family.add(
        "replay",
        "write a range of a topic, or of its archive, into a topic again, each record once",
        run="pipeline_jobs:replay_range",
        more=_REPLAY,
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("--into", metavar="TOPIC", required=True, help="where the records go")
    parser.add_argument(
        "--to", metavar="HOST:PORT,...", help="the target cluster, if it is another"
    )
    _add_range(parser)
    parser.add_argument(
        "--lake", metavar="FOLDER", help="read from this archive alone; the topic may be gone"
    )
    parser.add_argument("--rate", type=positive, metavar="N", help="at most N records per second")
    parser.add_argument("--id", metavar="NAME", help="the name of this replay")
    parser.add_argument(
        "--keep-partitions",
        action="store_true",
        help="keep partition numbers instead of choosing them by key",
    )
    add_spark_options(parser)


def _add_mirror(family: Words) -> None:
    parser = family.add(
        "mirror",
        "copy topics to another cluster as they grow, each record once",
        run="pipeline_jobs:mirror_topics",
        more="Each copy says in its headers (angarium-mirror-...) which record it is a copy of.",
    )
    parser.add_argument("topics", nargs="+", metavar="TOPIC")
    parser.add_argument(
        "--to", metavar="HOST:PORT,...", required=True, help="servers of the other cluster"
    )
    parser.add_argument(
        "--checkpoint", metavar="FOLDER", required=True, help="where it stores its progress"
    )
    parser.add_argument(
        "--prefix", default="", metavar="TEXT", help="put before the names of topics"
    )
    parser.add_argument("--name", metavar="NAME", help="for `pipeline list` (default: mirror)")
    parser.add_argument("--once", action="store_true", help="copy what is there now, and end")
    add_spark_options(parser)


def _add_analytics(family: Words) -> None:
    parser = family.add(
        "analytics",
        "show figures of topics per time window",
        run="pipeline_jobs:analyse_topics",
        more=_ANALYTICS,
    )
    parser.add_argument("topics", nargs="+", metavar="TOPIC")
    _add_range(parser)
    parser.add_argument(
        "--window", default="1 minute", metavar="TIME", help="'10 seconds' (default: '1 minute')"
    )
    parser.add_argument(
        "--late-after", default="10 seconds", metavar="TIME", help="(default: '10 seconds')"
    )
    parser.add_argument("--to-topic", metavar="TOPIC", help="write them there, as JSON")
    parser.add_argument("--table", metavar="FOLDER", help="add them to this Delta table")
    parser.add_argument(
        "--plot",
        nargs="?",
        const="-",
        metavar="FILE.svg",
        help="draw them on the terminal, or into an SVG file",
    )
    add_spark_options(parser)


def _add_dead_letters(family: Words) -> None:
    parser = family.add(
        "dead-letters",
        "group dead letters by cause, and choose which to send back",
        run="pipeline_jobs:triage",
        more=_LETTERS,
    )
    parser.add_argument(
        "--topic",
        default="angarium.dlq",
        metavar="TOPIC",
        help="the dead-letter topic (default: angarium.dlq)",
    )
    parser.add_argument("--from-topic", metavar="TOPIC", help="only those that came from here")
    parser.add_argument("--group", metavar="GROUP", help="only those that this group gave up")
    parser.add_argument("--cause", metavar="TEXT", help="only those with this in their cause")
    parser.add_argument(
        "--all", action="store_true", help="also those that were sent back or purged"
    )
    parser.add_argument(
        "--samples", type=natural, default=3, metavar="N", help="of each cause (default: 3)"
    )
    parser.add_argument(
        "--set", metavar="FILE", help="write which letters these are, for `dlq redrive --set`"
    )
    add_spark_options(parser)


def _add_quality(family: Words) -> None:
    parser = family.add(
        "quality",
        "report how topics meet what a file expects of them",
        run="pipeline_jobs:check_quality",
        more=_QUALITY,
    )
    parser.add_argument("file", metavar="FILE")
    _add_range(parser)
    add_spark_options(parser)


def _add_range(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--from",
        dest="begin",
        type=start,
        metavar="START",
        help="earliest, an offset, a time, or an age such as -15m (default: earliest)",
    )
    parser.add_argument(
        "--until",
        dest="end",
        type=start,
        metavar="START",
        help="as --from (default: the present end)",
    )
    parser.add_argument("--archive", metavar="FOLDER", help="also read the archive in this folder")
