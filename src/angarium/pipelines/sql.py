"""Questions in SQL over topics: each topic that a text names is a table for it."""

from __future__ import annotations

import re
from difflib import get_close_matches
from itertools import count
from typing import TYPE_CHECKING, Final

from angarium.errors import InvalidArgument, NotFound
from angarium.pipelines.replay.lake import LakeCluster, lake_rows
from angarium.spark.batch_plan import batch_ranges
from angarium.spark.filtering import HAS_FILTERS, PUSHDOWN
from angarium.spark.lake import Lake
from angarium.spark.options import read_options

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

_WORD: Final = re.compile(
    r"""
    '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | --[^\n]* | /\*.*?\*/  # texts and comments: no names
    | `([^`]+)` | ([A-Za-z_][A-Za-z0-9_]*)
    """,
    re.VERBOSE | re.DOTALL,
)
_OUTSIDE_NAMES: Final = re.compile(r"[^A-Za-z0-9_]")


def view_name(topic: str) -> str:
    """Return how a topic is called as a table: `orders.eu` is orders_eu."""
    name = _OUTSIDE_NAMES.sub("_", topic)
    return f"topic_{name}" if name[0].isdigit() else name


def tables_in(text: str, topics: Iterable[str]) -> tuple[str, dict[str, str]]:
    """Return the text with plain names for its tables, and the topic behind each of them.

    A topic is named by its table's name, or by its own in backticks. A word that is no topic is
    left to Spark, which may know it otherwise; one that could be several is refused.
    """
    known = frozenset(topics)
    by_name: dict[str, list[str]] = {}
    for topic in sorted(known):
        by_name.setdefault(view_name(topic).lower(), []).append(topic)
    views: dict[str, str] = {}

    def plain(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        topic = None if name is None else _meant(name, known, by_name)
        if topic is None:
            return match[0]
        if topic not in views:
            views[topic] = _free(view_name(topic), {*map(str.lower, views.values())})
        return match[0] if name.lower() == views[topic].lower() else views[topic]

    return _WORD.sub(plain, text), {view: topic for topic, view in views.items()}


def _meant(name: str, known: Container[str], by_name: Mapping[str, Sequence[str]]) -> str | None:
    if name in known:
        return name
    could_be = by_name.get(name.lower(), ())
    if len(could_be) > 1:
        raise InvalidArgument(
            f"{name} could be {' or '.join(could_be)}: write the one you mean in backticks"
        )
    return could_be[0] if could_be else None


def _free(name: str, taken: Container[str]) -> str:
    """Return a name that no other table of the text has; Spark takes case for nothing."""
    numbered = (f"{name}_{number}" for number in count(2))
    return name if name.lower() not in taken else next(n for n in numbered if n not in taken)


def answer(
    spark: SparkSession, text: str, *, topics: Iterable[str], options: Mapping[str, str]
) -> DataFrame:
    """Return what a query says; `options` are those of the source, for every topic.

    With an archive, topics that are only there are tables, too. `NotFound` names a table that is
    neither a topic nor known to Spark.
    """
    there = frozenset(topics)
    topics = there | _archived(options.get("archive"))
    plain, tables = tables_in(text, topics)
    given = {**options, "includeHeaders": "true"}
    if HAS_FILTERS and spark.conf.get(PUSHDOWN, "false") == "true":
        given["pushFilters"] = "true"  # "the last hour" reads no more than that
    for name, topic in tables.items():
        if topic in there:
            rows = spark.read.format("angarium").options(**given).load(topic)
        else:
            rows = _only_archived(spark, topic, options["archive"])
        rows.createOrReplaceTempView(name)
    try:
        return spark.sql(plain)
    except Exception as error:
        if (missing := _missing_table(error)) is None:
            raise
        near = get_close_matches(missing, {view_name(topic): topic for topic in topics}, n=1)
        hint = f"; did you mean {near[0]}?" if near else "; angarium topic list has them"
        raise NotFound(f"there is no topic or table {missing}{hint}") from None


def _archived(path: str | None) -> frozenset[str]:
    """Return the topics of an archive."""
    if path is None:
        return frozenset()
    return frozenset(row["partition.topic"] for row in Lake(path).listed())


def _only_archived(spark: SparkSession, topic: str, path: str) -> DataFrame:
    """Return all that an archive has of a topic that is gone, in the columns of one that is not."""
    lake = LakeCluster(path, topic)
    ranges = batch_ranges(read_options({"subscribe": topic}, is_stream=False), lake)
    return lake_rows(spark, lake, ranges).drop("producer_timestamp")


def _missing_table(error: Exception) -> str | None:
    """Return the table that Spark looked for in vain; None if it complains of something else."""
    told: Mapping[str, str] = getattr(error, "getMessageParameters", dict)() or {}
    if not str(error).startswith("[TABLE_OR_VIEW_NOT_FOUND]") or "relationName" not in told:
        return None
    return told["relationName"].replace("`", "")
