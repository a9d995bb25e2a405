"""`angarium sql`"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from angarium.cli.grammar.words import positive

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

_MORE = """\
Every topic is a table with the columns key, value, topic, partition, offset, timestamp and headers:

    angarium sql "SELECT string(key), count(*) FROM orders GROUP BY 1"
    angarium sql "SELECT * FROM orders WHERE timestamp > now() - INTERVAL 1 HOUR" --parquet out

Write a name with dots or dashes in backticks, or with _ instead: `orders.eu` or orders_eu.
Needs the extra: pip install 'angarium[spark]'. Spark takes some seconds to start."""


def add(words: Words) -> None:
    """Add the word."""
    parser = words.add("sql", "query topics in SQL, on Spark", run="sql:run", more=_MORE)
    parser.add_argument("query", metavar="QUERY")
    parser.add_argument("--archive", metavar="FOLDER", help="also read the archive in this folder")
    parser.add_argument("--parquet", metavar="FOLDER", help="write the answer there, in Parquet")
    parser.add_argument(
        "--max", type=positive, default=1000, metavar="N", help="rows printed (default: 1000)"
    )
    add_spark_options(parser)


def add_spark_options(parser: argparse.ArgumentParser) -> None:
    """Add what every command that starts Spark takes."""
    parser.add_argument(
        "--master",
        metavar="MASTER",
        default="local[*]",
        help="where Spark runs: local[*], spark://HOST:PORT, k8s://..., sc://HOST (default: here)",
    )
    parser.add_argument(
        "--conf",
        type=_setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark's, as in spark-submit; may be given again",
    )
    parser.add_argument("--verbose", action="store_true", help="show what Spark says about itself")


def _setting(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not like spark.executor.memory=2g")
    return name.strip(), value
