"""What the golden batches hold. Never change a sample that has been written; add another."""

from __future__ import annotations

from typing import Any

from angarium.batch import NEVER, Batch, Codec, encode, stamp
from angarium.ids import Epoch, Micros, Offset, ProducerId, Sequence, Term

_YEAR_2024 = 1_704_067_200_000_000


def samples() -> dict[str, bytearray]:
    """Return a batch for each name."""
    keyed: dict[str, Any] = {
        "values": [b"one", None, b"", bytes(range(256)), b"five"],
        "keys": [b"a", b"", None, b"a", "κλειδί".encode()],
        "headers": [
            {"content-type": b"text/plain", "trace": None},
            None,
            [("again", b"1"), ("again", b"2"), ("", b"")],
            {"größe": b"\x00\xff"},
            {},
        ],
        "timestamps": [_YEAR_2024 + 1000 * i for i in (0, 5, 2, 3, 1)],
        "producer_id": ProducerId(42),
        "epoch": Epoch(3),
        "sequence": Sequence(1_000),
    }
    return {
        "single": encode([b"hello"]),
        "plain": _stamped(encode([b"alpha", b"beta", b"gamma"], timestamps=_YEAR_2024)),
        "keyed": _stamped(encode(**keyed)),
        "unhashed": _stamped(encode(**keyed, key_hashes=False)),
        "lz4": _stamped(_repetitive(keyed, Codec.LZ4)),
        "zstd": _stamped(_repetitive(keyed, Codec.ZSTD)),
        "timed": _stamped(
            encode(
                [b"expires", b"waits", b"both", b"neither"],
                timestamps=_YEAR_2024,
                expires_at=[_YEAR_2024 + 10, NEVER, _YEAR_2024 + 30, NEVER],
                deliver_at=[0, _YEAR_2024 + 5, _YEAR_2024 + 6, 0],
            )
        ),
        "same-times": _stamped(
            encode([b"a", b"b"], expires_at=_YEAR_2024 + 10, deliver_at=_YEAR_2024 + 5)
        ),
        "compacted": Batch.trusted(_stamped(encode(**keyed))).retain([1, 4]),
        "compacted-zstd": Batch.trusted(_stamped(_repetitive(keyed, Codec.ZSTD))).retain(
            range(0, 50, 7)
        ),
        "emptied": Batch.trusted(_stamped(encode(**keyed))).retain([]),
    }


def described(batch: Batch) -> dict[str, Any]:
    """Return everything a reader can learn from `batch`, in what JSON can say."""
    return {
        "base_offset": batch.base_offset,
        "term": batch.term,
        "append_time": batch.append_time,
        "length": batch.length,
        "codec": batch.codec.name,
        "flags": batch.header.flags,
        "count": batch.count,
        "span": batch.span,
        "producer_id": batch.producer_id,
        "epoch": batch.epoch,
        "first_sequence": batch.first_sequence,
        "bounds": {
            "timestamp": [batch.min_timestamp, batch.max_timestamp],
            "expires_at": [batch.min_expires_at, batch.max_expires_at],
            "deliver_at": [batch.min_deliver_at, batch.max_deliver_at],
        },
        "key_hashes": None if (hashes := batch.key_hashes()) is None else list(hashes),
        "records": [
            {
                "offset": record.offset,
                "key": _hex(record.key),
                "value": _hex(record.value),
                "headers": [[name, _hex(content)] for name, content in record.headers],
                "timestamp": record.timestamp,
                "append_time": record.append_time,
                "expires_at": record.expires_at,
                "deliver_at": record.deliver_at,
            }
            for record in batch
        ],
    }


def _repetitive(columns: dict[str, Any], codec: Codec) -> bytearray:
    tenfold = {name: column * 10 for name, column in columns.items() if isinstance(column, list)}
    return encode(**(columns | tenfold), codec=codec)


def _stamped(buffer: bytearray) -> bytearray:
    stamp(buffer, base_offset=Offset(5_000), term=Term(7), append_time=Micros(_YEAR_2024 + 99))
    return buffer


def _hex(content: bytes | None) -> str | None:
    return None if content is None else content.hex()
