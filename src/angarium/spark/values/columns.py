"""The columns of a query whose values are decoded, in Spark's own terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from angarium.errors import InvalidArgument
from angarium.spark.values.codec import codec_of

if TYPE_CHECKING:
    from angarium.spark.values.options import ValueOptions


def structured(row: StructType, values: ValueOptions) -> StructType | str:
    """Return the columns of a row with the decoded value in the place of its bytes.

    The shape of JSON is written in DDL, which only Spark's own parser reads; so it is handed on as
    it is.
    """
    kind = codec_of(values).kind()
    if kind is not None:
        decoded = StructField(values.column, from_arrow_type(kind))
        return StructType([decoded if one.name == "value" else one for one in row.fields])
    if not values.schema:
        raise InvalidArgument(
            "valueFormat=json needs the option valueSchema ('amount double, customer string'), "
            f"or a schema with a struct {values.column}"
        )
    text = values.schema.decode().strip()
    struct = text if text.lower().startswith("struct<") else f"struct<{text}>"
    return ", ".join(
        f"{_quoted(values.column)} {struct}"
        if one.name == "value"
        else f"{_quoted(one.name)} {one.dataType.simpleString()}"
        for one in row.fields
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
