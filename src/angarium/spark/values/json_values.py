"""JSON values: parsed by whole columns, in compiled code.

A value is an object; names that the schema does not have are passed over, and names that the value
does not have are null. Numbers are numbers and texts are texts: nothing is converted into the
other. Times are texts in ISO 8601.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.types as kinds

from angarium.errors import InvalidArgument
from angarium.spark.type_names import spark_name
from angarium.spark.values.codec import Undecodable
from angarium.spark.values.json_texts import json_texts, refuse_unwritable

if TYPE_CHECKING:
    from collections.abc import Callable

_READABLE: Final[tuple[Callable[[Any], bool], ...]] = (
    kinds.is_boolean,
    kinds.is_integer,
    kinds.is_floating,
    kinds.is_decimal,
    kinds.is_string,
    kinds.is_date32,
    kinds.is_timestamp,
)

_OPENING: Final = pa.scalar(b'{"v":', pa.binary())
_CLOSING: Final = pa.scalar(b"}\n", pa.binary())
_NOTHING: Final = pa.scalar(b"", pa.binary())
_NULL: Final = pa.scalar(b"null", pa.binary())


class JsonValues:
    """Values in JSON, of whatever shape the query's schema says."""

    def kind(self) -> pa.DataType | None:
        """Return None: the shape is the query's own."""
        return None

    def check_readable(self, kind: Any) -> None:
        """Raise `InvalidArgument` for a type that has no form in JSON here."""
        _refuse_unreadable(kind, "value")

    def check_writable(self, kind: Any) -> None:
        """Raise `InvalidArgument` for a type that has no form in JSON here."""
        refuse_unwritable(kind)

    def decoded(self, values: pa.Array, kind: pa.DataType) -> pa.Array:
        """Return the objects in a column of texts."""
        count = len(values)
        if not count:
            return pa.nulls(0, kind)
        try:
            values.cast(pa.string())  # the parser lets through what is not UTF-8
            parsed = _parsed(_lines(values), count, _parsed_kind(kind))
            return parsed.cast(kind)
        except pa.ArrowInvalid as error:
            raise Undecodable(_said(error)) from None

    def encoded(self, structs: pa.Array) -> pa.Array:
        """Return structs as texts; null stays null."""
        return json_texts(structs).cast(pa.binary())


def _lines(values: pa.Array) -> pa.Buffer:
    """Return every value as the one member of an object on a line of its own.

    A line that parses is then at least one row, whatever is in the value: objects can neither be
    empty nor join across lines. So as many rows as values means a row for each.
    """
    lines = pc.binary_join_element_wise(
        _OPENING, values.cast(pa.binary()).fill_null(_NULL), _CLOSING, _NOTHING
    )
    offsets, data = lines.buffers()[1:]
    ends = memoryview(offsets).cast("i")
    first = ends[lines.offset]
    return data.slice(first, ends[lines.offset + len(lines)] - first)


def _parsed(lines: pa.Buffer, count: int, kind: pa.DataType) -> pa.Array:
    table = pj.read_json(
        pa.BufferReader(lines),
        # One block, because a value may have lines of its own.
        read_options=pj.ReadOptions(use_threads=False, block_size=lines.size + 1),
        parse_options=pj.ParseOptions(
            explicit_schema=pa.schema([("v", kind)]),
            unexpected_field_behavior="ignore",
            newlines_in_values=True,
        ),
    )
    if table.num_rows != count:
        raise pa.ArrowInvalid("a value holds more than one object")
    column = table.column("v").combine_chunks()
    return column.chunk(0) if isinstance(column, pa.ChunkedArray) else column


def _parsed_kind(kind: Any) -> Any:
    """Return the type to parse as: days are texts at first."""
    if kinds.is_struct(kind):
        return pa.struct([pa.field(one.name, _parsed_kind(one.type)) for one in kind])
    if kinds.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _parsed_kind(kind.value_type)))
    return pa.string() if kinds.is_date32(kind) else kind


def _refuse_unreadable(kind: Any, name: str) -> None:
    if kinds.is_struct(kind):
        for field in kind:
            _refuse_unreadable(field.type, f"{name}.{field.name}")
    elif kinds.is_list(kind):
        _refuse_unreadable(kind.value_type, f"{name}[]")
    elif not any(is_one(kind) for is_one in _READABLE):
        hint = "a struct with its names" if kinds.is_map(kind) else "string"
        raise InvalidArgument(f"{name} cannot be read from JSON as {spark_name(kind)}; say {hint}")


def _said(error: Exception) -> str:
    """Return the parser's words without its own names for column and row."""
    return str(error).removeprefix("JSON parse error: ").replace("/v/", "").split(" in row ")[0]
