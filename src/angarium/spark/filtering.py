"""The batch reader that hears a query's conditions, where Spark tells them (PySpark 4.1 and newer).

Spark refuses every read of a source that could hear conditions unless the session is set to tell
them. So this reader is only handed out with the option `pushFilters`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyspark
from pyspark.sql.datasource import DataSourceReader

from angarium.errors import InvalidArgument
from angarium.spark.batch_plan import batch_ranges
from angarium.spark.pruning import Condition, pruned
from angarium.spark.source import AngariumReader, cluster_of, planned

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql.datasource import Filter, InputPartition
    from pyspark.sql.types import StructType

    from angarium.spark.options import ReadOptions

PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
"""The setting without which Spark tells a source nothing."""

HAS_FILTERS: Final = hasattr(DataSourceReader, "pushFilters")

_RELATIONS: Final = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "In": "in",
}


class FilteringReader(AngariumReader):
    """Reads a fixed range of offsets, as little of it as the conditions allow."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        if not HAS_FILTERS:
            raise InvalidArgument(
                f"option pushFilters needs PySpark 4.1 or newer; this is {pyspark.__version__}"
            )
        super().__init__(options, schema)
        self._conditions: list[Condition] = []

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take note of conditions; all of them stay with Spark, which tests each row."""
        self._conditions = [
            Condition(column, relation, getattr(one, "value", None))
            for one in filters
            for column, relation in [(_column(one), _RELATIONS.get(type(one).__name__))]
            if column is not None and relation is not None
        ]
        return filters

    def partitions(self) -> list[InputPartition]:
        """Fix what is read, and part it into tasks."""
        cluster = cluster_of(self._options)
        ranges = batch_ranges(self._options, cluster)
        return planned(self._options, cluster, pruned(ranges, self._conditions, cluster))


def _column(one: Filter) -> str | None:
    """Return the column that a condition is about; None for one about something inside it."""
    path: tuple[str, ...] = getattr(one, "attribute", ())
    return path[0] if len(path) == 1 else None
