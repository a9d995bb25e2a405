"""Reading the section: values, keys and headers as Arrow lays them out.

`Section.locate` finds the columns and checks every length against the bytes that are there, so
that what it returns never points outside. `Section.check` adds what only hostile bytes get wrong:
offsets that run backwards, header names that are not UTF-8. Both work on whole columns.
"""

from __future__ import annotations

from itertools import compress, pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

import msgspec

from angarium.batch.lanes import never_decreases
from angarium.batch.layout import (
    HEADER_NULLS,
    HEADERS,
    INT32,
    KEY_NULLS,
    KEYS,
    VALUE_NULLS,
    bitmap_bytes,
    padded,
)
from angarium.errors import InvalidBatch

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
"""A record's headers in the order in which they were given; a name may come more than once."""

if TYPE_CHECKING:
    from collections.abc import Sequence


class BinaryColumn(msgspec.Struct, frozen=True, gc=False):
    """A column of byte strings, some of them perhaps null."""

    name: str
    count: int
    validity: memoryview | None
    """One bit per slot, the lowest first; 1 where there is a value. None: all are there."""
    offsets: memoryview
    """`count` + 1 int32: slot i holds data[offsets[i]:offsets[i + 1]]."""
    data: memoryview

    def item(self, position: int) -> bytes | None:
        """Return the byte string at `position`, or None where it is null."""
        if self.validity is not None and not self.validity[position >> 3] >> (position & 7) & 1:
            return None
        start, stop = self.offsets[4 * position : 4 * position + 8].cast("i")
        return bytes(self.data[start:stop])

    def items(self, start: int, stop: int) -> list[bytes | None]:
        """Return the byte strings at positions `start` to `stop`."""
        bounds = self.bounds(start, stop)
        first, last = bounds[0], bounds[-1]
        data = bytes(self.data[first:last])
        if first:
            bounds = [bound - first for bound in bounds]
        found: list[bytes | None] = [data[low:high] for low, high in pairwise(bounds)]
        if self.validity is not None:
            for position in compress(range(stop - start), self._is_null(start, stop)):
                found[position] = None
        return found

    def bounds(self, start: int, stop: int) -> list[int]:
        """Return the offsets from slot `start` to the end of slot `stop` - 1."""
        return self.offsets[4 * start : 4 * stop + 4].cast("i").tolist()

    def check(self) -> None:
        """Raise `InvalidBatch` unless the offsets climb from 0 (`locate` saw where they end)."""
        if INT32.unpack_from(self.offsets)[0] or not never_decreases(
            self.offsets, count=self.count + 1
        ):
            raise InvalidBatch(f"the offsets of the {self.name} do not climb from 0")

    def _is_null(self, start: int, stop: int) -> Sequence[bool]:
        assert self.validity is not None
        first = start >> 3
        bits = int.from_bytes(self.validity[first : bitmap_bytes(stop)], "little")
        bits >>= start - 8 * first
        length = stop - start
        # Binary digits of a power-of-two base are linear to make, however many there are.
        digits = f"{bits & ((1 << length) - 1):0{length}b}"[::-1]
        return [digit == "0" for digit in digits]


class HeaderColumn(msgspec.Struct, frozen=True, gc=False):
    """A column of headers: Arrow's map<string, binary>."""

    count: int
    offsets: memoryview
    """`count` + 1 int32: record i has the entries offsets[i] to offsets[i + 1]."""
    names: BinaryColumn
    contents: BinaryColumn

    def item(self, position: int) -> Headers:
        """Return the headers of the record at `position`."""
        return self.items(position, position + 1)[0]

    def items(self, start: int, stop: int) -> list[Headers]:
        """Return the headers of the records at positions `start` to `stop`."""
        bounds = self.offsets[4 * start : 4 * stop + 4].cast("i").tolist()
        first, last = bounds[0], bounds[-1]
        names = [str(name, "utf-8") for name in cast("list[bytes]", self.names.items(first, last))]
        pairs = list(zip(names, self.contents.items(first, last), strict=True))
        return [tuple(pairs[low - first : high - first]) for low, high in pairwise(bounds)]

    def check(self) -> None:
        """Raise `InvalidBatch` unless all offsets climb from 0 and all names are UTF-8."""
        if INT32.unpack_from(self.offsets)[0] or not never_decreases(
            self.offsets, count=self.count + 1
        ):
            raise InvalidBatch("the offsets of the headers do not climb from 0")
        self.names.check()
        self.contents.check()
        # All-ASCII names, the rule, are settled at once. Otherwise each is tried, because a
        # character cut in two between neighbours is valid in the sum and in neither of them.
        names = bytes(self.names.data)
        if not names.isascii():
            try:
                for low, high in pairwise(self.names.bounds(0, self.names.count)):
                    str(names[low:high], "utf-8")
            except UnicodeDecodeError as error:
                raise InvalidBatch("a header's name is not UTF-8") from error


class Section(NamedTuple):
    """The columns of a section that is there uncompressed."""

    values: BinaryColumn
    keys: BinaryColumn | None
    headers: HeaderColumn | None

    @classmethod
    def locate(cls, section: memoryview, *, flags: int, count: int) -> Section:
        """Find the columns; `InvalidBatch` if they do not fill `section` exactly."""
        cursor = _Cursor(section)
        values = cursor.binary("values", count, nullable=bool(flags & VALUE_NULLS))
        keys = headers = None
        if flags & KEYS:
            keys = cursor.binary("keys", count, nullable=bool(flags & KEY_NULLS))
        if flags & HEADERS:
            headers = cursor.headers(count, nullable=bool(flags & HEADER_NULLS))
        if cursor.position != len(section):
            raise InvalidBatch(
                f"the columns end at byte {cursor.position} of a section of {len(section)}"
            )
        return cls(values, keys, headers)

    def check(self, *, headers_max: int) -> None:
        """Raise `InvalidBatch` unless every column is sound (see the columns' `check`)."""
        self.values.check()
        if self.keys is not None:
            self.keys.check()
        if self.headers is not None:
            if self.headers.names.count > headers_max:
                raise InvalidBatch(
                    f"{self.headers.names.count} headers are more than the {headers_max} allowed"
                )
            self.headers.check()


class _Cursor:
    """Takes buffers off the front of a section, each checked against what is left."""

    def __init__(self, section: memoryview) -> None:
        self.section = section
        self.position = 0

    def take(self, length: int, what: str) -> memoryview:
        start, stop = self.position, self.position + length
        if stop > len(self.section):
            raise InvalidBatch(f"the {what} reach beyond the end of the section")
        self.position = padded(stop)
        return self.section[start:stop]

    def binary(self, name: str, count: int, *, nullable: bool) -> BinaryColumn:
        validity = self.take(bitmap_bytes(count), f"null marks of the {name}") if nullable else None
        offsets = self.take(4 * (count + 1), f"offsets of the {name}")
        data = self.take(_last(offsets, name), name)
        return BinaryColumn(name, count, validity, offsets, data)

    def headers(self, count: int, *, nullable: bool) -> HeaderColumn:
        offsets = self.take(4 * (count + 1), "offsets of the headers")
        entries = _last(offsets, "headers")
        names = self.binary("header names", entries, nullable=False)
        contents = self.binary("header values", entries, nullable=nullable)
        return HeaderColumn(count, offsets, names, contents)


def _last(offsets: memoryview, name: str) -> int:
    (last,) = INT32.unpack_from(offsets, len(offsets) - 4)
    if last < 0:
        raise InvalidBatch(f"the offsets of the {name} end below 0")
    return int(last)
