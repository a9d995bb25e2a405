"""The answers that most requests get: a value as JSON, or that it is done."""

from __future__ import annotations

from typing import Final

import msgspec

from angarium.doors.http.server.messages import JSON, Response

NOTHING: Final = Response(204)
"""Done, and there is nothing to say about it."""

_encode: Final = msgspec.json.Encoder().encode


def json_answer(value: msgspec.Struct, *, status: int = 200) -> Response:
    """Return a value as JSON shows it."""
    return Response(status, _encode(value), JSON)
