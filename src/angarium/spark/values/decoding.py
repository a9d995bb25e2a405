"""A column of values as a column of structs, and what becomes of those that are none.

Values are decoded many at a time. Where that fails, each half is tried on its own, down to the
single value that is bad: what is good is decoded as fast as ever, and one definition of "bad" is
enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from angarium.errors import InvalidArgument
from angarium.spark.values.codec import Undecodable, codec_of
from angarium.spark.values.options import BadValues

if TYPE_CHECKING:
    from angarium.spark.values.codec import ValueCodec
    from angarium.spark.values.options import ValueOptions


class ValueReader:
    """Decodes the values of one query."""

    def __init__(self, options: ValueOptions, kind: pa.DataType) -> None:
        """Decode into structs of the Arrow type `kind`; `InvalidArgument` if that cannot be."""
        self.column = options.column
        self._kind = kind
        self._bad = options.bad
        self._codec = codec_of(options)
        self._codec.check_readable(kind)

    def decoded(
        self, rows: pa.RecordBatch, *, topic: str, partition: int
    ) -> tuple[pa.RecordBatch, pa.Array]:
        """Return the rows that are kept and their values, decoded.

        `rows` have the columns value and offset.
        """
        found: list[tuple[int, str]] = []
        values = rows.column("value")
        structs = _decoded(self._codec, values, self._kind, 0, found)
        if not found:
            return rows, structs
        if self._bad is BadValues.FAIL:
            at, why = found[0]
            raise InvalidArgument(
                f"the value at offset {rows.column('offset')[at].as_py()} of {topic} partition "
                f"{partition} cannot be decoded: {why}. The option badValues=null or drop goes on"
            )
        if self._bad is BadValues.NULL:
            return rows, structs
        is_bad = pc.is_in(
            pa.array(range(rows.num_rows), pa.int64()),
            value_set=pa.array([at for at, _ in found], pa.int64()),
        )
        is_good = pc.invert(is_bad)
        return rows.filter(is_good), structs.filter(is_good)


def _decoded(
    codec: ValueCodec, values: pa.Array, kind: pa.DataType, first: int, found: list[tuple[int, str]]
) -> pa.Array:
    try:
        return codec.decoded(values, kind)
    except Undecodable as error:
        if len(values) == 1:
            found.append((first, str(error)))
            return pa.nulls(1, kind)
    half = len(values) // 2
    return pa.concat_arrays(
        [
            _decoded(codec, values.slice(0, half), kind, first, found),
            _decoded(codec, values.slice(half), kind, first + half, found),
        ]
    )
