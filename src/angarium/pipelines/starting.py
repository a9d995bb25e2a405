"""Starting the query of a job that is built in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, assert_never

from angarium.pipelines.analytics import analytics
from angarium.pipelines.definition import ONCE
from angarium.pipelines.expectations import Quality
from angarium.pipelines.jobs import Analytics, Mirror, Replay
from angarium.pipelines.mirror import mirror
from angarium.pipelines.quality import quality

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from angarium.pipelines.definition import Definition
    from angarium.pipelines.jobs import Job


def with_servers(job: Job, servers: str) -> Job:
    """Return a job that reads from `servers`, unless it names others."""
    return replace(job, options={"servers": servers, **job.options})


def start_job(spark: SparkSession, wanted: Definition, *, servers: str) -> StreamingQuery:
    """Start the query of a job that has one; a replay has none."""
    assert wanted.job is not None, "what has no job is started otherwise"
    job = with_servers(wanted.job, servers)
    once = wanted.trigger == ONCE
    when: dict[str, Any] = {"once": True} if once else {"interval": wanted.trigger}
    common: dict[str, Any] = {"checkpoint": wanted.checkpoint, "name": wanted.name, **when}
    match job:
        case Mirror():
            return mirror(spark, job, **common)
        case Analytics():
            return analytics(spark, job, **common)
        case Quality():
            return quality(spark, job, **common)
        case Replay():
            raise AssertionError("a replay is run by `replay`")
    assert_never(job)
