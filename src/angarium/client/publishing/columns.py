"""Many records at once: cut into batches by size, and dealt out to partitions by key.

Nothing here makes an object per record; values are passed on in slices of the caller's lists.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from angarium.batch import key_hash
from angarium.client.publishing.packs import Columns
from angarium.errors import InvalidArgument, LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from angarium.batch import Codec
    from angarium.batch.columns import HeadersOf
    from angarium.ids import Buffer


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
    if partitions == 1:
        return {0: table}
    positions: dict[int | None, list[int]] = {}
    for position, key in enumerate(table.keys):
        partition = None if key is None else key_hash(key) % partitions
        if partition in positions:
            positions[partition].append(position)
        else:
            positions[partition] = [position]
    return {partition: table.at(found) for partition, found in positions.items()}


def cut(
    table: Table, *, bytes_target: int, bytes_max: int, records_max: int
) -> Iterator[tuple[Table, int]]:
    """Yield the records in parts of about `bytes_target`, each with its size.

    `LimitExceeded` for a record too large for a batch of `bytes_max`.
    """
    start, count = 0, len(table.values)
    while start < count:
        stop = min(start + records_max, count)
        bounds = list(accumulate(_sizes(table, start, stop)))
        done = 0
        while done < len(bounds):
            before = bounds[done - 1] if done else 0
            upto = max(bisect_right(bounds, before + bytes_target, lo=done), done + 1)
            size = bounds[upto - 1] - before
            if size > bytes_max:
                raise LimitExceeded("batch_bytes_max", f"a record of {size} bytes fits no batch")
            yield table.between(start + done, start + upto), size
            done = upto
        start = stop


def _sizes(table: Table, start: int, stop: int) -> Iterator[int]:
    # What a record takes besides its bytes: offsets, marks, a hash and times, roughly.
    values = _lengths(table.values[start:stop])
    if table.keys is None and table.headers is None:
        return (16 + size for size in values)
    keys = _lengths((table.keys or [None] * stop)[start:stop])
    if table.headers is None:
        return (32 + value + key for value, key in zip(values, keys, strict=True))
    headers = map(_header_size, table.headers[start:stop])
    return (48 + sum(sizes) for sizes in zip(values, keys, headers, strict=True))


def _lengths(column: Sequence[Buffer | None]) -> list[int]:
    try:
        return list(map(len, column))  # type: ignore[arg-type]
    except TypeError:
        return [0 if item is None else len(item) for item in column]


def _header_size(headers: HeadersOf | None) -> int:
    if not headers:
        return 0
    pairs = headers.items() if hasattr(headers, "items") else headers
    return sum(16 + 4 * len(name) + len(content or b"") for name, content in pairs)
