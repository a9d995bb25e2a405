"""Headers of many records at once: entries are added and replaced by columns, not record by record.

Spark's own functions on maps refuse a name that comes twice, which a record's headers may have. So
this is done in Arrow, where a map is what it is in a batch: two columns, and where each record's
part of them begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame

HEADERS: Final = pa.map_(pa.string(), pa.binary())


def same_for_each(entries: Mapping[str, pa.Array]) -> pa.MapArray:
    """Return headers in which every record has each of these names, with its value of the column.

    Columns are texts, bytes or numbers; numbers are written as text.
    """
    columns = [_as_bytes(column) for column in entries.values()]
    count, width = len(columns[0]), len(columns)
    # Column k of record i lies at k * count + i; a record's entries follow each other.
    order = np.arange(width) * count + np.arange(count)[:, np.newaxis]
    return pa.MapArray.from_arrays(
        pa.array(np.arange(count + 1) * width, pa.int32()),
        pa.array(list(entries), pa.string()).take(pa.array(np.tile(np.arange(width), count))),
        pa.concat_arrays(columns).take(pa.array(order.ravel())),
    )


def joined(old: pa.MapArray, new: pa.MapArray, *, replaces: str) -> pa.MapArray:
    """Return the headers of `old` with those of `new` behind them, record by record.

    Entries of `old` whose names begin with `replaces` are left out: they are about another journey.
    """
    at_old, row_of_old = _entries(old)
    is_kept = pc.invert(pc.starts_with(old.keys, replaces)).to_numpy(zero_copy_only=False)
    kept = is_kept[at_old]
    at_old, row_of_old = at_old[kept], row_of_old[kept]
    at_new, row_of_new = _entries(new)
    rows = np.concatenate([row_of_old, row_of_new])
    order = np.argsort(rows, kind="stable")
    at = pa.array(np.concatenate([at_old, at_new + len(old.keys)])[order])
    bounds = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(old)))])
    return pa.MapArray.from_arrays(
        pa.array(bounds, pa.int32()),
        pa.concat_arrays([old.keys, new.keys]).take(at),
        pa.concat_arrays([old.items, new.items]).take(at),
    )


def with_headers(rows: DataFrame, *, added: str, replaces: str) -> DataFrame:
    """Return rows whose column `headers` has what the column `added` says behind its own."""
    from pyspark.sql.types import StructType  # noqa: PLC0415 (an extra)

    schema = StructType([field for field in rows.schema.fields if field.name != added])
    return rows.mapInArrow(_joins(added, replaces), schema)


def _joins(
    added: str, replaces: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def with_added(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not batch.num_rows:
                continue
            headers = joined(batch.column("headers"), batch.column(added), replaces=replaces)
            at = batch.schema.get_field_index("headers")
            whole = batch.set_column(at, pa.field("headers", HEADERS), headers)
            yield whole.drop_columns([added])

    return with_added


def _entries(headers: pa.MapArray) -> tuple[np.ndarray, np.ndarray]:
    """Return where each entry lies in the map's columns, and the record that it belongs to."""
    bounds = headers.offsets.to_numpy()
    starts, counts = bounds[:-1], np.diff(bounds)
    if headers.null_count:
        # A null map may hide entries behind its null.
        counts = np.where(headers.is_valid().to_numpy(zero_copy_only=False), counts, 0)
    before = np.cumsum(counts) - counts
    at = np.repeat(starts - before, counts) + np.arange(counts.sum())
    return at, np.repeat(np.arange(len(headers)), counts)


def _as_bytes(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    if pa.types.is_integer(column.type):
        column = column.cast(pa.string())
    return column.cast(pa.binary())
