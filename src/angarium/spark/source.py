"""What Spark sees: the data source `angarium`, and its batch reader.

    spark.read.format("angarium").option("subscribe", "orders").load()

Options are checked when a reader or writer is made, and so before anything runs. Everything that
travels to executors is in the partitions: the servers' addresses as the driver knew them, the
ranges, the topics' ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from angarium.errors import InvalidArgument
from angarium.spark.arrow_types import arrow_columns
from angarium.spark.batch_plan import batch_ranges
from angarium.spark.history import ArchivedCluster, ArchivedRange, archived_rows
from angarium.spark.link import link_for
from angarium.spark.losses import LossPolicy
from angarium.spark.options import Given, read_options
from angarium.spark.range_batches import range_batches
from angarium.spark.ranges import tasks
from angarium.spark.rows import RowShape, range_rows
from angarium.spark.values.columns import structured
from angarium.spark.values.options import READ_NAMES, value_options
from angarium.spark.words import yes_or_no
from angarium.spark.write_options import write_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import (
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )

    from angarium.spark.cluster import Cluster
    from angarium.spark.options import ReadOptions
    from angarium.spark.ranges import OffsetRange

NAME: Final = "angarium"

ROW: Final = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
    ]
)
"""A row unless a schema says otherwise, in the order of Kafka's connector."""

HEADERS: Final = StructField("headers", MapType(StringType(), BinaryType()))


RANGE: Final = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("start", LongType()),
        StructField("stop", LongType()),
        StructField("topic_id", LongType()),
    ]
)
"""A row with the option `rows=ranges`."""

VALUE_NAMES: Final = frozenset(name.lower() for name in READ_NAMES)


class AngariumSource(DataSource):
    """Topics as tables."""

    @classmethod
    def name(cls) -> str:
        """Return what `format` calls it."""
        return NAME

    def schema(self) -> StructType | str:
        """Return the columns of a row: those of every record, and what is asked for besides."""
        if self.options.get("rows", "").strip().lower() == "ranges":
            return RANGE
        has_headers = yes_or_no("includeHeaders", self.options.get("includeHeaders", "false"))
        row = StructType([*ROW.fields, HEADERS]) if has_headers else ROW
        values = value_options(
            Given(
                {key: text for key, text in self.options.items() if key.lower() in VALUE_NAMES},
                known=READ_NAMES,
                kind="read",
            )
        )
        return row if values is None else structured(row, values)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a batch reader."""
        options = read_options(self.options, is_stream=False)
        if not options.push_filters:
            return AngariumReader(options, schema)
        from angarium.spark.filtering import FilteringReader  # noqa: PLC0415 (newer versions only)

        return FilteringReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a streaming reader."""
        from angarium.spark.stream import AngariumStreamReader  # noqa: PLC0415 (only for streams)

        return AngariumStreamReader(read_options(self.options, is_stream=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a writer of a batch."""
        from angarium.spark.sink import AngariumWriter, refuse_overwrite  # noqa: PLC0415 (only here)

        refuse_overwrite(overwrite=overwrite)
        options = write_options(self.options, is_stream=False)
        writer = AngariumWriter(options, schema)
        if options.topic is not None and not options.creates_topic:
            # Tasks would find that out as well, after everything has been computed.
            link_for(options).layout(options.topic, creates=False)
        return writer

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return a writer of micro-batches."""
        from angarium.spark.sink import AngariumStreamWriter, refuse_overwrite  # noqa: PLC0415

        refuse_overwrite(overwrite=overwrite)
        return AngariumStreamWriter(write_options(self.options, is_stream=True), schema)


class RangesPartition(InputPartition):
    """What one task reads from the broker."""

    def __init__(self, ranges: Sequence[OffsetRange]) -> None:
        super().__init__(tuple(ranges))
        self.ranges = tuple(ranges)


class ArchivePartition(InputPartition):
    """What one task reads from an archive."""

    def __init__(self, archived: ArchivedRange) -> None:
        super().__init__(archived)
        self.archived = archived


class AngariumReader(DataSourceReader):
    """Reads a fixed range of offsets."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._columns = row_columns(options, schema)

    def partitions(self) -> list[InputPartition]:
        """Fix what is read, and part it into tasks."""
        cluster = cluster_of(self._options)
        return planned(self._options, cluster, batch_ranges(self._options, cluster))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read what one task is to read."""
        return read_partition(self._options, self._columns, partition)


def row_columns(options: ReadOptions, schema: StructType) -> list[tuple[str, pa.DataType]]:
    """Return a schema's columns with their Arrow types, once it is clear that a topic has them."""
    columns = arrow_columns(schema)
    if not options.as_ranges:
        RowShape(columns, options.values)
    elif schema != RANGE:
        raise InvalidArgument("option rows: with 'ranges' the columns are fixed; give no schema")
    return columns


def cluster_of(options: ReadOptions) -> Cluster:
    """Return the cluster to plan for: the broker, or the broker with its archive behind it."""
    link = link_for(options)
    return link if options.archive is None else ArchivedCluster(link, options.archive)


def planned(
    options: ReadOptions, cluster: Cluster, ranges: Sequence[OffsetRange]
) -> list[InputPartition]:
    """Return the tasks that read `ranges`."""
    old: list[ArchivedRange] = []
    if isinstance(cluster, ArchivedCluster):
        old, ranges = cluster.parted(ranges)
    parted = tasks(
        ranges,
        min_partitions=options.min_partitions,
        records_max=options.records_per_task_max,
    )
    return [*map(ArchivePartition, old), *map(RangesPartition, parted)]


def read_partition(
    options: ReadOptions, columns: list[tuple[str, pa.DataType]], partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one task; Spark makes a task of nothing where there is nothing to read."""
    if isinstance(partition, ArchivePartition):
        yield from archived_rows(RowShape(columns, options.values), partition.archived)
    if not isinstance(partition, RangesPartition):
        return
    if options.as_ranges:
        yield range_rows(partition.ranges)
        return
    link = link_for(options)
    shape = RowShape(columns, options.values)
    policy = LossPolicy(options.fail_on_data_loss)
    for one in partition.ranges:
        batches = range_batches(link, one, policy=policy, from_nearest=options.from_nearest)
        yield from shape.batches(one.topic, one.partition, batches)
