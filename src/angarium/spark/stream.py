"""The streaming reader, in the two shapes that Spark's versions know.

From PySpark 4.2 on Spark says how far a query has come and asks how far to go; before that a source
is only asked for its newest offset, so that limits per trigger cannot be had there.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark.sql.datasource import DataSourceStreamReader

from angarium.errors import InvalidArgument
from angarium.spark.offsets import NOWHERE, stream_offset
from angarium.spark.source import cluster_of, planned, read_partition, row_columns
from angarium.spark.stream_plan import StreamPlan, TriggerLimit

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from angarium.spark.options import ReadOptions

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )

    HAS_LIMITS = True
except ImportError:  # before PySpark 4.2
    HAS_LIMITS = False


class _Reader(DataSourceStreamReader):
    """What both shapes share. Spark pickles it for executors, so it holds no connection."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._columns = row_columns(options, schema)
        self._plan_made: StreamPlan | None = None

    @property
    def _plan(self) -> StreamPlan:
        if self._plan_made is None:
            cluster = cluster_of(self._options)
            self._plan_made = StreamPlan(self._options, cluster, clock=time.monotonic)
        return self._plan_made

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_plan_made": None}

    def initialOffset(self) -> dict[str, Any]:
        """Return where the query begins."""
        return self._plan.initial().to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the tasks of one micro-batch."""
        ranges = self._plan.ranges(stream_offset(start), stream_offset(end))
        return planned(self._options, cluster_of(self._options), ranges)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read what one task is to read."""
        return read_partition(self._options, self._columns, partition)


if HAS_LIMITS:

    class AngariumStreamReader(_Reader, SupportsTriggerAvailableNow):
        """Reads topics as they grow, as much per trigger as the options allow."""

        def getDefaultReadLimit(self) -> ReadLimit:
            """Return the limit that Spark is to hand back to `latestOffset`.

            It knows one limit at a time; the others are added there.
            """
            options = self._options
            if options.offsets_per_trigger_max is not None:
                return ReadMaxRows(options.offsets_per_trigger_max)
            if options.bytes_per_trigger_max is not None:
                return ReadMaxBytes(options.bytes_per_trigger_max)
            if options.offsets_per_trigger_min is not None:
                return ReadMinRows(options.offsets_per_trigger_min)
            return ReadAllAvailable()

        def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
            """Return how far the next micro-batch goes; `start` if there is nothing for it."""
            begun = stream_offset(start)
            # Spark asks for the next batch when the one before it is done and written down.
            self._plan.report(begun)
            end = self._plan.end(begun, self._limit(limit))
            return start if end is begun else end.to_json()

        def reportLatestOffset(self) -> dict[str, Any] | None:
            """Return the end of what is there, for a query's progress."""
            newest = self._plan.newest_seen
            if newest is None:
                return None
            silent = self._plan.silent
            return newest.to_json() | ({"@silent": silent} if silent else {})

        def prepareForTriggerAvailableNow(self) -> None:
            """Go no further than what is there now."""
            self._plan.stop_at_newest()

        def _limit(self, limit: ReadLimit) -> TriggerLimit:
            # "Everything" is asked for by Trigger.Once, whatever the options say.
            if isinstance(limit, ReadAllAvailable):
                return TriggerLimit()
            options = self._options
            return TriggerLimit(
                records_max=options.offsets_per_trigger_max,
                records_min=options.offsets_per_trigger_min,
                bytes_max=options.bytes_per_trigger_max,
            )

else:

    class AngariumStreamReader(_Reader):  # type: ignore[no-redef]
        """Reads topics as they grow, all that is there at each trigger."""

        def __init__(self, options: ReadOptions, schema: StructType) -> None:
            super().__init__(options, schema)
            for name, value in (
                ("maxOffsetsPerTrigger", options.offsets_per_trigger_max),
                ("minOffsetsPerTrigger", options.offsets_per_trigger_min),
                ("maxBytesPerTrigger", options.bytes_per_trigger_max),
            ):
                if value is not None:
                    raise InvalidArgument(
                        f"option {name} needs PySpark 4.2 or newer; this is {pyspark.__version__}"
                    )
            self._reached: dict[str, Any] | None = None

        def initialOffset(self) -> dict[str, Any]:
            """Return where the query begins."""
            self._reached = super().initialOffset()
            return self._reached

        def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
            """Return the end of what is there.

            A query that goes on after a restart has not said yet how far it has come: what lies
            between is found when its next micro-batch is parted into tasks.
            """
            start = self._reached
            if start is None:
                # Where nobody answers the query would be set back to the beginning.
                return self._plan.newest(NOWHERE, must_answer=True).to_json()
            begun = stream_offset(start)
            end = self._plan.end(begun, TriggerLimit())
            self._reached = start if end is begun else end.to_json()
            return self._reached

        def commit(self, end: dict[str, Any]) -> None:
            """Hear that everything below `end` is done."""
            self._plan.report(stream_offset(end))

        def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
            """Return the tasks of one micro-batch, and note how far the query has come."""
            self._reached = end
            return super().partitions(start, end)
