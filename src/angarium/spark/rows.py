"""Broker batches as the rows that Spark sees: Arrow columns, made without touching a record.

Spark wants batches of some ten thousand rows and a few megabytes; broker batches are as large as
their producers made them. Small ones are joined and large ones cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from angarium.batch.arrow import SCHEMA
from angarium.errors import InvalidArgument
from angarium.spark.type_names import spark_name
from angarium.spark.values.decoding import ValueReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from angarium.client.records import ReceivedBatch
    from angarium.spark.ranges import OffsetRange
    from angarium.spark.values.options import ValueOptions

ROWS_PER_BATCH: Final = 10_000
"""Batches of the broker are joined up to this many rows, and cut above twice as many."""

BYTES_PER_BATCH: Final = 4 << 20
"""The same for the bytes of a batch: at 100 MB Spark works at half the speed."""

COLUMNS: Final = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "headers": pa.map_(pa.string(), pa.binary()),
    "producer_timestamp": pa.timestamp("us", tz="UTC"),
}
"""What a row may have. `timestamp` is when the leader appended the record, `producer_timestamp`
what its producer said, null where it said nothing."""

TEXT_COLUMNS: Final = ("key", "value")
"""Columns that a schema may also have as text."""


class RowShape:
    """The columns a query wants, in its order."""

    def __init__(
        self, fields: Sequence[tuple[str, Any]], values: ValueOptions | None = None
    ) -> None:
        """Take names and Arrow types; `InvalidArgument` names a column that cannot be given.

        `values` says which column has decoded values, and how they are decoded.
        """
        self._values: ValueReader | None = None
        for name, kind in fields:
            if values is not None and name == values.column and pa.types.is_struct(kind):
                self._values = ValueReader(values, kind)
            elif name not in COLUMNS:
                raise InvalidArgument(f"a topic has no column {name}; it has {', '.join(COLUMNS)}")
            elif kind != COLUMNS[name] and not (name in TEXT_COLUMNS and kind == pa.string()):
                is_, asked = spark_name(COLUMNS[name]), spark_name(kind)
                hint = ": map_entries(headers) makes pairs of it" * (name == "headers")
                raise InvalidArgument(f"the column {name} is {is_}, not {asked}{hint}")
        if values is not None and self._values is None:
            raise InvalidArgument(
                f"the schema has no struct {values.column} for the decoded values: "
                "name one, or leave out valueFormat"
            )
        self.schema = pa.schema([pa.field(name, kind) for name, kind in fields])
        self.stored = [name for name in self.schema.names if name in SCHEMA.names]
        if self._values is not None:
            # Decoded from the value, and a bad one is named by its offset.
            self.stored += [name for name in ("value", "offset") if name not in self.stored]

    def batches(
        self, topic: str, partition: int, received: Iterable[ReceivedBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition's batches, in batches of a size that suits Spark."""
        waiting: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in received:
            waiting.append(batch.to_arrow().select(self.stored))
            rows += len(batch)
            # What the batch takes as it is stored, its share of it if only some is meant.
            size += batch.batch.length * len(batch) // batch.batch.count
            if rows >= ROWS_PER_BATCH or size >= BYTES_PER_BATCH:
                yield from self._cut(topic, partition, waiting, size)
                waiting, rows, size = [], 0, 0
        if waiting:
            yield from self._cut(topic, partition, waiting, size)

    def finished(self, topic: str, partition: int, whole: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows of one partition with all columns that the query wants, in its order.

        Rows whose values are bad may be left out, if the query wants that.
        """
        structs = None
        if self._values is not None:
            whole, structs = self._values.decoded(whole, topic=topic, partition=partition)
        columns = [
            structs
            if self._values is not None and field.name == self._values.column
            else self._column(field, topic, partition, whole)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _cut(
        self, topic: str, partition: int, parts: list[pa.RecordBatch], size: int
    ) -> Iterator[pa.RecordBatch]:
        whole = parts[0] if len(parts) == 1 else pa.concat_batches(parts)
        batch = self.finished(topic, partition, whole)
        count = batch.num_rows
        if not count:
            return iter(())
        pieces = max(-(-count // (2 * ROWS_PER_BATCH)), -(-size // (2 * BYTES_PER_BATCH)))
        step = -(-count // pieces)
        return (batch.slice(at, step) for at in range(0, count, step))

    def _column(
        self, field: pa.Field, topic: str, partition: int, whole: pa.RecordBatch
    ) -> pa.Array:
        match field.name:
            case "topic":
                return pa.repeat(pa.scalar(topic, field.type), whole.num_rows)
            case "partition":
                return pa.repeat(pa.scalar(partition, field.type), whole.num_rows)
        column = whole.column(field.name)
        if column.type == field.type:
            return column
        try:
            return column.cast(field.type)
        except pa.ArrowInvalid:
            raise InvalidArgument(
                f"the column {field.name} of {topic} partition {partition} is not all text; "
                "read it as binary"
            ) from None


def range_rows(ranges: Iterable[OffsetRange]) -> pa.RecordBatch:
    """Return ranges of offsets as rows, instead of the records in them."""
    fields = [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("start", pa.int64()),
        ("stop", pa.int64()),
        ("topic_id", pa.int64()),
    ]
    rows = [{name: getattr(one, name) for name, _ in fields} for one in ranges]
    return pa.RecordBatch.from_pylist(rows, schema=pa.schema(fields))
