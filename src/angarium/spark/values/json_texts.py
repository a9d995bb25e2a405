"""Columns as JSON texts, by whole columns: there is no step for each record.

Null members are written as null. Times are ISO 8601 in UTC, days too; decimals are numbers with all
their digits; what is not a number (NaN, infinity) is null, because JSON has no word for it.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from angarium.errors import InvalidArgument
from angarium.spark.type_names import spark_name

_QUOTES: Final = r'["\\]'
_CONTROLS: Final = r"[\x00-\x1f]"
"""Characters that a JSON text may not have as they are."""

_QUOTE_ESCAPES: Final = (("\\", "\\\\"), ('"', '\\"'))
_CONTROL_ESCAPES: Final = tuple((chr(code), json.dumps(chr(code))[1:-1]) for code in range(32))


def json_texts(column: pa.Array) -> pa.Array:
    """Return every value of a column as JSON; null stays null."""
    kind = column.type
    if kinds.is_struct(kind):
        return _objects(column)
    if kinds.is_list(kind):
        return _lists(column)
    if kinds.is_map(kind):
        return _maps(column)
    return _simple(column)


def refuse_unwritable(kind: Any, name: str = "value") -> None:
    """Raise `InvalidArgument` for a type that has no form in JSON here, naming where it is."""
    if kinds.is_struct(kind):
        for field in kind:
            refuse_unwritable(field.type, f"{name}.{field.name}")
    elif kinds.is_list(kind):
        refuse_unwritable(kind.value_type, f"{name}[]")
    elif kinds.is_map(kind):
        if not kinds.is_string(kind.key_type):
            raise InvalidArgument(f"{name} has keys that are {kind.key_type}; JSON has only texts")
        refuse_unwritable(kind.item_type, f"{name}[]")
    elif not (
        kinds.is_boolean(kind)
        or kinds.is_integer(kind)
        or kinds.is_floating(kind)
        or kinds.is_decimal(kind)
        or kinds.is_string(kind)
        or kinds.is_date32(kind)
        or kinds.is_timestamp(kind)
    ):
        raise InvalidArgument(
            f"{name} is {spark_name(kind)}, which JSON has no form for; use base64 or string"
        )


def _simple(column: pa.Array) -> pa.Array:
    kind = column.type
    if kinds.is_string(kind):
        return _quoted(_escaped(column))
    if kinds.is_date32(kind):
        return _quoted(column.cast(pa.string()))
    if kinds.is_timestamp(kind):
        # Digits after the second are part of %S; a time without a zone stays without.
        return _quoted(pc.strftime(column, "%Y-%m-%dT%H:%M:%S" + ("Z" if kind.tz else "")))
    if kinds.is_floating(kind):
        column = pc.if_else(pc.is_finite(column), column, pa.scalar(None, kind))
    return column.cast(pa.string())


def _objects(column: pa.Array) -> pa.Array:
    pieces: list[Any] = []
    for number, field in enumerate(column.type):
        # `flatten` would carry the parents' nulls into each child; they are restored below.
        pieces += [
            pa.scalar(("," if number else "{") + json.dumps(field.name, ensure_ascii=False) + ":"),
            json_texts(column.field(number)).fill_null("null"),
        ]
    if not pieces:
        texts = pa.repeat(pa.scalar("{}"), len(column))
    else:
        texts = pc.binary_join_element_wise(*pieces, pa.scalar("}"), pa.scalar(""))
    return _null_where_null(texts, column)


def _lists(column: pa.Array) -> pa.Array:
    items = json_texts(column.flatten()).fill_null("null")
    return _bracketed(column, items, "[", "]")


def _maps(column: pa.Array) -> pa.Array:
    # The same entries as a list of structs; flattened, it has those of valid maps only.
    entry = pa.struct([("key", pa.string()), ("value", column.type.item_type)])
    entries = column.cast(pa.list_(entry))
    pairs = entries.flatten()
    items = pc.binary_join_element_wise(
        json_texts(pairs.field(0)), json_texts(pairs.field(1)).fill_null("null"), pa.scalar(":")
    )
    return _bracketed(entries, items, "{", "}")


def _bracketed(column: pa.Array, items: pa.Array, opening: str, closing: str) -> pa.Array:
    lengths = pc.list_value_length(column).fill_null(0)
    first = pa.array([0], pa.int32())
    ends = pa.concat_arrays([first, pc.cumulative_sum(lengths).cast(pa.int32())])
    joined = pc.binary_join(pa.ListArray.from_arrays(ends, items), ",")
    texts = pc.binary_join_element_wise(
        pa.scalar(opening), joined, pa.scalar(closing), pa.scalar("")
    )
    return _null_where_null(texts, column)


def _escaped(texts: pa.Array) -> pa.Array:
    # Backslashes first: the other escapes bring some of their own.
    for pattern, escapes in ((_QUOTES, _QUOTE_ESCAPES), (_CONTROLS, _CONTROL_ESCAPES)):
        if pc.any(pc.match_substring_regex(texts, pattern)).as_py():
            for character, escape in escapes:
                texts = pc.replace_substring(texts, character, escape)
    return texts


def _quoted(texts: pa.Array) -> pa.Array:
    quote = pa.scalar('"')
    return pc.binary_join_element_wise(quote, texts, quote, pa.scalar(""))


def _null_where_null(texts: pa.Array, column: pa.Array) -> pa.Array:
    return pc.if_else(column.is_valid(), texts, pa.scalar(None, pa.string()))
