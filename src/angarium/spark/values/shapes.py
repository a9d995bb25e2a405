"""Comparing what a query wants with what a schema has."""

from __future__ import annotations

from typing import Any

import pyarrow.types as kinds

from angarium.errors import InvalidArgument
from angarium.spark.type_names import spark_name


def refuse_unknown_members(wanted: Any, known: Any, source: str, name: str = "value") -> None:
    """Raise `InvalidArgument` unless `wanted` has only members of `known`, of the same types.

    Fewer members are fine, in any order.
    """
    if kinds.is_struct(wanted) and kinds.is_struct(known):
        has = {field.name: field.type for field in known}
        for field in wanted:
            if field.name not in has:
                there = ", ".join(has) or "none"
                raise InvalidArgument(
                    f"{source} has no {name}.{field.name}; its members are {there}"
                )
            refuse_unknown_members(field.type, has[field.name], source, f"{name}.{field.name}")
    elif kinds.is_list(wanted) and kinds.is_list(known):
        refuse_unknown_members(wanted.value_type, known.value_type, source, f"{name}[]")
    elif kinds.is_map(wanted) and kinds.is_map(known):
        refuse_unknown_members(wanted.key_type, known.key_type, source, f"{name}'s keys")
        refuse_unknown_members(wanted.item_type, known.item_type, source, f"{name}[]")
    elif wanted != known:
        raise InvalidArgument(
            f"{name} is {spark_name(known)} in {source}, not {spark_name(wanted)}"
        )
