"""The mirror: topics of one cluster appear in another, record by record, in the same partitions.

Every record keeps its key, value, headers and time, and says in headers where it comes from. It
arrives once: the sink commits each micro-batch once, and a mirror that has lost its checkpoint
looks up in the other cluster how far it had come. Topics are made there with as many partitions as
they began with here, and grow as they do, so that keys keep their order (`mirrored_layouts`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from angarium.client import SyncClient
from angarium.errors import InvalidArgument, NotFound
from angarium.pipelines.checkpoints import CheckpointFolder
from angarium.pipelines.claims import Claim, claim
from angarium.pipelines.headers import HEADERS, joined, same_for_each
from angarium.pipelines.mirrored_layouts import dealt_by, layouts_column, make_ready, newest
from angarium.pipelines.record_schema import RECORD
from angarium.spark.link import link_for, link_to
from angarium.spark.locating import chosen
from angarium.spark.options import Assigned, read_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from angarium.api import TopicInfo
    from angarium.client.records import Record
    from angarium.pipelines.jobs import Mirror
    from angarium.spark.options import ReadOptions

PREFIX: Final = "angarium-mirror-"
"""How the headers begin that say where a record comes from: cluster, topic, partition, offset and
timestamp (when it was appended there, in µs since 1970)."""

TAIL_RECORDS_MAX: Final = 10_000
"""How far back a mirror without a checkpoint looks for its last record in a partition. If there is
none among this many records of others, it asks to be told where to begin."""

MIRRORED: Final = (
    "topic string, partition int, key binary, value binary, headers map<string,binary>, "
    "timestamp timestamp, layout int"
)
_MIRRORED: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("layout", pa.int32()),
    ]
)


def mirror(
    spark: SparkSession,
    wanted: Mirror,
    *,
    checkpoint: str,
    name: str | None = None,
    once: bool = False,
    interval: str = "1 second",
) -> StreamingQuery:
    """Start to mirror topics. `once` ends the query when what is there now has arrived.

    Unless the options say where to begin, everything the topics still have comes first; a mirror
    without its checkpoint goes on behind the last record that the other cluster has of it.
    """
    options = read_options(wanted.options, is_stream=True)
    given = {**wanted.options, "servers": ",".join(options.servers)}
    with SyncClient(*options.servers) as here, SyncClient(wanted.to) as there:
        cluster = here.cluster_status().cluster_id
        target = there.cluster_status().cluster_id
        if cluster == target and not wanted.prefix:
            raise InvalidArgument(
                "both addresses are of one cluster: a mirror would copy its topics into themselves;"
                " give another cluster, or a prefix"
            )
        if not any(label.lower().startswith("starting") for label in given):
            # A checkpoint goes before whatever is said here; and who else writes there, and how
            # much, is no affair of a mirror that has one.
            given["startingOffsets"] = (
                "earliest" if _goes_on(spark, checkpoint) else _behind(here, there, wanted, cluster)
            )
    claim(spark, checkpoint, Claim(kind=wanted.kind, of=f"the cluster {target}"))
    rows = spark.readStream.format("angarium").options(**given).schema(RECORD).load()
    mirrored = _mirrored(rows, wanted, options, cluster=cluster, target=target)
    writer: Any = mirrored.writeStream.format("angarium").option("servers", wanted.to)
    writer = writer.option("checkpointLocation", checkpoint)
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=interval)
    query: StreamingQuery = (writer if name is None else writer.queryName(name)).start()
    return query


def _goes_on(spark: SparkSession, checkpoint: str) -> bool:
    """Tell whether a checkpoint says where to begin; one of Spark Connect cannot be looked into."""
    from angarium.spark.session import is_connect  # noqa: PLC0415 (an extra)

    return not is_connect(spark) and CheckpointFolder(spark, checkpoint).is_anywhere()


def _behind(here: SyncClient, there: SyncClient, wanted: Mirror, cluster: str) -> str:
    """Return `startingOffsets`: behind the last record of each partition that has arrived."""
    choice = read_options(wanted.options, is_stream=True).choice
    meant = chosen(choice, {info.name: info for info in here.list_topics()})
    begin = {
        topic: _arrived(there, f"{wanted.prefix}{topic}", cluster, topic, numbers)
        for topic, numbers in meant.partitions.items()
    }
    return json.dumps(begin) if begin else "earliest"


def _mirrored(
    rows: DataFrame, wanted: Mirror, options: ReadOptions, *, cluster: str, target: str
) -> DataFrame:
    prefix, to = wanted.prefix, tuple(wanted.to.split(","))
    # A stream of some partitions does not stop at fences: its rows are of several layouts at once.
    has_layouts = not isinstance(options.choice, Assigned)

    def marked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            # What came from there does not go back.
            rows = batch.filter(pc.invert(_came_from(batch.column("headers"), target)))
            if not rows.num_rows:
                continue
            here, there = link_for(options), link_to(to)
            for topic in pc.unique(rows.column("topic")).to_pylist():
                of = rows.filter(pc.equal(rows.column("topic"), topic))
                info, layouts = dealt_by(here, topic, of)
                is_alike = make_ready(there, f"{prefix}{topic}", info, newest(layouts))
                named = layouts_column(layouts, is_named=is_alike and has_layouts)
                yield _marked(of, prefix, cluster, named)

    return rows.mapInArrow(marked, MIRRORED)


def _marked(rows: pa.RecordBatch, prefix: str, cluster: str, layouts: pa.Array) -> pa.RecordBatch:
    origin = {
        f"{PREFIX}cluster": pa.repeat(pa.scalar(cluster), rows.num_rows),
        **{
            f"{PREFIX}{name}": rows.column(name)
            for name in ("topic", "partition", "offset", "timestamp")
        },
    }
    topics = rows.column("topic")
    return pa.RecordBatch.from_arrays(
        [
            pc.binary_join_element_wise(prefix, topics, "") if prefix else topics,
            rows.column("partition"),
            rows.column("key"),
            rows.column("value"),
            joined(rows.column("headers"), same_for_each(origin), replaces=PREFIX),
            # A record without a time of its own gets that of its arrival in the first cluster.
            pc.coalesce(rows.column("producer_timestamp"), rows.column("timestamp")),
            layouts,
        ],
        schema=_MIRRORED,
    )


def _came_from(headers: pa.MapArray, cluster: str) -> pa.Array:
    origin = pc.map_lookup(headers, pa.scalar(f"{PREFIX}cluster"), "last")
    return pc.fill_null(pc.equal(origin, pa.scalar(cluster.encode())), fill_value=False)


def _described(client: SyncClient, topic: str) -> TopicInfo | None:
    try:
        return client.describe_topic(topic)
    except NotFound:
        return None


def _arrived(
    there: SyncClient, name: str, cluster: str, topic: str, numbers: tuple[int, ...]
) -> dict[str, int]:
    """Return, for each partition, the offset behind the last record that has arrived."""
    info = _described(there, name)
    made = 0 if info is None else len(info.partitions)
    return {
        str(number): _arrived_in(there, name, cluster, topic, number) if number < made else -2
        for number in numbers
    }


def _arrived_in(there: SyncClient, name: str, cluster: str, topic: str, number: int) -> int:
    """Return the same for one partition; -2, the beginning, if nothing has arrived."""
    begin = int(there.find_offset(name, number, "earliest"))
    end = int(there.find_offset(name, number, "latest"))
    wanted = {f"{PREFIX}cluster": cluster, f"{PREFIX}topic": topic, f"{PREFIX}partition": number}
    stop = end
    while stop > max(begin, end - TAIL_RECORDS_MAX):
        start = max(begin, stop - 500)
        for record in reversed(_records(there, name, number, start, stop)):
            told = {
                label: (content or b"").decode("utf-8", "replace")
                for label, content in record.headers
            }
            if all(told.get(label) == str(value) for label, value in wanted.items()):
                return int(told[f"{PREFIX}offset"]) + 1
        stop = start
    if end > begin:
        raise InvalidArgument(
            f"{name} partition {number} of the other cluster has records, but none of this "
            f"mirror among the last {TAIL_RECORDS_MAX:,}: say with startingOffsets where to begin"
        )
    return -2


def _records(client: SyncClient, topic: str, partition: int, start: int, stop: int) -> list[Record]:
    found: list[Record] = []
    at = start
    while at < stop:
        some = client.fetch(topic, partition, at)
        if not some:
            break
        found += [one for one in some if one.offset is not None and one.offset < stop]
        at = int(some[-1].offset or 0) + 1
    return found
