"""Rows on their way to a topic: dealt out to partitions, and packed into broker batches.

Columns stay columns. The one thing done key by key is its hash, which decides the partition and
travels in the batch, so that a row with a key lands where every other producer would put it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from angarium.batch.arrow import from_arrow
from angarium.batch.hashing import NO_KEY, key_hash, key_hash_column
from angarium.errors import InvalidArgument
from angarium.spark.type_names import spark_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from angarium.api.layout import Layout
    from angarium.batch import Codec

BATCH_BYTES: Final = 1 << 20
"""Rows are packed into batches of at most about so much; a larger row comes alone."""

_BYTES: Final = (pa.binary(), pa.string(), pa.large_binary(), pa.large_string())
_COLUMNS: Final = {
    "topic": (pa.string(), pa.large_string()),
    "partition": (pa.int32(),),
    "key": _BYTES,
    "value": _BYTES,
    "headers": (pa.map_(pa.string(), pa.binary()),),
    "timestamp": (pa.timestamp("us", tz="UTC"),),
    "layout": (pa.int32(),),
}


_HINTS: Final = {
    "partition": ": int(partition) makes one",
    "headers": ": map_from_entries(headers) makes one of Kafka's array of pairs",
}


class Packed(NamedTuple):
    """A batch for one partition."""

    topic: str
    partition: int
    batch: bytearray
    layout: int | None = None
    """By which layout of the topic keys have sent it there; None: none has."""


def check_columns(fields: Sequence[tuple[str, Any]], *, topic: str | None) -> None:
    """Raise `InvalidArgument` for rows that cannot be written, naming the column."""
    given = dict(fields)
    for name, kind in fields:
        if name not in _COLUMNS:
            raise InvalidArgument(f"a topic takes no column {name}; it takes {', '.join(_COLUMNS)}")
        if kind not in _COLUMNS[name]:
            wanted = " or ".join(dict.fromkeys(map(spark_name, _COLUMNS[name])))
            raise InvalidArgument(
                f"the column {name} is {spark_name(kind)}, not {wanted}{_HINTS.get(name, '')}"
            )
    if "value" not in given:
        raise InvalidArgument("there is no column value")
    if topic is None and "topic" not in given:
        raise InvalidArgument("give the option topic, or a column topic")


class Dealer:
    """Deals rows out; one for each task."""

    def __init__(
        self, topic: str | None, layout_of: Callable[[str], Layout], *, codec: Codec, turn: int
    ) -> None:
        """Ask `layout_of` which partitions of a topic are written to.

        Rows without key and partition stay together; `turn` says where the first of them go, so
        that tasks spread, and each following lot goes one further.
        """
        self._topic = topic
        self._layout_of = layout_of
        self._codec = codec
        self._turn = turn

    def packed(self, rows: pa.RecordBatch) -> Iterator[Packed]:
        """Yield the rows as batches; those of one partition keep their order."""
        for topic, some in self._by_topic(rows):
            self._turn += 1
            number = self._layout_of(topic).number
            for partition, part, hashes in self._by_partition(topic, some):
                layout = _layout(part, hashes, number)
                for piece, of in _pieces(part, hashes):
                    yield Packed(topic, partition, self._batch(piece, of), layout)

    def _by_topic(self, rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        if self._topic is not None:
            yield self._topic, rows
            return
        topics = rows.column("topic")
        if topics.null_count:
            raise InvalidArgument("a row has no topic, and there is no option topic")
        names = pc.unique(topics).to_pylist()
        for name in names:
            yield name, rows if len(names) == 1 else rows.filter(pc.equal(topics, name))

    def _by_partition(
        self, topic: str, rows: pa.RecordBatch
    ) -> Iterator[tuple[int, pa.RecordBatch, np.ndarray | None]]:
        layout = self._layout_of(topic)
        hashes = _hashes(_column(rows, "key"))
        numbers = self._numbers(topic, rows, hashes, layout)
        first = int(numbers[0])
        if (numbers == first).all():
            yield first, rows, hashes
            return
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(np.bincount(numbers, minlength=layout.total)).tolist()
        sorted_rows = rows.take(pa.array(order))
        sorted_hashes = None if hashes is None else hashes[order]
        start = 0
        for partition, end in enumerate(ends):
            if end > start:
                of = None if sorted_hashes is None else sorted_hashes[start:end]
                yield partition, sorted_rows.slice(start, end - start), of
            start = end

    def _numbers(
        self, topic: str, rows: pa.RecordBatch, hashes: np.ndarray | None, layout: Layout
    ) -> np.ndarray:
        """Return the partition of every row: as it says, or by its key, or this lot's."""
        own = np.full(rows.num_rows, layout.in_turn(self._turn), dtype=np.int64)
        if hashes is not None:
            own = np.where(hashes == NO_KEY, own, layout.of_hashes(hashes))
        wishes = _column(rows, "partition")
        if wishes is None or wishes.null_count == len(wishes):
            return own
        wanted = wishes.fill_null(-1).to_numpy(zero_copy_only=False)
        given = wishes.is_valid().to_numpy(zero_copy_only=False)
        outside = wanted[given & ((wanted < 0) | (wanted >= layout.total))]
        if len(outside):
            raise InvalidArgument(
                f"{topic} has partitions 0 to {layout.total - 1}, and a row wants {outside[0]}"
            )
        return np.where(given, wanted, own)

    def _batch(self, rows: pa.RecordBatch, hashes: np.ndarray | None) -> bytearray:
        return from_arrow(
            rows.column("value"),
            keys=_column(rows, "key"),
            headers=_column(rows, "headers"),
            timestamps=_column(rows, "timestamp"),
            codec=self._codec,
            hashes=None if hashes is None else hashes.astype("<u4").tobytes(),
        )


def _layout(rows: pa.RecordBatch, hashes: np.ndarray | None, number: int) -> int | None:
    """Return the layout to name for rows of one partition: if a key has sent one there, the one
    by which keys are dealt, or else what those say that name the partition."""
    wishes = _column(rows, "partition")
    if hashes is not None:
        own = hashes != NO_KEY
        if wishes is not None:
            own &= wishes.is_null().to_numpy(zero_copy_only=False)
        if own.any():
            return number
    said = _column(rows, "layout")
    if said is None or wishes is None:
        return None
    found: int | None = pc.max(said).as_py()
    return found


def _column(rows: pa.RecordBatch, name: str) -> pa.Array | None:
    return rows.column(name) if name in rows.schema.names else None


def _hashes(keys: pa.Array | None) -> np.ndarray | None:
    """Return the hash of every key, 0 where there is none; None if there are no keys at all."""
    if keys is None or keys.null_count == len(keys):
        return None
    texts = keys.cast(pa.binary()).to_pylist()
    if keys.null_count:
        return np.fromiter(map(key_hash, texts), dtype=np.uint32, count=len(texts))
    return np.frombuffer(key_hash_column(texts, count=len(texts)), dtype="<u4")


def _pieces(
    rows: pa.RecordBatch, hashes: np.ndarray | None
) -> Iterator[tuple[pa.RecordBatch, np.ndarray | None]]:
    """Yield `rows` in pieces that make batches of a fair size."""
    if rows.nbytes <= BATCH_BYTES or rows.num_rows == 1:
        yield rows, hashes
        return
    half = rows.num_rows // 2
    first, second = (None, None) if hashes is None else (hashes[:half], hashes[half:])
    yield from _pieces(rows.slice(0, half), first)
    yield from _pieces(rows.slice(half), second)
