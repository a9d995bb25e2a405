"""Collecting records one by one until they fill a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.batch.columns import check_times, encoded_name, header_pairs
from angarium.batch.encoding import encode
from angarium.batch.layout import (
    AT_ONCE,
    DELIVER_AT,
    EXPIRES_AT,
    FIRST_EPOCH,
    FIRST_SEQUENCE,
    HEADER_BYTES,
    HEADERS,
    KEYS,
    NEVER,
    NO_TIMESTAMP,
    TIMESTAMPS,
    Codec,
)
from angarium.batch.single import encode_one
from angarium.errors import InvalidBatch, TooLarge
from angarium.ids import NO_PRODUCER, Epoch, ProducerId, Sequence

if TYPE_CHECKING:
    from angarium.batch.columns import HeaderPairs, HeadersOf
    from angarium.ids import Buffer

OVERHEAD_BYTES: Final = HEADER_BYTES + 120
"""What a batch takes besides its records, at most: the header, the padding of 12 buffers and two
columns (92), the last offset of five buffers (20), the begun byte of three bitmaps (3)."""

_ROW_BYTES: Final = {
    KEYS: 8,  # an offset and a hash
    HEADERS: 4,
    TIMESTAMPS: 8,
    EXPIRES_AT: 8,
    DELIVER_AT: 8,
}
"""What each column adds per record besides its data."""


class BatchBuilder:
    """Collects records and makes batches that keep two limits.

    `add` refuses the record that would break a limit and leaves the builder as it was: build, and
    add it again. A record too large for any batch is an error. Records are counted as if nothing
    were compressed, so a batch is never longer than `bytes_estimate`, nor that than `bytes_max`.
    """

    def __init__(
        self,
        *,
        records_max: int = 16_384,
        bytes_max: int = 1024 * 1024,
        codec: Codec = Codec.NONE,
    ) -> None:
        assert records_max > 0, "a batch has at least one record"
        self.records_max = records_max
        self.bytes_max = bytes_max
        self.codec = codec
        self.clear()

    def clear(self) -> None:
        """Forget all records."""
        self._values: list[Buffer | None] = []
        self._keys: list[Buffer | None] = []
        self._headers: list[HeaderPairs] = []
        self._times: list[tuple[int, int, int]] = []
        self._first_times: tuple[int, int, int] = (NO_TIMESTAMP, NEVER, AT_ONCE)
        self._columns = 0
        self._row_bytes = 4
        self._data_bytes = 0
        self.bytes_estimate = OVERHEAD_BYTES

    def __len__(self) -> int:
        """Return how many records have been collected."""
        return len(self._values)

    def add(
        self,
        value: Buffer | None,
        *,
        key: Buffer | None = None,
        headers: HeadersOf | None = None,
        timestamp: int = NO_TIMESTAMP,
        expires_at: int = NEVER,
        deliver_at: int = AT_ONCE,
    ) -> bool:
        """Collect a record; False, and nothing changed, if the batch is too full for it.

        `TooLarge` if it would not fit into an empty one either.
        """
        times = (timestamp, expires_at, deliver_at)
        data_bytes = self._data_bytes + _size(value)
        columns = self._columns
        pairs: HeaderPairs = ()
        if key is not None:
            columns |= KEYS
            data_bytes += _size(key)
        if headers:
            columns |= HEADERS
            pairs = header_pairs(headers)
            data_bytes += _header_bytes(pairs)
        if times != self._first_times:
            columns |= self._time_columns(times)
        row_bytes = self._row_bytes
        if columns != self._columns:
            row_bytes = 4 + sum(size for flag, size in _ROW_BYTES.items() if columns & flag)
        count = len(self._values) + 1
        # Two bits per record for null values and keys, rounded up.
        estimate = OVERHEAD_BYTES + count * row_bytes + (count + 3 >> 2) + data_bytes
        if count > self.records_max or estimate > self.bytes_max:
            if count == 1:
                raise TooLarge(
                    "batch_bytes_max",
                    f"a record of {data_bytes} bytes fits no batch, which has {self.bytes_max} at "
                    "most",
                )
            return False
        if count == 1:
            self._first_times = times
        self._values.append(value)
        self._keys.append(key)
        self._headers.append(pairs)
        self._times.append(times)
        self._columns, self._row_bytes, self._data_bytes = columns, row_bytes, data_bytes
        self.bytes_estimate = estimate
        return True

    def build(
        self,
        *,
        producer_id: ProducerId = NO_PRODUCER,
        epoch: Epoch = FIRST_EPOCH,
        sequence: Sequence = FIRST_SEQUENCE,
    ) -> bytearray:
        """Return a batch of what has been collected, and start anew."""
        if not self._values:
            raise InvalidBatch("a batch has at least one record")
        columns = self._columns
        if len(self._values) == 1 and self._is_simple():
            timestamp, expiry, delivery = self._times[0]
            single = encode_one(
                self._values[0],
                key=self._keys[0],
                timestamp=timestamp,
                expires_at=expiry,
                deliver_at=delivery,
                producer_id=producer_id,
                epoch=epoch,
                sequence=sequence,
            )
            self.clear()
            return single
        timestamps, expires_at, deliver_at = zip(*self._times, strict=True)
        batch = encode(
            self._values,
            keys=self._keys if columns & KEYS else None,
            headers=self._headers if columns & HEADERS else None,
            # A column that never differed costs nothing as one number.
            timestamps=timestamps if columns & TIMESTAMPS else timestamps[0],
            expires_at=expires_at if columns & EXPIRES_AT else expires_at[0],
            deliver_at=deliver_at if columns & DELIVER_AT else deliver_at[0],
            producer_id=producer_id,
            epoch=epoch,
            sequence=sequence,
            codec=self.codec,
        )
        self.clear()
        return batch

    def _is_simple(self) -> bool:
        """Tell whether the one record is of the kind that needs no columns laid out."""
        has_headers = self._columns & HEADERS
        return self._values[0] is not None and not has_headers and self.codec is Codec.NONE

    def _time_columns(self, times: tuple[int, int, int]) -> int:
        """Return the columns that `times`, unlike the first record's, make necessary."""
        timestamp, expires_at, deliver_at = times
        check_times("timestamps", timestamp, timestamp)
        check_times("expiry times", expires_at, expires_at, low_min=1, never=True)
        check_times("delivery times", deliver_at, deliver_at)
        if not self._values:
            return 0
        flags = (TIMESTAMPS, EXPIRES_AT, DELIVER_AT)
        pairs = zip(flags, times, self._first_times, strict=True)
        return sum(flag for flag, time, first in pairs if time != first)


def _header_bytes(pairs: HeaderPairs) -> int:
    # Each has two offsets, and a bit for a null value, counted as a byte.
    return sum(9 + len(encoded_name(name)) + _size(content) for name, content in pairs)


def _size(item: Buffer | None) -> int:
    if item is None:
        return 0
    if isinstance(item, (bytes, bytearray)):  # faster than with a union
        return len(item)
    if isinstance(item, memoryview):
        return item.nbytes
    # Refused now, while it is clear which record it was.
    raise TypeError(f"keys, values and header values are bytes or None, not {type(item).__name__}")
