"""The types of the schema that are made from the declarations of settings (`api.settings`)."""

from __future__ import annotations

import json
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from angarium.api.settings import settings_of

if TYPE_CHECKING:
    import msgspec

    from angarium.api.settings import Setting

_INT_END: Final = 1 << 31


def settings_sdl(name: str, config: type[msgspec.Struct], *, known: str) -> str:
    """Return the type that shows settings, the input that takes them, and their choices.

    Choices that the schema has in `known` are not defined again.
    """
    settings = settings_of(config)
    shown = [f'  "{one.about.sentence}"\n  {_field(one)}' for one in settings]
    taken = [f"  {camel(one.name)}: {_kind(one)}{_default(one)}" for one in settings]
    choices = {_kind(one): one for one in settings if one.words}
    parts = [
        f'"{one.about.sentence}"\nenum {kind} {{ {" ".join(map(str, _members(one)))} }}\n'
        for kind, one in choices.items()
        if f"enum {kind} " not in known
    ]
    parts.append(f"type {name} {{\n" + "\n".join(shown) + "\n}\n")
    parts.append(
        f'"What is left out, or null, has its default."\ninput {name}Input {{\n'
        + "\n".join(taken)
        + "\n}\n"
    )
    return "\n".join(parts)


def camel(name: str) -> str:
    """Return a name as GraphQL writes it."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _field(one: Setting) -> str:
    return f"{camel(one.name)}: {_kind(one)}{'' if one.may_be_none else '!'}"


def _kind(one: Setting) -> str:
    if one.words:
        return one.kind.__name__ if issubclass(one.kind, IntEnum) else one.name.capitalize()
    if one.bounds is not None:
        return "Long" if one.unit == "ms" or one.bounds[1] >= _INT_END else "Int"
    return "Boolean" if one.kind is bool else "String"


def _members(one: Setting) -> tuple[str, ...]:
    """Return the words of a choice: those of an enum as Python has them."""
    if issubclass(one.kind, IntEnum):
        return tuple(member.name for member in one.kind)
    return one.words


def _default(one: Setting) -> str:
    if one.default is None:
        return ""
    value: Any = json.dumps(one.default)
    if one.words:
        value = _members(one)[one.words.index(one.default)]
    return f" = {value}"
