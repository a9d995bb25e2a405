"""Settings that are names, or one of a few words: the member, or how it is written elsewhere.

The command line, REST and node.toml write `eventual`; Python may write the same.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

import msgspec

from angarium.errors import InvalidArgument

_E = TypeVar("_E", bound=Enum)


def settle(config: msgspec.Struct, field: str, kind: type[_E]) -> None:
    """See to it that a field of a new, frozen struct holds a member of `kind`."""
    value = getattr(config, field)
    if isinstance(value, kind):
        return
    words = {one.name.lower().replace("_", "-"): one for one in kind}
    found = words.get(value.lower().replace("_", "-")) if isinstance(value, str) else None
    if found is None:
        raise InvalidArgument(f"{field}: {value!r} is not one of {', '.join(words)}")
    msgspec.structs.force_setattr(config, field, found)


def settle_names(config: msgspec.Struct, field: str) -> None:
    """See to it that a field of a new, frozen struct holds a tuple of names.

    One name, or several with commas between them, may be written as a string.
    """
    value = getattr(config, field)
    if isinstance(value, str):
        value = [one.strip() for one in value.split(",") if one.strip()]
    msgspec.structs.force_setattr(config, field, tuple(value))
