"""What all formats have in common: bytes to structs, structs to bytes, a column at a time."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from angarium.spark.values.options import ValueFormat, ValueOptions

if TYPE_CHECKING:
    import pyarrow as pa


class Undecodable(Exception):
    """At least one of the values is not what the schema says; the text says why."""


class ValueCodec(Protocol):
    """One format with one schema."""

    def kind(self) -> pa.DataType | None:
        """Return the Arrow type of a whole value; None if only the query's schema knows."""

    def check_readable(self, kind: Any) -> None:
        """Raise `InvalidArgument` unless values can be decoded into structs of this type."""

    def check_writable(self, kind: Any) -> None:
        """Raise `InvalidArgument` unless structs of this type can be encoded."""

    def decoded(self, values: pa.Array, kind: pa.DataType) -> pa.Array:
        """Return the structs in a column of bytes; `Undecodable` if one of them is bad."""

    def encoded(self, structs: pa.Array) -> pa.Array:
        """Return structs as a column of bytes; null stays null."""


@cache
def codec_of(options: ValueOptions) -> ValueCodec:
    """Return the codec that was asked for, made once in each process."""
    match options.format:
        case ValueFormat.JSON:
            from angarium.spark.values.json_values import JsonValues  # noqa: PLC0415 (as needed)

            return JsonValues()
        case ValueFormat.AVRO:
            from angarium.spark.values.avro_values import AvroValues  # noqa: PLC0415 (an extra)

            return AvroValues(options.schema)
        case ValueFormat.PROTOBUF:
            from angarium.spark.values.protobuf_values import ProtobufValues  # noqa: PLC0415

            return ProtobufValues(options.schema, options.message)


def refuse_unusable(options: ValueOptions | None) -> None:
    """Raise `InvalidArgument` for a schema that is none; without options there is nothing wrong.

    Before Spark is started, and so also where the extra is not installed: then nothing is known.
    """
    if options is not None and importlib.util.find_spec("pyarrow") is not None:
        codec_of(options)
