"""Principals with what only the node that let them in has to know of their proof."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

from angarium.api.access import Principal

EDITIONS_MAX: Final = 1_024
"""Hashes whose edition is remembered. At the bound the one not used longest is worked out again."""


class PasswordPrincipal(Principal, frozen=True, kw_only=True):
    """Who has come with a password. With another one it would be another proof."""

    edition: str
    """Which of the user's passwords it was (`edition_of`). Told to nobody."""


@lru_cache(EDITIONS_MAX)
def edition_of(password_hash: str) -> str:
    """Return what tells a password from those before and after it, given what is kept of it.

    Each hash has a salt of its own, so the same password set again is another one.
    """
    return hashlib.blake2b(password_hash.encode(), digest_size=8).hexdigest()


def shown(principal: Principal) -> Principal:
    """Return a principal as others are shown it."""
    fields = {name: getattr(principal, name) for name in Principal.__struct_fields__}
    return Principal(**fields)
