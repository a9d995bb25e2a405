"""Analytics as a pipeline: once over a range, or window after window as topics grow."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

from angarium.errors import InvalidArgument, PreconditionFailed
from angarium.pipelines.analytics.figures import ROW, STATE_VERSION, figures
from angarium.pipelines.analytics.outputs import Outputs
from angarium.pipelines.claims import Claim, claim
from angarium.pipelines.intervals import interval_s
from angarium.pipelines.tables import collected
from angarium.spark.options import read_options

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from angarium.pipelines.jobs import Analytics

_ADVICE: Final = (
    "and startingTimestamp = the end of the last window that was written, so that nothing is "
    "counted twice and nothing left out"
)


def analyse(spark: SparkSession, wanted: Analytics, *, writer: str | None = None) -> pa.Table:
    """Return the figures of a range of topics, by topic and time, and write them where they go.

    With a `writer` they are written once: a second call under that name writes nothing.
    """
    servers = ",".join(read_options(wanted.options, is_stream=False).servers)
    rows = spark.read.format("angarium").options(**wanted.options).schema(ROW).load()
    late_s = interval_s("late_after", wanted.late_after)
    found = figures(rows, window=wanted.window, late_after_s=late_s)
    table = collected(found.orderBy("topic", "starts_at"))
    outputs = Outputs(servers=servers, topic=wanted.topic, table=wanted.table)
    outputs.write(table, found, writer=writer or f"analytics-{uuid.uuid4().hex}", version=0)
    return table


def analytics(
    spark: SparkSession,
    wanted: Analytics,
    *,
    checkpoint: str,
    name: str | None = None,
    once: bool = False,
    interval: str = "10 seconds",
) -> StreamingQuery:
    """Start to write the figures of every window that is over to a topic, a table or both.

    `PreconditionFailed` if the checkpoint is another query's, of an earlier version for example.
    """
    from angarium.spark.session import is_connect  # noqa: PLC0415 (an extra)

    if wanted.topic is None and wanted.table is None:
        raise InvalidArgument("analytics has nowhere to write: give a topic, a table or both")
    if is_connect(spark):
        raise PreconditionFailed(
            "analytics as a pipeline cannot run through Spark Connect, which does not tell the id "
            "by which each window is written once: give another master, or a range"
        )
    window_s = interval_s("window", wanted.window)
    own = Claim(kind=wanted.kind, state=STATE_VERSION, of=f"windows of {window_s:g} s")
    claim(spark, checkpoint, own, advice=_ADVICE)
    servers = ",".join(read_options(wanted.options, is_stream=True).servers)
    given = {**wanted.options, "servers": servers}
    rows = spark.readStream.format("angarium").options(**given).schema(ROW).load()
    found = figures(
        rows,
        window=wanted.window,
        late_after_s=interval_s("late_after", wanted.late_after),
        watermark=wanted.watermark,
    )
    outputs = Outputs(
        servers=servers, topic=wanted.topic, table=wanted.table, checkpoint=checkpoint
    )
    writer: Any = found.writeStream.outputMode("append").foreachBatch(outputs)
    writer = writer.option("checkpointLocation", checkpoint)
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=interval)
    query: StreamingQuery = (writer if name is None else writer.queryName(name)).start()
    return query
