"""Many records at once: cut into batches by size, and dealt out to partitions by key.

Nothing here makes an object per record; values are passed on in slices of the caller's lists.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import reduce
from itertools import accumulate
from operator import add, itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from angarium.batch import key_hash
from angarium.batch.hashing import key_hash_column
from angarium.client.publishing.packs import Columns
from angarium.errors import InvalidArgument, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from angarium.batch import Codec
    from angarium.batch.columns import HeadersOf
    from angarium.ids import Buffer


ROW_BYTES: Final = 16
"""What a record takes in a batch besides its value, at most: an offset, a mark, its share of times;
a key takes as much again."""


class Table(NamedTuple):
    """Records column by column; a time may be one number for all of them."""

    values: Sequence[Buffer | None]
    keys: Sequence[Buffer | None] | None = None
    headers: Sequence[HeadersOf | None] | None = None
    timestamps: int | Sequence[int] | None = None
    expires_at: int | Sequence[int] | None = None
    deliver_at: int | Sequence[int] | None = None

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
        return Columns(
            self.values,
            keys=self.keys,
            headers=self.headers,
            timestamps=self.timestamps,
            expires_at=self.expires_at,
            deliver_at=self.deliver_at,
            codec=codec,
        )

    def _each(self, part: Callable[[Any], Any]) -> Table:
        return Table._make(
            column if column is None or isinstance(column, int) else part(column) for column in self
        )


def dealt_out(table: Table, partitions: int) -> dict[int | None, Table]:
    """Return the records by partition, each part in order; under None those without a key."""
    if table.keys is None:
        return {None: table}
    try:
        hashes = memoryview(key_hash_column(table.keys, count=len(table.keys))).cast("I")  # type: ignore[arg-type]
    except TypeError:
        return _dealt_out_with_nulls(table, table.keys, partitions)
    if partitions == 1:
        return {0: table}
    positions: list[list[int]] = [[] for _ in range(partitions)]
    put = [found.append for found in positions]
    for position, hashed in enumerate(hashes):
        put[hashed % partitions](position)
    return {number: table.at(found) for number, found in enumerate(positions) if found}


def _dealt_out_with_nulls(
    table: Table, keys: Sequence[Buffer | None], partitions: int
) -> dict[int | None, Table]:
    positions: dict[int | None, list[int]] = {}
    for position, key in enumerate(keys):
        partition = None if key is None else key_hash(key) % partitions
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
