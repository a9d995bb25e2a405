"""Running a pipeline: from its definition to a query, until it ends or somebody ends it.

A pipeline that runs says so in the topic `angarium-pipelines` every few seconds, and listens there
for the word to stop (`board`).
"""

from __future__ import annotations

import ast
import importlib
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from angarium.errors import InvalidArgument
from angarium.pipelines.archive import archive
from angarium.pipelines.board import Board, State, Status
from angarium.pipelines.claims import Claim, claim
from angarium.pipelines.definition import ONCE
from angarium.pipelines.expectations import Quality
from angarium.pipelines.quality import freshness, report_rows
from angarium.pipelines.starting import start_job
from angarium.spark.lakes.form import LakeForm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from angarium.client import SyncClient
    from angarium.pipelines.definition import Definition, Sink

ROUND_S: Final = 1
"""How often a pipeline looks whether it is to stop, and tells how it is."""

FRESH_S: Final = 10.0
"""How often topics that have to be fresh are looked at."""


def start(spark: SparkSession, wanted: Definition, *, servers: str) -> StreamingQuery:
    """Start the query of a pipeline; `servers` are for sources and sinks that name none."""
    if wanted.archive is not None:
        options = {"servers": servers, **wanted.archive}
        path, form = options.pop("path"), options.pop("table", None)
        return archive(
            spark,
            path,
            checkpoint=wanted.checkpoint,
            options=options,
            form=None if form is None else LakeForm(form),
            **_archive_trigger(wanted.trigger),
        )
    if wanted.job is not None:
        return start_job(spark, wanted, servers=servers)
    tables = {
        view: spark.readStream.format("angarium").options(**{"servers": servers, **options}).load()
        for view, options in wanted.sources.items()
    }
    rows = _transformed(spark, wanted, tables)
    claim(spark, wanted.checkpoint, Claim(kind="a query"))  # as SQL or as a function
    assert wanted.sink is not None, "what is no archive has a sink"
    writer = _writer(rows, wanted.sink, servers)
    writer = writer.queryName(wanted.name).option("checkpointLocation", wanted.checkpoint)
    if wanted.trigger == ONCE:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=wanted.trigger)
    query: StreamingQuery = writer.start()
    return query


def run(
    query: StreamingQuery,
    wanted: Definition,
    board: Board,
    *,
    on_progress: Callable[[Status], None],
) -> Status:
    """Attend to a query until it ends; return how it ended. Ctrl-C ends it in good order."""
    status = Status(name=wanted.name, state=State.RUNNING, kind=wanted.kind)
    tally = _Tally(wanted, board.client)
    try:
        while query.isActive:
            query.awaitTermination(ROUND_S)
            now = _status(wanted, query, tally)
            if now != status:
                status = now
                on_progress(status)
            board.post(status)
            if query.isActive and board.is_told_to_stop(wanted.name):
                query.stop()
    except KeyboardInterrupt:
        query.stop()
    except Exception as error:
        failed = msgspec.structs.replace(status, state=State.FAILED, error=str(error)[:1000])
        board.post(failed, at_once=True)
        raise
    ended = _status(wanted, query, tally)
    on_progress(ended)
    board.post(ended, at_once=True)
    return ended


class _Tally:
    """What a query has counted since it was started, one micro-batch after the other."""

    def __init__(self, wanted: Definition, client: SyncClient) -> None:
        self._wanted = wanted
        self._client = client
        self._seen = ""
        self._looked_at = -FRESH_S
        self._stale: dict[str, int] = {}
        self._counts: dict[str, dict[str, int]] = {}

    def report(self, query: StreamingQuery) -> dict[str, int]:
        """Return the counts, with those of micro-batches that have ended since the last call."""
        job = self._wanted.job
        if not isinstance(job, Quality):
            return {}
        for progress in query.recentProgress:
            # Times of triggers are texts that sort; a number comes again if there was nothing.
            if progress["timestamp"] <= self._seen:
                continue
            self._seen = progress["timestamp"]
            for name, row in progress["observedMetrics"].items():
                told = self._counts.setdefault(name, {})
                for label, count in _observed(row.asDict()).items():
                    told[label] = told.get(label, 0) + int(count or 0)
        if time.monotonic() - self._looked_at >= FRESH_S:
            self._looked_at = time.monotonic()
            met = freshness(self._client, job.topics)
            self._stale = {f"{one.topic}: not: {one.expectation}": one.failed for one in met}
        found = report_rows(job, self._counts)
        records = {f"{one.topic}: records": one.records for one in found}
        failed = {f"{one.topic}: not: {one.expectation}": one.failed for one in found}
        return records | failed | self._stale


def _transformed(
    spark: SparkSession, wanted: Definition, tables: Mapping[str, DataFrame]
) -> DataFrame:
    if wanted.function is not None:
        return _function(wanted.function)(**tables)
    for view, rows in tables.items():
        rows.createOrReplaceTempView(view)
    assert wanted.sql is not None, "what has no function has a text"
    return spark.sql(wanted.sql)


def _function(written: str) -> Callable[..., DataFrame]:
    module, _, name = written.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Callable[..., DataFrame] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InvalidArgument(f"function: {written} cannot be loaded: {error}") from None
    return found


def _writer(rows: DataFrame, sink: Sink, servers: str) -> Any:
    writer: Any = rows.writeStream.outputMode(sink.mode)
    if sink.kind == "topic":
        return writer.format("angarium").options(**{"servers": servers, **sink.options})
    if sink.kind == "parquet":
        return writer.format("parquet").option("path", sink.options["parquet"])
    return writer.format("console").option("truncate", "false")


def _archive_trigger(trigger: str) -> dict[str, Any]:
    return {"once": True} if trigger == ONCE else {"interval": trigger}


def _status(wanted: Definition, query: StreamingQuery, tally: _Tally) -> Status:
    failure = query.exception()
    state = State.RUNNING if query.isActive else State.STOPPED
    if failure is not None:
        state = State.FAILED
    progress = query.lastProgress
    known = Status(name=wanted.name, kind=wanted.kind, state=state, error=str(failure or "")[:1000])
    if progress is None:
        return known
    return msgspec.structs.replace(
        known,
        batch=progress["batchId"],
        input_rows_per_s=round(progress["inputRowsPerSecond"] or 0.0, 1),
        processed_rows_per_s=round(progress["processedRowsPerSecond"] or 0.0, 1),
        batch_ms=progress["durationMs"].get("triggerExecution", 0),
        lag=sum(_lag(source) for source in progress["sources"]),
        report=tally.report(query),
    )


def _lag(source: Any) -> int:
    """Return how many records a source has that the query has not read."""
    end, latest = (told_offsets(source[name]) for name in ("endOffset", "latestOffset"))
    return sum(
        max(0, newest - end.get(topic, {}).get(partition, newest))
        for topic, partitions in latest.items()
        if not topic.startswith("@")
        for partition, newest in partitions.items()
    )


def told_offsets(text: str | None) -> dict[str, Any]:
    """Return offsets from a query's progress: JSON, or, from PySpark 4.0, what Python prints."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        found = ast.literal_eval(text or "{}")
    return found if isinstance(found, dict) else {}


def _observed(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what was counted, by its name; Spark Connect hands over names and values apart."""
    if row.keys() != {"schema", "values"}:
        return row
    names = [field["name"] for field in row["schema"]["fields"]]
    return dict(zip(names, row["values"], strict=True))
