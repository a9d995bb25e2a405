"""A record as a publisher gives it, made ready to travel."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.batch import AT_ONCE, NEVER, NO_TIMESTAMP
from angarium.client.times import micros
from angarium.errors import InvalidArgument
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    from angarium.client.times import Moment
    from angarium.ids import Buffer

    Text: TypeAlias = Buffer | str
    """Bytes, or text that travels as UTF-8."""
    HeadersLike: TypeAlias = Mapping[str, Text | None] | Sequence[tuple[str, Text | None]]

RECORD_OVERHEAD_BYTES: Final = 64
"""What a waiting record takes besides its own bytes, roughly."""

_NO_TIMES: Final = (int(NO_TIMESTAMP), int(NEVER), int(AT_ONCE))

_TRIED_FIRST: Final = frozenset((dict, list, tuple))
"""What has a length, and people give as a value before they have read that it is bytes or text."""

AS_JSON: Final = "; json.dumps(…) makes text of what JSON can say"


class Outgoing(NamedTuple):
    """One record on its way to a lane."""

    value: Buffer | None
    key: Buffer | None
    headers: tuple[tuple[str, Buffer | None], ...] | None
    partition: int | None
    mode: DeliveryMode | None
    times: tuple[int, int, int]
    """Timestamp, expiry and delivery, in microseconds."""
    size: int
    """Bytes it is counted as while it waits."""


def outgoing(
    value: Text | None,
    mode: DeliveryMode | None = None,
    delay: float | timedelta | None = None,
    /,
    *,
    key: Text | None = None,
    headers: HeadersLike | None = None,
    partition: int | None = None,
    timestamp: Moment | None = None,
    expires_at: Moment | None = None,
    deliver_at: Moment | None = None,
) -> Outgoing:
    """Return the record; `TypeError` if something in it is neither bytes nor text."""
    if delay is not None:
        if deliver_at is not None:
            raise InvalidArgument("give a record deliver_at or delay, not both")
        deliver_at = delay if isinstance(delay, timedelta) else timedelta(seconds=delay)
        if deliver_at < timedelta():
            raise InvalidArgument(f"a delay must not be negative: {delay}")
    if mode is not None:
        _check(mode)
    content = value.encode() if isinstance(value, str) else value
    name = key.encode() if isinstance(key, str) else key
    pairs = None
    try:  # what has no length is no bytes; looking at every type would cost every record
        if content.__class__ in _TRIED_FIRST:
            raise TypeError
        size = RECORD_OVERHEAD_BYTES
        if content is not None:
            size += len(content)
        if name is not None:
            size += len(name)
        if headers is not None:
            pairs = tuple((label, _bytes(text)) for label, text in _items(headers))
            size += sum(RECORD_OVERHEAD_BYTES + len(label) + _size(text) for label, text in pairs)
    except (TypeError, ValueError):
        raise TypeError(
            "a record's value and key are bytes, text or None, its headers such by name; not "
            f"{_named(value)}, {_named(key)} and {headers!r}{AS_JSON}"
        ) from None
    times = _NO_TIMES
    if timestamp is not None or expires_at is not None or deliver_at is not None:
        times = (
            int(NO_TIMESTAMP) if timestamp is None else micros(timestamp),
            int(NEVER) if expires_at is None else micros(expires_at),
            int(AT_ONCE) if deliver_at is None else micros(deliver_at),
        )
    return Outgoing(content, name, pairs, partition, mode, times, size)


def _check(mode: object) -> None:
    if not isinstance(mode, DeliveryMode):
        names = ", ".join(one.name for one in DeliveryMode)
        raise InvalidArgument(f"{mode!r} is not a DeliveryMode; use one of {names}")


def _named(item: object) -> str:
    return "None" if item is None else type(item).__name__


def _size(item: Buffer | None) -> int:
    return 0 if item is None else len(item)


def _bytes(text: Text | None) -> Buffer | None:
    return text.encode() if isinstance(text, str) else text


def _items(headers: HeadersLike) -> Iterable[tuple[str, Text | None]]:
    return headers.items() if hasattr(headers, "items") else headers
