"""Letting records meet what is expected of them: as a stream that sorts them, or as a report.

A record that fails is not lost and not changed: it goes to a dead-letter topic with the reason in
its headers, as a record that a consumer group gave up does, so that everything that is made for
dead letters works for it. Everything is judged by Spark's own operators, without Python; the source
decodes Avro and Protobuf.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from angarium.client import SyncClient
from angarium.client.dead_letters import PREFIX
from angarium.errors import InvalidArgument, PreconditionFailed
from angarium.pipelines.claims import Claim, claim
from angarium.pipelines.expectations import CORRUPT, FITS
from angarium.pipelines.headers import with_headers
from angarium.pipelines.quality.freshness import ages_s
from angarium.pipelines.record_schema import RECORD
from angarium.spark.options import Given
from angarium.spark.values.codec import codec_of
from angarium.spark.values.options import READ_NAMES, value_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

    from angarium.pipelines.expectations import Quality, TopicQuality


_FAILURES: Final = "_failures"
_FIELDS: Final = "_fields"
_FITS: Final = "_fits"


@dataclass(frozen=True, slots=True)
class Met:
    """How one expectation was met."""

    topic: str
    expectation: str
    records: int
    failed: int


def quality(
    spark: SparkSession,
    wanted: Quality,
    *,
    checkpoint: str,
    name: str,
    servers: str | None = None,
    once: bool = False,
    interval: str = "10 seconds",
) -> StreamingQuery:
    """Start to check topics; records that fail go to the dead-letter topic, each once.

    `name` is who gave them up, as dead letters say it. How many failed what is in the query's
    progress (`report_rows`).
    """
    from pyspark.sql import functions as f  # noqa: PLC0415 (an extra)

    claim(spark, checkpoint, Claim(kind=wanted.kind))
    _make_topics(wanted, wanted.options.get("servers", servers))
    parts = []
    for one in wanted.topics:
        options = {**wanted.options, "subscribe": one.topic}
        if servers is not None:
            options.setdefault("servers", servers)
        judged = _judged(_loaded(spark.readStream, one, options), one)
        judged = judged.observe(_observed(one), f.count(f.lit(1)).alias("records"), *_counts(one))
        parts.append(_sorted(judged, wanted, name))
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part)
    written = with_headers(whole, added="_added", replaces=PREFIX)
    writer: Any = written.writeStream.format("angarium").queryName(name)
    target = wanted.options.get("servers", servers)
    if target is not None:
        writer = writer.option("servers", target)
    writer = writer.option("checkpointLocation", checkpoint).option("createTopic", "true")
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=interval)
    query: StreamingQuery = writer.start()
    return query


def check(
    spark: SparkSession, wanted: Quality, *, servers: str | None = None, **options: str
) -> list[Met]:
    """Return how topics meet what is expected of them, without writing anything.

    `options` are those of a batch read: where to start and end, `archive`.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415 (an extra)

    found: list[Met] = []
    for one in wanted.topics:
        given = {**_for_a_batch(wanted.options), **options, "subscribe": one.topic}
        if servers is not None:
            given.setdefault("servers", servers)
        judged = _judged(_loaded(spark.read, one, given), one)
        (counts,) = judged.agg(f.count(f.lit(1)), *_counts(one)).collect()
        found += [
            Met(one.topic, name, counts[0], counts[1 + at]) for at, name in enumerate(one.names)
        ]
    if any(one.fresh_s is not None for one in wanted.topics):
        chosen = servers or wanted.options.get("servers")
        with SyncClient(*([] if chosen is None else [chosen])) as client:
            found += freshness(client, wanted.topics)
    return found


def freshness(client: SyncClient, topics: Iterable[TopicQuality]) -> list[Met]:
    """Return how topics that have to be fresh are; a topic without a record is not."""
    wanted = {one.topic: one.fresh_s for one in topics if one.fresh_s is not None}
    ages = ages_s(client, topics)
    return [
        Met(topic, f"the newest record is at most {limit} s old", 1, _is_stale(ages[topic], limit))
        for topic, limit in wanted.items()
    ]


def report_rows(wanted: Quality, observed: Mapping[str, Mapping[str, int]]) -> list[Met]:
    """Return what a query has counted, from the metrics that it observed."""
    return [
        Met(one.topic, name, counts["records"], counts[f"failed_{at}"])
        for one in wanted.topics
        if (counts := observed.get(_observed(one))) is not None
        for at, name in enumerate(one.names)
    ]


def _loaded(reader: Any, wanted: TopicQuality, options: Mapping[str, str]) -> DataFrame:
    """Return a topic's records, and beside them the fields of values that the source decodes."""
    from pyspark.sql.pandas.types import from_arrow_type  # noqa: PLC0415 (an extra)
    from pyspark.sql.types import StructField, StructType  # noqa: PLC0415

    schema = cast(StructType, StructType.fromDDL(RECORD))
    if wanted.values:
        given = {**wanted.values, "valueColumn": _FIELDS, "badValues": "null"}
        options = {**options, **given}
        values = value_options(Given(given, known=READ_NAMES, kind="topic"))
        assert values is not None, "it was checked when the file was read"
        schema = schema.add(StructField(_FIELDS, from_arrow_type(codec_of(values).kind())))
    loaded: DataFrame = reader.format("angarium").options(**options).schema(schema).load()
    return loaded


