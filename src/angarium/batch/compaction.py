"""Rewriting a batch with fewer records, for compaction by key.

The rewritten batch spans the same offsets, so nothing around it moves; each record keeps its own
offset through a column of deltas. It may end up with no records at all and still hold its offsets.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from angarium.batch.columns import binary_column, header_column
from angarium.batch.encoding import assembled, encoded_times
from angarium.batch.layout import HEADER_NULLS, HEADERS, KEY_NULLS, KEYS, VALUE_NULLS
from angarium.batch.stamping import stamp
from angarium.errors import InvalidBatch

if TYPE_CHECKING:
    from collections.abc import Sequence as SequenceOf

    from angarium.batch.decoding import Batch
    from angarium.batch.layout import Codec
    from angarium.ids import Buffer

_Item = TypeVar("_Item")


def retained(batch: Batch, positions: SequenceOf[int], *, codec: Codec | None = None) -> bytearray:
    """Return `batch` with only the records at `positions`, which must ascend.

    What comes out follows from the records that are kept, not from the steps in which others went.
    Without a `codec` the batch keeps its own.
    """
    count = len(positions)
    _check_positions(positions, batch.count)
    flags, section = _section(batch, positions)
    deltas = batch.offset_deltas() if batch.is_compacted else range(batch.count)
    hashes = batch.key_hashes()
    kept = assembled(
        section,
        flags=flags,
        count=count,
        span=batch.span,
        times=encoded_times(
            count,
            # Of no records there are no times: None, the default of each column.
            timestamps=_picked(batch.timestamps(), positions) or None,
            expires_at=_picked(batch.expires_at(), positions) or None,
            deliver_at=_picked(batch.deliver_at(), positions) or None,
        ),
        hashes=b"" if hashes is None else _column(_picked(hashes, positions)),
        deltas=_column(_picked(deltas, positions)),
        producer_id=batch.producer_id,
        epoch=batch.epoch,
        sequence=batch.first_sequence,
        codec=batch.codec if codec is None else codec,
    )
    if batch.is_stamped:
        stamp(kept, base_offset=batch.base_offset, term=batch.term, append_time=batch.append_time)
    return kept


def _section(batch: Batch, positions: SequenceOf[int]) -> tuple[int, list[Buffer]]:
    values, keys, headers = batch.section
    column = binary_column(_picked(values.items(0, batch.count), positions), name="values")
    flags = VALUE_NULLS if column.has_nulls else 0
    pieces = column.pieces
    if keys is not None:
        column = binary_column(_picked(keys.items(0, batch.count), positions), name="keys")
        flags |= KEYS | (KEY_NULLS if column.has_nulls else 0)
        pieces += column.pieces
    if headers is not None:
        column = header_column(_picked(headers.items(0, batch.count), positions))
        flags |= HEADERS | (HEADER_NULLS if column.has_nulls else 0)
        pieces += column.pieces
    return flags, pieces


def _check_positions(positions: SequenceOf[int], count: int) -> None:
    if positions and not (positions[0] >= 0 and positions[-1] < count):
        raise InvalidBatch(f"positions outside a batch of {count} records cannot be retained")
    if any(later <= earlier for earlier, later in pairwise(positions)):
        raise InvalidBatch("the positions to retain do not ascend")


def _picked(items: SequenceOf[_Item], positions: SequenceOf[int]) -> list[_Item]:
    return [items[position] for position in positions]


def _column(numbers: SequenceOf[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}I", *numbers)
