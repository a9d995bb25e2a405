"""A secret that somebody has to hold for a while, and that nothing prints by mistake."""

from __future__ import annotations

import hmac
from typing import final


@final
class Secret:
    """A password or a token on its way to where it is needed.

    Whatever shows the object that holds it (a `repr`, a log line, a traceback with its values, an
    f-string) shows `***`. Only `reveal` gives it away, so that a search for that word finds every
    place that does.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the secret itself."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"

    def __format__(self, how: str) -> str:
        return format("***", how)

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(_bytes(self._text), _bytes(other._text))

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        # Spark sends options to its executors in this way, inside the session's own channel.
        return Secret, (self._text,)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
