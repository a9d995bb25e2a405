"""JSON forms of the contract's values, made from the values themselves.

What can be chosen is read from the settings' declarations (`api.settings`), with their bounds; what
is answered has the fields of the contract's own structs, all of them always there. The OpenAPI
document shows these forms, so a new setting or a new field of an answer is in it by itself.
"""

from __future__ import annotations

from enum import IntEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from angarium.api.settings import Setting, settings_of, word_of

Form = type[msgspec.Struct]
C = TypeVar("C", bound=msgspec.Struct)

_FORMS: Final[dict[object, Any]] = {}
"""What a struct of the contract looks like wherever it is a part of another one."""


def settings_form(name: str, config: Form, sentence: str) -> Any:
    """Return the class that reads and shows the settings of a config."""
    fields = [(one.name, _setting_type(one), one.default) for one in settings_of(config)]
    form = msgspec.defstruct(
        name, fields, frozen=True, forbid_unknown_fields=True, namespace={"__doc__": sentence}
    )
    _FORMS[config] = form
    return form


def answer_form(name: str, source: Form, **instead: Any) -> Form:
    """Return the class that shows a struct of the contract.

    `instead`: other types for some fields, None for those that are not shown; names of their own
    are added.
    """
    hints = {**get_type_hints(source), **instead}
    fields = [(one, _json_type(kind)) for one, kind in hints.items() if kind is not None]
    doc = {"__doc__": source.__doc__}
    form = _FORMS[source] = msgspec.defstruct(name, fields, frozen=True, namespace=doc)
    return form


def chosen(kind: type[C], form: msgspec.Struct) -> C:
    """Return the settings that were read; the contract knows the words of its choices."""
    return kind(**{name: getattr(form, name) for name in form.__struct_fields__})


def written(config: msgspec.Struct) -> dict[str, Any]:
    """Return settings as JSON shows them."""
    return {one.name: one.word(getattr(config, one.name)) for one in settings_of(type(config))}


def words_pattern(words: type[IntEnum]) -> str:
    """Return the pattern of a choice's words."""
    return f"^({'|'.join(map(word_of, words))})$"


def _setting_type(one: Setting) -> Any:
    kind: Any = one.kind
    if issubclass(kind, IntEnum):
        # As in Python, where the member is called so.
        also = [word.replace("-", "_") for word in one.words if "-" in word]
        kind = Annotated[str, Meta(pattern=f"^({'|'.join((*one.words, *also))})$")]
    elif one.words:
        kind = Literal[one.words]
    elif one.bounds is not None:
        kind = Annotated[int, Meta(ge=one.bounds[0], le=one.bounds[1])]
    meaning = one.about.sentence
    if one.may_be_none:
        kind, meaning = kind | None, f"{meaning} Null: {one.about.none}."
    return Annotated[kind, Meta(description=meaning)]


def _json_type(kind: Any) -> Any:
    if kind in _FORMS:
        return _FORMS[kind]
    inside = get_args(kind)
    if get_origin(kind) is tuple and inside[-1] is ...:
        return list[_json_type(inside[0])]  # type: ignore[misc]
    if isinstance(kind, UnionType) or NoneType in inside:
        (only,) = (one for one in inside if one is not NoneType)
        return _json_type(only) | None
    if isinstance(kind, type) and issubclass(kind, IntEnum):
        return Annotated[str, Meta(pattern=words_pattern(kind))]
    return getattr(kind, "__supertype__", kind)  # offsets and the like are numbers