def _judged(rows: DataFrame, wanted: TopicQuality) -> DataFrame:
    """Return rows as `record`, and the names of the expectations that they failed."""
    from pyspark.sql import functions as f  # noqa: PLC0415 (an extra)

    failed = [
        f.when(f.expr(f"NOT ({one.condition})"), f.lit(one.name)) for one in wanted.expectations
    ]
    failures: Column = (
        f.array_compact(f.array(*failed)) if failed else f.array().cast("array<string>")
    )
    own = [name for name in rows.columns if name != _FIELDS]
    judged = rows.select(f.struct(*own).alias("record"), *({_FIELDS} & set(rows.columns)))
    if wanted.has_fields:
        fits = f.col("record.value").isNotNull()
        if wanted.schema is not None:
            value = f.col("record.value").cast("string")
            how = {"columnNameOfCorruptRecord": CORRUPT}
            parsed = f.from_json(value, _json_schema(wanted.schema, wanted.topic), how)
            judged = judged.select("record", parsed.alias(_FIELDS))
            fits &= f.col(f"{_FIELDS}.{CORRUPT}").isNull()
        else:
            fits &= f.col(_FIELDS).isNotNull()
        _refuse_taken(judged, wanted.topic)
        judged = judged.select("record", fits.alias(_FITS), f"{_FIELDS}.*")
        # What does not even fit fails nothing else: its fields are not what they seem.
        failures = f.when(f.col(_FITS), failures).otherwise(f.array(f.lit(FITS)))
    return judged.select("record", failures.alias(_FAILURES))


def _json_schema(text: str, topic: str) -> StructType:
    from pyspark.sql.types import StringType, StructField, StructType  # noqa: PLC0415 (an extra)

    try:
        schema = cast(StructType, StructType.fromDDL(text))
    except Exception as error:
        said = str(error).strip().partition("\n")[0]
        raise InvalidArgument(f"quality.topic.{topic}: schema: {said}") from None
    if CORRUPT in schema.names:
        raise InvalidArgument(f"quality.topic.{topic}: a field cannot be called {CORRUPT}")
    return StructType([*schema.fields, StructField(CORRUPT, StringType())])


def _refuse_taken(judged: DataFrame, topic: str) -> None:
    fields = judged.schema[_FIELDS].dataType
    if taken := {"record", _FITS, _FAILURES} & set(cast("StructType", fields).names):
        raise InvalidArgument(f"quality.topic.{topic}: a field cannot be called {min(taken)}")


def _counts(wanted: TopicQuality) -> list[Column]:
    from pyspark.sql import functions as f  # noqa: PLC0415 (an extra)

    return [
        # Of no rows there would be no sum.
        f.coalesce(f.sum(f.array_contains(_FAILURES, name).cast("long")), f.lit(0)).alias(
            f"failed_{at}"
        )
        for at, name in enumerate(wanted.names)
    ]


def _sorted(judged: DataFrame, wanted: Quality, name: str) -> DataFrame:
    """Return what is written: letters, and the records that passed if they go anywhere."""
    from pyspark.sql import functions as f  # noqa: PLC0415 (an extra)

    is_bad = f.size(_FAILURES) > 0
    if wanted.passed_topic is None:
        judged = judged.where(is_bad)
    moment = f.unix_micros("record.timestamp")
    letter = {
        "topic": f.col("record.topic"),
        "partition": f.col("record.partition"),
        "offset": f.col("record.offset"),
        "group": f.lit(name),
        "attempts": f.lit(1),
        "reason": f.array_join(_FAILURES, "; "),
        "first-at": moment,
        "last-at": moment,
    }
    added = f.create_map(
        *(
            one
            for label, value in letter.items()
            for one in (f.lit(f"{PREFIX}{label}"), value.cast("string").cast("binary"))
        )
    )
    none = f.create_map().cast("map<string,binary>")
    return judged.select(
        f.when(is_bad, f.lit(wanted.dead_letter_topic))
        .otherwise(f.lit(wanted.passed_topic))
        .alias("topic"),
        f.col("record.key").alias("key"),
        f.col("record.value").alias("value"),
        f.col("record.headers").alias("headers"),
        f.coalesce("record.producer_timestamp", "record.timestamp").alias("timestamp"),
        f.when(is_bad, added).otherwise(none).alias("_added"),
    )


def _make_topics(wanted: Quality, servers: str | None) -> None:
    """Make the topics that are written to, unless they are there."""
    with SyncClient(*([] if servers is None else [servers])) as client:
        there = {info.name: info for info in client.list_topics()}
        if wanted.dead_letter_topic not in there:
            if wanted.dead_letter_topic.startswith("angarium."):
                raise PreconditionFailed(
                    f"{wanted.dead_letter_topic} is made by the cluster when a group first gives a "
                    "record up; name another dead_letter_topic until then"
                )
            client.create_topic(wanted.dead_letter_topic)
        if wanted.passed_topic is not None and wanted.passed_topic not in there:
            sizes = [
                len(there[one.topic].partitions) for one in wanted.topics if one.topic in there
            ]
            client.create_topic(wanted.passed_topic, partitions=max(sizes, default=1))


def _observed(wanted: TopicQuality) -> str:
    return f"quality of {wanted.topic}"


def _is_stale(age_s: float | None, limit_s: int) -> int:
    return int(age_s is None or age_s > limit_s)


def _for_a_batch(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a stream that a batch read knows as well."""
    own = ("starting", "maxoffsets", "minoffsets", "maxtrigger", "maxbytes", "groupid")
    return {name: value for name, value in options.items() if not name.lower().startswith(own)}
