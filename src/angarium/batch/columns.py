"""Laying columns out: lists of Python values in, Arrow buffers out.

Each function returns the pieces of its column in order, padding included, ready to be joined. A
record costs a few C-level steps (`len`, a running sum, a copy) and no Python ones, unless it is
null or has headers.
"""

from __future__ import annotations

import struct
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

from angarium.batch.layout import INT32_MAX, NEVER, TIME_MAX, bitmap_bytes, padded
from angarium.errors import InvalidBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from angarium.ids import Buffer

    HeaderPairs: TypeAlias = Sequence[tuple[str, Buffer | None]]
    HeadersOf: TypeAlias = Mapping[str, Buffer | None] | Iterable[tuple[str, Buffer | None]]

_PADDING: Final = tuple(bytes(length) for length in range(8))


class Column(NamedTuple):
    """A column of the section, as pieces to be joined."""

    pieces: list[Buffer]
    has_nulls: bool


class TimeColumn(NamedTuple):
    """A column of times: only its bounds if all are alike, otherwise also one per record."""

    low: int
    high: int
    data: bytes
    """Empty if all times are alike."""


def binary_column(items: Sequence[Buffer | None], *, name: str) -> Column:
    """Lay out a column of byte strings, with a validity bitmap only if one of them is None."""
    try:
        return Column(_binary_pieces(cast("Sequence[Buffer]", items), name), has_nulls=False)
    except TypeError:
        # Looking for None first would cost everyone what only few need. Anything else that is
        # not a byte string fails below once more, and for good.
        marks = validity(items)
        present = [b"" if item is None else item for item in items]
        return Column([*piece(marks), *_binary_pieces(present, name)], has_nulls=True)


def header_column(headers: Sequence[HeadersOf | None]) -> Column:
    """Lay out a column of headers; a record without any may have None or an empty mapping."""
    of_each = [header_pairs(of_one) if of_one else () for of_one in headers]
    bounds = list(accumulate(map(len, of_each), initial=0))
    pairs = list(chain.from_iterable(of_each))
    names = binary_column([encoded_name(name) for name, _ in pairs], name="header names")
    contents = binary_column([content for _, content in pairs], name="header values")
    pieces = [*_offsets(bounds, "headers"), *names.pieces, *contents.pieces]
    return Column(pieces, contents.has_nulls)


def header_pairs(headers: HeadersOf) -> HeaderPairs:
    """Return names and values in order, whichever way they were given."""
    return tuple(headers.items() if hasattr(headers, "items") else headers)


def encoded_name(name: str) -> bytes:
    """Return a header's name in UTF-8; a lone half of a surrogate pair has no such form."""
    try:
        return name.encode()
    except UnicodeEncodeError as error:
        raise InvalidBatch("a header's name has no UTF-8 form") from error


def time_column(
    times: int | Sequence[int] | None, *, count: int, name: str, default: int, low_min: int = 0
) -> TimeColumn:
    """Lay out a column of times: `default` for all, one for all, or each record's own."""
    if times is None:
        return TimeColumn(default, default, b"")
    if isinstance(times, int):
        low = high = times
        data = b""
    else:
        if len(times) != count:
            raise InvalidBatch(f"{len(times)} {name} were given for {count} records")
        low, high = min(times), max(times)
        data = b"" if low == high else struct.pack(f"<{count}q", *times)
    check_times(name, low, high, low_min=low_min, never=default == NEVER)
    return TimeColumn(low, high, data)


def check_times(name: str, low: int, high: int, *, low_min: int = 0, never: bool = False) -> None:
    """Raise `InvalidBatch` unless bounds of times are in order, and end before the year 10000.

    Where `NEVER` has a meaning, either bound may be that.
    """
    if low_min <= low <= high:
        if high <= TIME_MAX:
            return
        if never and high == NEVER and (low <= TIME_MAX or low == NEVER):
            return
    raise InvalidBatch(f"the {name} are out of range")


def validity(items: Sequence[object | None]) -> bytes:
    """Return one bit per item, the lowest first: 0 where it is None."""
    digits = "".join(["0" if item is None else "1" for item in items])[::-1]
    return int(digits or "0", 2).to_bytes(bitmap_bytes(len(items)), "little")


def piece(data: Buffer) -> list[Buffer]:
    """Return `data` and the zeros that bring it to a multiple of 8 bytes."""
    return [data, _PADDING[padded(len(data)) - len(data)]]


def _binary_pieces(items: Sequence[Buffer], name: str) -> list[Buffer]:
    bounds = list(accumulate(map(len, items), initial=0))
    data = b"".join(items)
    if len(data) != bounds[-1]:
        raise InvalidBatch(f"one of the {name} is a view of something other than bytes")
    return [*_offsets(bounds, name), *piece(data)]


def _offsets(bounds: list[int], name: str) -> list[Buffer]:
    if bounds[-1] > INT32_MAX:
        raise InvalidBatch(f"the {name} of one batch cannot hold {bounds[-1]} bytes")
    return piece(struct.pack(f"<{len(bounds)}i", *bounds))
