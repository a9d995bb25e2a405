"""What flags say about the settings of topics and groups, and how settings are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from angarium.api.settings import check, settings_of
from angarium.cli.complaints import Refusal
from angarium.cli.grammar.quantities import NO_LIMIT
from angarium.cli.grammar.settings import YES_OR_NO, flag_of, shown_setting

if TYPE_CHECKING:
    from argparse import Namespace

C = TypeVar("C", bound=msgspec.Struct)


def changed(config: C, options: Namespace) -> C:
    """Return `config` with what the flags say."""
    given: dict[str, Any] = {}
    for one in settings_of(type(config)):
        value = getattr(options, one.name, None)
        if value is None:
            continue
        if one.kind is bool:
            value = value == YES_OR_NO[0]
        elif value == NO_LIMIT:
            if not one.may_be_none:
                raise Refusal(f"{flag_of(one.name)}: it cannot be none")
            value = None
        given[one.name] = value
    found = type(config)(**{**msgspec.structs.asdict(config), **given})
    check(found)
    return found


def shown(config: msgspec.Struct) -> dict[str, str]:
    """Return settings as people read them, by the names of their flags."""
    return {
        flag_of(one.name)[2:].replace("-", " "): shown_setting(one, getattr(config, one.name))
        for one in settings_of(type(config))
    }
