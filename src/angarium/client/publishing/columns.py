"""Many records at once: cut into batches by size, and dealt out to partitions by key.

Nothing here makes an object per record; values are passed on in slices of the caller's lists.
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime, timedelta
from functools import reduce
from itertools import accumulate
from operator import add, itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from angarium.batch import encode
from angarium.batch.hashing import key_hash_column
from angarium.client.publishing.outgoing import AS_JSON
from angarium.client.times import micros
from angarium.errors import InvalidArgument, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from angarium.api.layout import Layout
    from angarium.batch import Codec
    from angarium.batch.columns import HeadersOf
    from angarium.client.publishing.outgoing import HeadersLike, Text
    from angarium.client.times import Moment
    from angarium.ids import Buffer, Epoch, ProducerId
    from angarium.ids import Sequence as SequenceNumber


ROW_BYTES: Final = 16
"""What a record takes in a batch besides its value, at most: an offset, a mark, its share of times;
a key takes as much again."""

_CONTENT: Final = (bytes, str, bytearray, memoryview, type(None))


class Table(NamedTuple):
    """Records column by column; a time may be one number for all of them."""

    values: Sequence[Buffer | None]
    keys: Sequence[Buffer | None] | None = None
    headers: Sequence[HeadersOf | None] | None = None
    timestamps: int | Sequence[int] | None = None
    expires_at: int | Sequence[int] | None = None
    deliver_at: int | Sequence[int] | None = None

    @classmethod
    def of(
        cls,
        values: Sequence[Text | None],
        *,
        keys: Sequence[Text | None] | None = None,
        headers: Sequence[HeadersLike | None] | None = None,
        timestamps: Moment | Sequence[Moment] | None = None,
        expires_at: Moment | Sequence[Moment] | None = None,
        deliver_at: Moment | Sequence[Moment] | None = None,
    ) -> Table:
        """Return records as people give them: text becomes UTF-8, and a time microseconds."""
        return cls(
            _encoded(values, "values"),
            None if keys is None else _encoded(keys, "keys"),
            None if headers is None else _encoded_headers(headers),
            *map(_times, (timestamps, expires_at, deliver_at)),
        )

    def check(self) -> None:
        """Raise `InvalidArgument` unless all columns are equally long."""
        count = len(self.values)
        for name, column in zip(self._fields, self, strict=True):
            if column is not None and not isinstance(column, int) and len(column) != count:
                raise InvalidArgument(f"{len(column)} {name} were given for {count} values")

    def between(self, start: int, stop: int) -> Table:
        """Return the records at positions `start` to `stop`."""
        return self._each(lambda column: column[start:stop])

    def at(self, positions: list[int]) -> Table:
        """Return the records at `positions`."""
        if len(positions) == 1:
            return self.between(positions[0], positions[0] + 1)
        return self._each(itemgetter(*positions))

    def columns(self, codec: Codec) -> Columns:
        """Return what a batch is made of."""
        return Columns(self, codec)

    def _each(self, part: Callable[[Any], Any]) -> Table:
        return Table._make(
            column if column is None or isinstance(column, int) else part(column) for column in self
        )


class Columns:
    """A table that becomes a batch; a `Content`."""

    __slots__ = ("_codec", "_table")

    def __init__(self, table: Table, codec: Codec) -> None:
        self._table = table
        self._codec = codec

    def __len__(self) -> int:
        return len(self._table.values)

    def build(
        self, *, producer_id: ProducerId, epoch: Epoch, sequence: SequenceNumber
    ) -> bytearray:
        """Return the batch."""
        return encode(
            **self._table._asdict(),
            producer_id=producer_id,
            epoch=epoch,
            sequence=sequence,
            codec=self._codec,
        )


def _encoded(column: Sequence[Text | None], name: str) -> Sequence[Buffer | None]:
    if isinstance(column, str | bytes | bytearray | memoryview):
        raise TypeError(f"{name} are a list, one for each record, not {type(column).__name__}")
    if not hasattr(column, "__len__"):
        column = list(column)  # a generator, which could be looked at only once
    # Looking at the types as a whole costs little; most columns hold bytes and stay as they are.
    types = set(map(type, column))
    wrong = [one for one in types if not issubclass(one, _CONTENT)]
    if wrong:
        raise TypeError(f"{name} are bytes, text or None, not {wrong[0].__name__}{AS_JSON}")
    if not any(issubclass(one, str) for one in types):
        return cast("Sequence[Buffer | None]", column)
    return [one.encode() if isinstance(one, str) else one for one in column]


def _encoded_headers(headers: Sequence[HeadersLike | None]) -> Sequence[HeadersOf | None]:
    if hasattr(headers, "items"):
        raise TypeError(
            "headers are a list, one mapping (or None) for each record, not a mapping for all"
        )
    return [_encoded_pairs(one) for one in headers]


def _encoded_pairs(headers: HeadersLike | None) -> HeadersOf | None:
    if not headers:
        return None
    pairs = headers.items() if hasattr(headers, "items") else headers
    return tuple((name, one.encode() if isinstance(one, str) else one) for name, one in pairs)


def _times(given: Moment | Sequence[Moment] | None) -> int | Sequence[int] | None:
    if given is None or isinstance(given, int):
        return given
    if isinstance(given, datetime | timedelta):
        return micros(given)
    if all(issubclass(one, int) for one in set(map(type, given))):
        return cast("Sequence[int]", given)
    return [micros(one) for one in given]


def dealt_out(table: Table, layout: Layout) -> dict[int | None, Table]:
    """Return the records by partition, each part in order; under None those without a key."""
    if table.keys is None:
        return {None: table}
    try:
        hashes = memoryview(key_hash_column(table.keys, count=len(table.keys))).cast("I")  # type: ignore[arg-type]
    except TypeError:
        return _dealt_out_with_nulls(table, table.keys, layout)
    if layout.only is not None:
        return {layout.only: table}
    return {number: table.at(found) for number, found in layout.dealt(hashes).items()}


def _dealt_out_with_nulls(
    table: Table, keys: Sequence[Buffer | None], layout: Layout
) -> dict[int | None, Table]:
    positions: dict[int | None, list[int]] = {}
    for position, key in enumerate(keys):
        partition = None if key is None else layout.of_key(key)
        positions.setdefault(partition, []).append(position)
    return {partition: table.at(found) for partition, found in positions.items()}


def cut(
    table: Table, *, bytes_target: int, bytes_max: int, records_max: int
) -> Iterator[tuple[Table, int]]:
    """Yield the records in parts of about `bytes_target`, each with its size.

    `TooLarge` for a record too large for a batch of `bytes_max`.
    """
    extra = ROW_BYTES + (ROW_BYTES if table.keys is not None else 0)
    start, count = 0, len(table.values)
    while start < count:
        stop = min(start + records_max, count)
        bounds = _bounds(table, start, stop)
        done, last = 0, stop - start
        while done < last:
            before = bounds[done] + extra * done
            # Sizes are looked at where the search goes, not one by one.
            upto = bisect_right(
                range(last + 1),
                before + bytes_target,
                lo=done + 1,
                key=lambda at: bounds[at] + extra * at,
            )
            upto = max(upto - 1, done + 1)
            size = bounds[upto] + extra * upto - before
            if size > bytes_max:
                raise TooLarge(
                    "batch_bytes_max",
                    f"a record of {size} bytes fits no batch, which has {bytes_max} at most",
                )
            yield table.between(start + done, start + upto), size
            done = upto
        start = stop


def _bounds(table: Table, start: int, stop: int) -> list[int]:
    """Return the bytes up to each record, without what it takes besides."""
    columns = [table.values[start:stop]]
    if table.keys is not None:
        columns.append(table.keys[start:stop])
    try:
        sizes = [map(len, column) for column in columns]  # type: ignore[arg-type]
        return _summed(table, sizes, start, stop)
    except TypeError:  # one of them is null; looking first would cost everybody
        sizes = [map(_length, column) for column in columns]
        return _summed(table, sizes, start, stop)


def _summed(table: Table, sizes: list[map[int]], start: int, stop: int) -> list[int]:
    if table.headers is not None:
        sizes.append(map(_header_size, table.headers[start:stop]))
    return list(accumulate(reduce(lambda one, two: map(add, one, two), sizes), initial=0))


def _length(item: Buffer | None) -> int:
    return 0 if item is None else len(item)


def _header_size(headers: HeadersOf | None) -> int:
    if not headers:
        return 0
    pairs = headers.items() if hasattr(headers, "items") else headers
    return sum(16 + 4 * len(name) + len(content or b"") for name, content in pairs)
