"""Which name was perhaps meant, where one was asked for that is not there."""

from __future__ import annotations

import re
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from angarium.errors import AngariumError, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.client import Client

_MISSING: Final = re.compile(r"there is no (topic|group) '([^']+)'")
"""How every node says it; errors travel as a code and a sentence."""


def nearest(name: str, known: Sequence[str] | None) -> str | None:
    """Return the one of `known` that was perhaps meant."""
    return next(iter(get_close_matches(name, known or (), n=1)), None)


async def add_guess(client: Client, error: NotFound) -> None:
    """Ask in a note of `error` whether something alike was meant that is there."""
    missing = _MISSING.search(str(error))
    if missing is None:
        return
    kind, name = missing.groups()
    with suppress(AngariumError):  # the error that there is says more
        known = await (client.list_topics() if kind == "topic" else client.list_groups())
        near = nearest(name, [one.name for one in known])
        if near is not None:
            error.add_note(f"Did you mean {near}?")
