"""Types of the schema that are made from the contract's own: its settings, and what it answers."""

from __future__ import annotations

import json
from enum import Enum, IntEnum
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin, get_type_hints

from angarium.api.settings import settings_of
from angarium.doors.http.forms import form_of
from angarium.ids import GrantId, Index, JoinTokenId, Micros, Offset, Term, TopicId
from angarium.wire.http.openapi import sentences_of

if TYPE_CHECKING:
    import msgspec

    from angarium.api.settings import Setting

_INT_END: Final = 1 << 31

_KINDS: Final[dict[Any, str]] = {
    TopicId: "ID",
    Offset: "Long",
    Micros: "Long",
    Index: "Long",
    Term: "Long",
    GrantId: "Long",
    JoinTokenId: "Long",
    int: "Int",
    float: "Float",
    bool: "Boolean",
    str: "String",
}

_LONG: Final = (
    *("lag", "_ms", "handed_on", "acked_above", "limit", "_bytes", "bytes_per_s", "bytes_left"),
    "behind",
)
"""How the names of numbers end that may be too large for an Int, though their type is int."""

DOORS: Final = ("wire", "grpc", "http")
"""A node's addresses are shown as a field for each of these."""


def value_sdl(source: type[msgspec.Struct]) -> str:
    """Return the type of what is answered: the fields of its JSON form, under the form's name.

    What the schema has no word for is left out.
    """
    sentences, hints = sentences_of(source), get_type_hints(source)
    lines = [f"type {_name(source)} {{"]
    names = zip(source.__struct_fields__, form_of(source).__struct_fields__, strict=True)
    for field, shown in names:
        kind = _value_kind(hints[field])
        if shown.endswith(_LONG) and kind is not None:
            kind = kind.replace("Int", "Long")
        if kind is not None:
            if field in sentences:
                lines.append(f"  {json.dumps(sentences[field], ensure_ascii=False)}")
            lines.append(f"  {camel(shown)}: {kind}")
        elif shown == "addresses":
            lines += [f"  {door}: String" for door in DOORS]
    return "\n".join((*lines, "}\n"))


def _value_kind(hint: Any) -> str | None:
    """Return what the schema calls a type; None if it has no word for it."""
    inside = get_args(hint)
    if NoneType in inside:
        kind = _value_kind(inside[0])
        return None if kind is None else kind.removesuffix("!")
    if get_origin(hint) is tuple and inside[-1] is ...:
        kind = _value_kind(inside[0])
        return None if kind is None else f"[{kind}]!"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return f"{hint.__name__}!"
    known = _KINDS.get(hint) or _KINDS.get(getattr(hint, "__supertype__", None))
    if known is None and form_of(hint) is not hint:
        known = _name(hint)
    return None if known is None else f"{known}!"


def _name(source: Any) -> str:
    name: str = form_of(source).__name__
    return name.removesuffix("Out").replace("Settings", "Config")


def choice_sdl(choice: type[Enum]) -> str:
    """Return a choice of the contract; its words are called as in Python."""
    lines = [f"enum {choice.__name__} {{", *(f"  {one.name}" for one in choice), "}\n"]
    said = " ".join((choice.__doc__ or "").split())
    return "\n".join((json.dumps(said, ensure_ascii=False), *lines))


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
        is_enum = issubclass(one.kind, IntEnum)
        return one.kind.__name__ if is_enum else "".join(map(str.capitalize, one.name.split("_")))
    if one.bounds is not None:
        return "Long" if one.unit == "ms" or one.bounds[1] >= _INT_END else "Int"
    kind = "Boolean" if one.kind is bool else "String"
    return f"[{kind}!]" if one.is_list else kind


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
