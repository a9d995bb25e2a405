"""Tokens: random texts that stand for somebody, shown once and kept as digests.

A token has 256 random bits, so one round of SHA-256 is enough to keep it: nobody guesses its way
to it. It begins with letters of its own, by which doors tell it from a JWT and searches for leaked
secrets find it.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import Final

from angarium.security.secret import Secret

PREFIX: Final = "angt_"
JOIN_PREFIX: Final = "angj_"
"""Of a join token, which stands for nobody: it lets one node in."""
TOKEN_BYTES: Final = 32

_FORM: Final = re.compile(PREFIX + r"[A-Za-z0-9_-]{43}", re.ASCII)
_JOIN_FORM: Final = re.compile(JOIN_PREFIX + r"[A-Za-z0-9_-]{43}", re.ASCII)


def new_token() -> Secret:
    """Return a token that nobody has had before."""
    return Secret(PREFIX + secrets.token_urlsafe(TOKEN_BYTES))


def is_token(text: str) -> bool:
    """Tell whether `text` has the form of a token; a look at any text, however long, is cheap."""
    return len(text) == len(PREFIX) + 43 and _FORM.fullmatch(text) is not None


def new_join_token() -> Secret:
    """Return a join token that nobody has had before."""
    return Secret(JOIN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES))


def is_join_token(text: str) -> bool:
    """Tell whether `text` has the form of a join token."""
    return len(text) == len(JOIN_PREFIX) + 43 and _JOIN_FORM.fullmatch(text) is not None


def token_digest(text: str) -> bytes:
    """Return what is kept of a token, and what it is found by."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()
