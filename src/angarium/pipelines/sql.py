"""Questions in SQL over topics: each topic that a text names is a table for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from angarium.spark.filtering import HAS_FILTERS, PUSHDOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

_WORD: Final = re.compile(r"`([^`]+)`|([A-Za-z_][A-Za-z0-9_]*)")
_OUTSIDE_NAMES: Final = re.compile(r"[^A-Za-z0-9_]")


def view_name(topic: str) -> str:
    """Return how a topic is called as a table: `orders.eu` is orders_eu."""
    return _OUTSIDE_NAMES.sub("_", topic)


def tables_in(text: str, topics: Iterable[str]) -> tuple[str, dict[str, str]]:
    """Return the text with plain names for its tables, and the topic behind each of them.

    A topic is named by its table's name, or by its own in backticks. A word that is no topic is
    left to Spark, which may know it otherwise.
    """
    by_name: dict[str, str] = {}
    for topic in sorted(topics):
        by_name.setdefault(view_name(topic).lower(), topic)
    known = set(topics)
    found: dict[str, str] = {}

    def plain(match: re.Match[str]) -> str:
        quoted, word = match[1], match[2]
        if quoted is not None and quoted in known:
            found[view_name(quoted)] = quoted
            return view_name(quoted)
        name = quoted if quoted is not None else word
        if name.lower() in by_name:
            topic = by_name[name.lower()]
            found[view_name(topic)] = topic
        return match[0]

    return _WORD.sub(plain, text), found


def answer(
    spark: SparkSession, text: str, *, topics: Iterable[str], options: Mapping[str, str]
) -> DataFrame:
    """Return what a query says; `options` are those of the source, for every topic."""
    plain, tables = tables_in(text, topics)
    given = {**options, "includeHeaders": "true"}
    if HAS_FILTERS and spark.conf.get(PUSHDOWN, "false") == "true":
        given["pushFilters"] = "true"  # "the last hour" reads no more than that
    for name, topic in tables.items():
        rows = spark.read.format("angarium").options(**given).load(topic)
        rows.createOrReplaceTempView(name)
    return spark.sql(plain)
