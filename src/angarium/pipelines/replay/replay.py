"""Doing a replay: portion after portion, at its pace, until it is done or somebody stops it.

Every portion is one write of the sink under the replay's name and the portion's number, so a record
is written once, even if a run breaks off and is repeated. What is written keeps its key,
value and headers, and its time: the producer's, or that of its arrival if the producer gave none.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final

from angarium.client import SyncClient
from angarium.errors import NotFound, PreconditionFailed
from angarium.pipelines.record_schema import RECORD
from angarium.pipelines.replay.lake import LakeCluster, lake_rows
from angarium.pipelines.replay.ledger import Ledger
from angarium.pipelines.replay.pace import Run
from angarium.pipelines.replay.plan import planned
from angarium.spark.batch_plan import batch_ranges
from angarium.spark.options import read_options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from angarium.pipelines.board import Status
    from angarium.pipelines.jobs import Replay
    from angarium.pipelines.replay.pace import Replayed
    from angarium.pipelines.replay.plan import Plan
    from angarium.spark.cluster import Cluster
    from angarium.spark.options import ReadOptions
    from angarium.spark.ranges import OffsetRange


NAP_S: Final = 0.5
"""How long a replay that is ahead of its rate sleeps before it looks whether it is to stop."""

HOW_TO_READ: Final = frozenset(
    {"failondataloss", "readfrom", "minpartitions", "maxrecordsperpartition"}
)
"""Options of the source that hold for every portion; which records is the plan's affair."""

RECORD_BYTES_GUESS: Final = 1000.0
"""The size of a record where none can be looked at."""


def replay(
    spark: SparkSession,
    wanted: Replay,
    *,
    on_progress: Callable[[Status], None] = lambda _: None,
    is_told_to_stop: Callable[[], bool] = lambda: False,
) -> Replayed:
    """Replay, or go on with a replay of the same name; one that is done is left as it is."""
    options = read_options(wanted.options, is_stream=False)
    servers = ",".join(options.servers)
    to = wanted.to or servers
    how = {name: text for name, text in wanted.options.items() if name.lower() in HOW_TO_READ}
    source = _source(wanted, options)
    with SyncClient(to) as client:
        ledger = Ledger(client)
        plan, done = _agreed(wanted, options, source, ledger)
        partitions = _make_topic(client, plan, source)
        run = Run(plan, rate=wanted.rate, on_progress=on_progress)
        for number, ranges in enumerate(plan.portions()):
            if number < done:
                run.skip(ranges)
                continue
            # Asked once more than there are naps; who is told hears it only once.
            is_stopped = is_told_to_stop()
            while run.is_ahead() and not is_stopped:
                time.sleep(min(NAP_S, run.ahead_s()))
                is_stopped = is_told_to_stop()
            if is_stopped:
                ledger.note(plan.name, number)
                return run.ended(number, is_done=False)
            if isinstance(source, LakeCluster):
                rows = lake_rows(spark, source, ranges)
            else:
                _refuse_namesake(source, plan)
                rows = _topic_rows(spark, ranges, {**how, "servers": servers}, plan.archive)
            _write(rows, plan, number, to, partitions, keeps=wanted.keep_partitions)
            if run.has_written(ranges):
                ledger.note(plan.name, number + 1)
            done = number + 1
        ledger.note(plan.name, done)
    return run.ended(done, is_done=True)


def _source(wanted: Replay, options: ReadOptions) -> Cluster:
    if wanted.lake is not None:
        return LakeCluster(wanted.lake, wanted.topic)
    from angarium.spark.source import cluster_of  # noqa: PLC0415 (an extra)

    return cluster_of(options)


def _agreed(
    wanted: Replay, options: ReadOptions, source: Cluster, ledger: Ledger
) -> tuple[Plan, int]:
    """Return the plan that holds: an earlier run's, or a new one for what is there now."""
    found = ledger.found(wanted.name)
    ranges = [] if found is not None else batch_ranges(options, source)
    topics = source.topics()
    if wanted.topic not in topics:
        raise NotFound(f"there is no topic {wanted.topic}")
    topic_id = int(topics[wanted.topic].id)
    size = RECORD_BYTES_GUESS
    for one in ranges[:1]:
        size = source.record_bytes(one.topic, one.partition, one.start) or size
    cluster = ""
    if wanted.lake is None:
        with SyncClient(*options.servers) as here:
            cluster = here.cluster_status().cluster_id
    plan = planned(wanted, ranges, cluster=cluster, topic_id=topic_id, record_bytes=size)
    return ledger.agree_on(plan)


def _make_topic(client: SyncClient, plan: Plan, source: Cluster) -> int:
    """Make the topic to write to unless it is there; return how many partitions it has."""
    try:
        return len(client.describe_topic(plan.into).partitions)
    except NotFound:
        numbers = [one.number for one in source.topics()[plan.topic].partitions]
        client.create_topic(plan.into, partitions=1 + max(numbers))
        return 1 + max(numbers)


def _refuse_namesake(source: Cluster, plan: Plan) -> None:
    info = source.topics().get(plan.topic)
    if info is None or int(info.id) != plan.topic_id:
        raise PreconditionFailed(
            f"the topic {plan.topic} was deleted since the replay {plan.name} was planned; "
            "what is archived of it can be replayed from the lake"
        )


def _topic_rows(
    spark: SparkSession,
    ranges: Sequence[OffsetRange],
    how: Mapping[str, str],
    archive: str | None,
) -> DataFrame:
    topic = ranges[0].topic
    options = {
        **how,
        "assign": json.dumps({topic: [one.partition for one in ranges]}),
        "startingOffsets": json.dumps({topic: {str(one.partition): one.start for one in ranges}}),
        "endingOffsets": json.dumps({topic: {str(one.partition): one.stop for one in ranges}}),
    }
    if archive is not None:
        options["archive"] = archive
    return spark.read.format("angarium").options(**options).schema(RECORD).load()


def _write(
    rows: DataFrame, plan: Plan, number: int, servers: str, partitions: int, *, keeps: bool
) -> None:
    # By its key a record finds its partition as with every producer; without one it stays with
    # those it came with, so that their order stays.
    own = f"partition % {partitions}"
    target = "partition" if keeps else f"CASE WHEN key IS NULL THEN {own} END"
    written = rows.selectExpr(
        "key",
        "value",
        "headers",
        "coalesce(producer_timestamp, timestamp) AS timestamp",
        f"int({target}) AS partition",
    )
    written.write.format("angarium").options(
        servers=servers,
        topic=plan.into,
        writeId=f"replay-{plan.name}",
        writeVersion=str(number),
        # The plan says what is in a portion, and any of them may come again.
        checkRepeats="false",
    ).mode("append").save()
