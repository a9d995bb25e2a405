"""Spark's columns in Arrow's terms, in the way that this PySpark's version wants to be asked."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.pandas.types import to_arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_UTC: Final[dict[str, Any]] = (
    # Before PySpark 4.2 the time zone could only be UTC or none, and UTC is the default.
    {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
)


def arrow_columns(schema: StructType) -> list[tuple[str, pa.DataType]]:
    """Return a schema's columns with their Arrow types; times are in UTC."""
    return [(field.name, field.type) for field in to_arrow_schema(schema, **_UTC)]
