"""A column of structs on its way to a topic: encoded into values, a batch of rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from angarium.errors import InvalidArgument
from angarium.spark.type_names import spark_name
from angarium.spark.values.codec import codec_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.spark.values.options import ValueOptions


def check_structs(
    fields: Sequence[tuple[str, Any]], values: ValueOptions | None
) -> list[tuple[str, Any]]:
    """Return the columns as they are once values are encoded; `InvalidArgument` if they cannot."""
    if values is None:
        return list(fields)
    given = dict(fields)
    kind = given.get(values.column)
    if kind is None or not pa.types.is_struct(kind):
        there = "there is none" if kind is None else f"it is {spark_name(kind)}"
        raise InvalidArgument(
            f"valueFormat={values.format.value} needs a struct {values.column}, and {there}"
        )
    if values.column != "value" and "value" in given:
        raise InvalidArgument(f"the columns value and {values.column} contradict each other")
    codec_of(values).check_writable(kind)
    return [
        ("value", pa.binary()) if name == values.column else (name, kind) for name, kind in fields
    ]


def with_values(rows: pa.RecordBatch, values: ValueOptions | None) -> pa.RecordBatch:
    """Return rows with their structs encoded, in a column value."""
    if values is None:
        return rows
    at = rows.schema.get_field_index(values.column)
    encoded = codec_of(values).encoded(rows.column(at))
    return rows.set_column(at, pa.field("value", pa.binary()), encoded)
