"""Requests that may be sent again: idempotency keys, and numbers of the client's own.

`Idempotency-Key` is any word, such as a UUID (`intake.once`); the same key with another body is
refused. `Angarium-Sequence: NAME:NUMBER` is for clients that count: a
partition remembers the last number of a name for good, not every key of a day.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from angarium.doors.intake.once import Once
from angarium.errors import InvalidArgument
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from angarium.doors.intake import Outgoing
    from angarium.wire.http.messages import Request

KEY_BYTES_MAX: Final = 255
"""Length of a key. A longer one is refused."""

SEQUENCE_HEADER: Final = b"angarium-sequence"
KEY_HEADER: Final = b"idempotency-key"

PRODUCER_PREFIX: Final = "http."
"""Producers of this door have names of their own, so that nobody fences them by accident."""

_NUMBERED: Final = re.compile(r"([A-Za-z0-9._-]{1,100}):([0-9]{1,18})")
_content: Final = msgspec.msgpack.Encoder().encode


class Numbered(NamedTuple):
    """A producer's name and the number it gave to a request."""

    producer: str
    number: int


def once_of(
    request: Request, mode: DeliveryMode | None, record: Outgoing | None = None
) -> Once | None:
    """Return what the request is recognised by, if it has a key; raises `InvalidArgument`.

    Key and headers of a record may come beside the body, and are as much of what was asked.
    """
    key = request.header(KEY_HEADER)
    if key is None:
        return None
    if not 0 < len(key) <= KEY_BYTES_MAX or not key.isascii():
        raise InvalidArgument(f"an Idempotency-Key has 1 to {KEY_BYTES_MAX} characters of ASCII")
    _check_mode(mode)
    beside = () if record is None else (record.key, record.headers)
    return Once(key, _content((beside, request.body)))


def numbered_of(request: Request, mode: DeliveryMode | None) -> Numbered | None:
    """Return the number that a client gave to its request, if any; raises `InvalidArgument`."""
    text = request.text_header(SEQUENCE_HEADER)
    if text is None:
        return None
    fits = _NUMBERED.fullmatch(text)
    if fits is None:
        raise InvalidArgument("Angarium-Sequence is NAME:NUMBER, and the number grows")
    if mode not in (None, DeliveryMode.CONSISTENT):
        raise InvalidArgument("a record with a number of its own is stored in mode consistent")
    return Numbered(f"{PRODUCER_PREFIX}{fits[1]}", int(fits[2]))


def _check_mode(mode: DeliveryMode | None) -> None:
    if mode is DeliveryMode.PERFORMANCE:
        raise InvalidArgument(
            "mode performance stores nothing, so nobody could tell that a key came before"
        )
