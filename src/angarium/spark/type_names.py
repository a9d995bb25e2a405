"""Arrow's types by the names that Spark has for them: those are what people write in schemas."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.types as kinds

_NAMES: Final = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
}


def spark_name(kind: Any) -> str:
    """Return a type as Spark's DDL has it; one that Spark does not have, as Arrow calls it."""
    if kinds.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if kinds.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if kinds.is_map(kind):
        return f"map<{spark_name(kind.key_type)},{spark_name(kind.item_type)}>"
    if kinds.is_list(kind):
        return f"array<{spark_name(kind.value_type)}>"
    if kinds.is_struct(kind):
        return f"struct<{','.join(f'{one.name}:{spark_name(one.type)}' for one in kind)}>"
    return _NAMES.get(kind, str(kind))
