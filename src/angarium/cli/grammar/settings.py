"""Flags for the settings of topics and groups, made from their declarations (`api.settings`).

`retention_ms` is `--retention 7d`, `batch_bytes_max` is `--batch-bytes-max 1MiB`. What the contract
says is read when the flags are needed, and not before: help for other words stays instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from angarium.cli.grammar.quantities import (
    duration_ms,
    shown_duration,
    shown_size,
    size_bytes,
)
from angarium.cli.grammar.words import natural

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from angarium.api.settings import Setting

_READ: Final[dict[str, tuple[Callable[[str], object], str, str]]] = {
    "ms": (duration_ms, "TIME", "7d"),
    "bytes": (size_bytes, "SIZE", "10GiB"),
    "percent": (natural, "N", "50"),
    "": (natural, "N", ""),
}
"""By unit: what reads it, what help calls it, and an example."""

YES_OR_NO: Final = ("yes", "no")

NO_NAMES: Final = "none"
"""How an empty list of names is written and shown."""


def add_topic_settings(parser: argparse.ArgumentParser) -> None:
    """Add the flags for a topic's settings."""
    from angarium.api import TopicConfig  # noqa: PLC0415  (when it is needed)

    _add(parser, TopicConfig)


def add_group_settings(parser: argparse.ArgumentParser) -> None:
    """Add the flags for a group's settings."""
    from angarium.api import GroupConfig  # noqa: PLC0415  (when it is needed)

    _add(parser, GroupConfig)


def flag_of(name: str) -> str:
    """Return the flag for a setting."""
    return "--" + name.removesuffix("_ms").replace("_", "-")


def _add(parser: argparse.ArgumentParser, config: Any) -> None:
    from angarium.api.settings import settings_of  # noqa: PLC0415  (when it is needed)

    flags = parser.add_argument_group("settings")
    for one in settings_of(config):
        flags.add_argument(flag_of(one.name), dest=one.name, **_options(one))


def _options(one: Setting) -> dict[str, Any]:
    sentence = _sentence(one)
    if one.words:
        return {"type": _word, "choices": one.words, "help": sentence}
    if one.kind is bool:
        return {"choices": YES_OR_NO, "help": sentence}
    if one.is_list:
        return {"type": _names, "metavar": "NAME,NAME", "help": sentence}
    if one.kind is str:
        return {"metavar": "NAME", "help": sentence}
    read, metavar, _ = _READ[one.unit]
    return {"type": read, "metavar": metavar, "help": sentence}


def _names(text: str) -> tuple[str, ...]:
    """Read names with commas between them; "none", or nothing at all, is no name."""
    if text == NO_NAMES:
        return ()
    return tuple(one.strip() for one in text.split(",") if one.strip())


def _word(text: str) -> str:
    return text.replace("_", "-")


def _sentence(one: Setting) -> str:
    """Return what help says: a part of a sentence, an example or the default."""
    parts = one.about.sentence.rstrip(".").split(". ")
    sentence = "; ".join(part[:1].lower() + part[1:] for part in parts)
    example = _READ[one.unit][2]
    if one.may_be_none and example:
        return f'{sentence}, e.g. {example}; "none": {one.about.none}'
    return f"{sentence} (default: {shown_setting(one, one.default)})"


def shown_setting(one: Setting, value: Any) -> str:
    """Return a value of a setting as people read it."""
    match one.unit:
        case _ if value is None:
            return one.about.none
        case "ms":
            return shown_duration(value)
        case "bytes":
            return shown_size(value)
        case _ if one.kind is bool:
            return YES_OR_NO[not value]
        case _ if one.is_list:
            return ", ".join(value) or NO_NAMES
        case _:
            return str(one.word(value))
