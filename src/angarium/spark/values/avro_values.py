"""Avro values: single records in Avro's binary encoding, by a given schema, without a header.

Decoding and encoding are fastavro's, compiled; a value that is shorter or longer than its schema
says is bad. Needs the extra `angarium[avro]`.
"""

from __future__ import annotations

import json
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from angarium.errors import InvalidArgument
from angarium.spark.values.codec import Undecodable
from angarium.spark.values.shapes import refuse_unknown_members

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
_LOGICAL: Final[Mapping[str, pa.DataType]] = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", tz="UTC"),
    "timestamp-micros": pa.timestamp("us", tz="UTC"),
}
"""Other logical types count as what they are written as, but for decimals."""

_ERRORS: Final = (ArithmeticError, EOFError, LookupError, OSError, TypeError, ValueError)
"""What fastavro and Arrow raise at bytes and values that are not what they should be."""


class AvroValues:
    """Values of one Avro schema."""

    def __init__(self, text: bytes) -> None:
        """Take a schema's JSON; `InvalidArgument` says what is wrong with it."""
        try:
            import fastavro  # noqa: PLC0415 (an extra)
        except ImportError:
            raise InvalidArgument(
                "valueFormat=avro needs the extra: pip install 'angarium[avro]'"
            ) from None
        try:
            written = json.loads(text)
            fastavro.parse_schema(written)
        except Exception as error:
            why = f"it has no {error}" if isinstance(error, KeyError) else error
            raise InvalidArgument(f"the Avro schema cannot be used: {why}") from None
        named: dict[str, pa.DataType] = {}
        self._kind = _kind(written, named, ())
        if not pa.types.is_struct(self._kind):
            raise InvalidArgument("the Avro schema is of no record; only records have columns")
        self._schema = fastavro.parse_schema(_plain(written))
        self._read = fastavro.schemaless_reader
        self._write = fastavro.schemaless_writer

    def kind(self) -> pa.DataType | None:
        """Return the Arrow type of a record."""
        return self._kind

    def check_readable(self, kind: Any) -> None:
        """Raise `InvalidArgument` unless every member is one of the schema's, of its type."""
        refuse_unknown_members(kind, self._kind, "the Avro schema")

    def check_writable(self, kind: Any) -> None:
        """Raise `InvalidArgument` unless the schema has every member, of its type."""
        refuse_unknown_members(kind, self._kind, "the Avro schema")

    def decoded(self, values: pa.Array, kind: pa.DataType) -> pa.Array:
        """Return the records in a column of bytes."""
        try:
            rows = [None if one is None else self._record(one) for one in values.to_pylist()]
            return pa.array(rows, kind)
        except _ERRORS as error:
            why = str(error) or "it ends too soon"
            raise Undecodable(f"it is no record of the schema ({why})") from None

    def encoded(self, structs: pa.Array) -> pa.Array:
        """Return records as bytes; null stays null."""
        return pa.array([self._bytes(one) for one in structs.to_pylist()], pa.binary())

    def _record(self, value: bytes) -> Any:
        source = BytesIO(value)
        record = self._read(source, self._schema, None)
        left = len(value) - source.tell()
        if left:
            raise ValueError(f"{left} bytes too many")
        return record

    def _bytes(self, row: dict[str, Any] | None) -> bytes | None:
        if row is None:
            return None
        target = BytesIO()
        try:
            # Members that the row does not have take their defaults.
            self._write(target, self._schema, row, strict_allow_default=True)
        except _ERRORS as error:
            raise InvalidArgument(f"a row is no record of the Avro schema: {error}") from None
        return target.getvalue()


def _kind(schema: Any, named: dict[str, pa.DataType], within: tuple[str, ...]) -> pa.DataType:
    """Return the Arrow type of an Avro type; `named` are the types defined so far."""
    if isinstance(schema, list):
        others = [one for one in schema if one != "null"]
        if len(others) != 1:
            raise InvalidArgument(f"a union of {len(others)} types is no column: {schema}")
        return _kind(others[0], named, within)
    if isinstance(schema, str):
        if schema in _PLAIN:
            return _PLAIN[schema]
        short = schema.rpartition(".")[2]
        if short in within:
            raise InvalidArgument(f"{schema} holds itself, which no column can")
        if short not in named:
            raise InvalidArgument(f"the Avro type {schema} is not known")
        return named[short]
    kind = _complex_kind(schema, named, within)
    if "name" in schema:
        named[str(schema["name"]).rpartition(".")[2]] = kind
    return kind


def _complex_kind(
    schema: Mapping[str, Any], named: dict[str, pa.DataType], within: tuple[str, ...]
) -> pa.DataType:
    match schema.get("logicalType"):
        case "decimal":
            return pa.decimal128(schema["precision"], schema.get("scale", 0))
        case str(logical) if logical in _LOGICAL:
            return _LOGICAL[logical]
    match schema["type"]:
        case "record":
            inside = (*within, str(schema["name"]).rpartition(".")[2])
            fields = [(one["name"], _kind(one["type"], named, inside)) for one in schema["fields"]]
            return pa.struct(fields)
        case "array":
            return pa.list_(_kind(schema["items"], named, within))
        case "map":
            return pa.map_(pa.string(), _kind(schema["values"], named, within))
        case other:
            return _kind(other, named, within) if other not in _PLAIN else _PLAIN[other]


def _plain(schema: Any) -> Any:
    """Return the schema without logical types that have no column type of their own."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: _plain(value) if key in ("type", "items", "values") else value
        for key, value in schema.items()
    }
    if "fields" in kept:
        kept["fields"] = [{**one, "type": _plain(one["type"])} for one in kept["fields"]]
    if kept.get("logicalType") not in (*_LOGICAL, "decimal"):
        kept.pop("logicalType", None)
    return kept
