"""Settings, each declared once: what it may be, and what it means.

A field of `TopicConfig` or `GroupConfig` carries an `About` in its annotation. The doors' schemas
(REST, OpenAPI, GraphQL, protobuf), the flags of the command line, the page about settings and the
check behind the contract all read it here. So a new setting is a field of the contract, and a
column of what the catalog keeps; CONTRIBUTING.md has the walk.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from types import NoneType
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from angarium.errors import InvalidArgument

NAMES_MAX: Final = 64
NAME_CHARACTERS_MAX: Final = 64
"""How many names a setting may list, and how long each may be."""

UNITS: Final = {"_ms": "ms", "_bytes": "bytes", "_bytes_max": "bytes", "_percent": "percent"}
"""How a setting's name ends, and what it is counted in."""


class About(NamedTuple):
    """What a field says of its setting."""

    sentence: str
    """What the setting does, for people: in help, in schemas, on the page."""
    least: int | None = None
    largest: int | None = None
    """Bounds of a number. None: it is none."""
    none: str = "no limit"
    """What None stands for, if it may be that."""
    level: int = 1
    """The feature level that brought it. A node of an older release reads over it without a word,
    so clients do not send it there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting of a topic or a group."""

    name: str
    kind: type
    """int, bool, str, or the enum of a choice that has one."""
    words: tuple[str, ...]
    """What may be chosen, as people write it; empty if it is no choice."""
    unit: str
    """ms, bytes or percent; empty for what is only counted, and for what is no number."""
    default: Any
    """Of a choice, its word."""
    may_be_none: bool
    is_list: bool
    """Whether it is a list of such, each different."""
    about: About

    @property
    def bounds(self) -> tuple[int, int] | None:
        """From where to where a number goes."""
        least, largest = self.about.least, self.about.largest
        return None if least is None or largest is None else (least, largest)

    def word(self, value: object) -> Any:
        """Return a value of this setting as people write it."""
        return word_of(value) if isinstance(value, IntEnum) else value


@cache
def settings_of(config: type[msgspec.Struct]) -> tuple[Setting, ...]:
    """Return the settings of a config, in the order of its fields."""
    hints = get_type_hints(config, include_extras=True)
    return tuple(_setting(one, hints[one.name]) for one in msgspec.structs.fields(config))


def level_of(config: msgspec.Struct) -> int:
    """Return the feature level that brought what a config says, other than defaults."""
    return max(
        (
            one.about.level
            for one in settings_of(type(config))
            if one.word(getattr(config, one.name)) != one.default
        ),
        default=1,
    )


def check(config: msgspec.Struct) -> None:
    """Raise `InvalidArgument`, which names the setting and what it may be."""
    for setting in settings_of(type(config)):
        value, bounds = getattr(config, setting.name), setting.bounds
        if value is not None and bounds is not None and not bounds[0] <= value <= bounds[1]:
            raise InvalidArgument(f"{setting.name} is from {bounds[0]} to {bounds[1]}, not {value}")
        if setting.is_list:
            _check_names(setting.name, value)
        elif setting.kind is str and setting.words and value not in setting.words:
            words = ", ".join(setting.words)
            raise InvalidArgument(f"{setting.name}: {value!r} is not one of {words}")


def kept(config: msgspec.Struct) -> dict[str, Any]:
    """Return settings under the names, and in the units, in which they are kept: times in µs."""
    found = {one: getattr(config, one.name) for one in settings_of(type(config))}
    return {
        column_of(one): value * 1_000 if one.unit == "ms" and value is not None else value
        for one, value in found.items()
    }


def told(config: type[msgspec.Struct], columns: msgspec.Struct) -> dict[str, Any]:
    """Return settings as the contract has them, from how they were kept."""
    found = {one: getattr(columns, column_of(one)) for one in settings_of(config)}
    return {
        one.name: value // 1_000 if one.unit == "ms" and value is not None else value
        for one, value in found.items()
    }


def column_of(setting: Setting) -> str:
    """Return under which name a setting is kept: its own, but that a time says µs."""
    if setting.unit == "ms":
        return f"{setting.name.removesuffix('_ms')}_micros"
    # These columns' names are part of the golden description of version 1, and so stay.
    older = {"retention_groups": "until_consumed", "regions": "homes"}
    return older.get(setting.name, setting.name)


def word_of(member: IntEnum) -> str:
    """Return a member of a choice as it is written everywhere but in Python."""
    return member.name.lower().replace("_", "-")


def _check_names(setting: str, names: tuple[str, ...]) -> None:
    if len(names) > NAMES_MAX:
        raise InvalidArgument(f"{setting} has up to {NAMES_MAX} names, not {len(names)}")
    if len(set(names)) < len(names):
        raise InvalidArgument(f"{setting} names something twice: {', '.join(names)}")
    for one in names:
        if not 0 < len(one) <= NAME_CHARACTERS_MAX or one != one.strip() or "," in one:
            raise InvalidArgument(
                f"{setting}: {one!r} is no name: it has 1 to {NAME_CHARACTERS_MAX} characters, and "
                "neither commas nor spaces around it"
            )


def _setting(field: msgspec.structs.FieldInfo, hint: Any) -> Setting:
    assert get_origin(hint) is Annotated, f"{field.name} says nothing about itself"
    kind, about = get_args(hint)
    is_list = get_origin(kind) is tuple
    kinds = [one for one in (get_args(kind) or (kind,)) if one is not NoneType]
    words: tuple[str, ...] = ()
    default = field.default
    if get_origin(kind) is Literal:
        kinds, words = [str], get_args(kind)
    elif issubclass(kinds[0], IntEnum):
        words, default = tuple(map(word_of, kinds[0])), word_of(default)
    unit = next((unit for end, unit in UNITS.items() if field.name.endswith(end)), "")
    return Setting(
        name=field.name,
        kind=kinds[0],
        words=words,
        unit=unit,
        default=default,
        may_be_none=NoneType in get_args(kind),
        is_list=is_list,
        about=about,
    )
