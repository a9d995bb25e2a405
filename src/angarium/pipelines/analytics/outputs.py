"""Where figures go: to a topic, as JSON, and to a table; each window once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.errors import PreconditionFailed
from angarium.pipelines.tables import add_rows, collected

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

QUERY_ID: Final = "sql.streaming.queryId"
"""What Spark tells the thread of a query; not documented, pinned by a test."""


class Outputs:
    """Writes figures. As a function it is for `foreachBatch`."""

    def __init__(self, *, servers: str, topic: str | None, table: str | None) -> None:
        self._servers = servers
        self._topic = topic
        self._table = table

    def __call__(self, figures: DataFrame, batch: int) -> None:
        query = figures.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
        if not query:
            raise PreconditionFailed(
                f"Spark does not tell {QUERY_ID}: this version cannot write figures once"
            )
        self.write(collected(figures), figures, writer=f"analytics-{query}", version=batch)

    def write(self, found: pa.Table, figures: DataFrame, *, writer: str, version: int) -> None:
        """Write figures, unless `writer` has written this version before."""
        if not found.num_rows:
            return
        if self._table is not None:
            add_rows(self._table, found, writer=writer, version=version)
        if self._topic is not None:
            # From what was collected: to compute it again could give other percentiles.
            rows = figures.sparkSession.createDataFrame(found)
            rows.selectExpr("topic AS key", "to_json(struct(*)) AS value").write.format(
                "angarium"
            ).options(
                servers=self._servers,
                topic=self._topic,
                writeId=writer,
                writeVersion=str(version),
            ).mode("append").save()
