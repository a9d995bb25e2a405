"""Where figures go: to a topic, as JSON, and to a table; each window once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.errors import PreconditionFailed
from angarium.pipelines.checkpoints import CheckpointFolder
from angarium.pipelines.tables import add_rows, collected
from angarium.spark.write_options import write_options

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

QUERY_ID: Final = "sql.streaming.queryId"
"""What Spark tells the thread of a query; not documented, pinned by a test."""


class Outputs:
    """Writes figures. As a function it is for `foreachBatch`."""

    def __init__(
        self, *, servers: str, topic: str | None, table: str | None, checkpoint: str | None = None
    ) -> None:
        self._servers = servers
        self._checkpoint = checkpoint
        self._topic = topic
        self._table = table

    def __call__(self, figures: DataFrame, batch: int) -> None:
        query = figures.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
        if not query:
            raise PreconditionFailed(
                f"Spark does not tell {QUERY_ID}: this version cannot write figures once"
            )
        of: str | None = None
        if self._checkpoint is not None:
            # Percentiles may come out differently; what was read is the same in a repetition.
            of = CheckpointFolder(figures.sparkSession, self._checkpoint).read_up_to(batch)
        self.write(collected(figures), figures, writer=f"analytics-{query}", version=batch, of=of)

    def write(
        self,
        found: pa.Table,
        figures: DataFrame,
        *,
        writer: str,
        version: int,
        of: str | None = None,
    ) -> None:
        """Write figures, unless `writer` has written this version before.

        With `of`, what they were made from, another version under the number is refused, also one
        that has none: windows that it does not have yet would come a second time with the next.
        """
        if self._table is not None:
            add_rows(self._table, found, writer=writer, version=version, of=of)
        if self._topic is None:
            return
        options = {
            "servers": self._servers,
            "topic": self._topic,
            "createTopic": "true",
            "writeId": writer,
            "writeVersion": str(version),
            **({"checkRepeats": "false"} if of is None else {"writeOf": of}),
        }
        if found.num_rows:
            # From what was collected: to compute it again could give other percentiles.
            rows = figures.sparkSession.createDataFrame(found)
            rows = rows.selectExpr("topic AS key", "to_json(struct(*)) AS value")
            rows.write.format("angarium").options(**options).mode("append").save()
        elif of is not None:
            _write_nothing(options)


def _write_nothing(options: dict[str, str]) -> None:
    """Commit a version without rows, without a job of Spark's."""
    from pyspark.sql.types import StringType, StructField, StructType  # noqa: PLC0415 (an extra)

    from angarium.spark.sink import AngariumWriter  # noqa: PLC0415

    row = StructType([StructField("key", StringType()), StructField("value", StringType())])
    AngariumWriter(write_options(options, is_stream=False), row).commit([])
