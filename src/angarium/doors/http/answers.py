"""The answers that most requests get: a value as JSON, or that it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.wire.http.messages import JSON, Response

if TYPE_CHECKING:
    from collections.abc import Mapping

NOTHING: Final = Response(204)
"""Done, and there is nothing to say about it."""

_encode: Final = msgspec.json.Encoder().encode


def json_answer(value: msgspec.Struct | Mapping[str, object], *, status: int = 200) -> Response:
    """Return a value as JSON shows it."""
    return Response(status, _encode(value), JSON)
