"""What a query says about its values: their format, their schema, their column, and the bad ones.

Files are read where options are checked, on the driver, so that executors need none.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from angarium.errors import InvalidArgument

if TYPE_CHECKING:
    from angarium.spark.options import Given

READ_NAMES: Final = (
    "valueFormat",
    "valueSchema",
    "valueSchemaFile",
    "valueMessage",
    "valueColumn",
    "badValues",
)
WRITE_NAMES: Final = READ_NAMES[:-1]

SCHEMA_BYTES_MAX: Final = 16 << 20
"""How large a schema may be; it travels with every task. A larger file is refused."""


class ValueFormat(Enum):
    """How values are written."""

    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"


class BadValues(Enum):
    """What happens to a value that is not what its schema says."""

    FAIL = "fail"
    """The task fails and names the record: nothing is passed over unnoticed."""
    NULL = "null"
    """Its column is null; the record is there all the same."""
    DROP = "drop"
    """The record is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueOptions:
    """Structured values, as they were asked for."""

    format: ValueFormat
    column: str = "value"
    schema: bytes = b""
    """DDL for JSON (empty: as the query's schema says), JSON for Avro, descriptors for Protobuf."""
    message: str = ""
    """The full name of a Protobuf message."""
    bad: BadValues = BadValues.FAIL


def value_options(options: Given) -> ValueOptions | None:
    """Return what is said about values; None if they stay bytes."""
    form = options.word("valueFormat", ("binary", *(one.value for one in ValueFormat)))
    if form == "binary":
        for name in READ_NAMES[1:]:
            if name in options:
                raise InvalidArgument(f"option {name} means nothing without valueFormat")
        return None
    chosen = ValueFormat(form)
    if "valueMessage" in options and chosen is not ValueFormat.PROTOBUF:
        raise InvalidArgument("option valueMessage is for valueFormat=protobuf only")
    if chosen is ValueFormat.PROTOBUF and "valueMessage" not in options:
        raise InvalidArgument("valueFormat=protobuf needs the option valueMessage: shop.v1.Order")
    schema = _schema(options, chosen)
    if not schema and chosen is not ValueFormat.JSON:
        raise InvalidArgument(f"valueFormat={form} needs the option valueSchema or valueSchemaFile")
    return ValueOptions(
        format=chosen,
        column=options.text("valueColumn") or "value",
        schema=schema,
        message=options.text("valueMessage") or "",
        bad=BadValues(options.word("badValues", tuple(one.value for one in BadValues)))
        if "badValues" in options
        else BadValues.FAIL,
    )


def _schema(options: Given, form: ValueFormat) -> bytes:
    which = options.alone("valueSchema", "valueSchemaFile")
    if which is None:
        return b""
    text = options.text(which)
    assert text is not None, "it was given, and an empty one is refused"
    if which == "valueSchemaFile":
        try:
            content = Path(text).read_bytes()
        except OSError as error:
            raise InvalidArgument(f"option {which}: {text} cannot be read: {error}") from None
    elif form is ValueFormat.PROTOBUF:
        try:
            content = base64.b64decode(text, validate=True)
        except binascii.Error:
            raise InvalidArgument(
                f"option {which}: a descriptor set is written in base64, "
                "or in a file that valueSchemaFile names"
            ) from None
    else:
        content = text.encode()
    if len(content) > SCHEMA_BYTES_MAX:
        raise InvalidArgument(f"option {which}: more than {SCHEMA_BYTES_MAX} bytes are no schema")
    return content
