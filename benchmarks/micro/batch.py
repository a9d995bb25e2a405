"""What a batch costs: made, numbered, let in, read, and handed to Arrow.

    python -m benchmarks.micro.batch [--format json] [--check]

Values are JSON objects of 100 bytes, so that there is something to compress. The best of several
rounds counts, because other work on the machine can only slow a round down. Baselines do the least
that any encoder or decoder must do, in the same run. `--check` fails if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Final

from angarium.batch import Batch, BatchBuilder, Codec, crc32c, encode, stamp
from angarium.batch.arrow import from_arrow, to_arrow
from angarium.batch.lanes import never_decreases
from angarium.ids import Micros, Offset, Term

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS: Final = 7
ROUND_SECONDS: Final = 0.05
VALUE_BYTES: Final = 100
NOW: Final = 1_704_067_200_000_000


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement."""

    name: str
    records: int
    """Per batch."""
    micros_per_batch: float
    target: float | None = None
    """Records per second, at least."""

    @property
    def records_per_second(self) -> float:
        return self.records / self.micros_per_batch * 1e6

    @property
    def is_missed(self) -> bool:
        return self.target is not None and self.records_per_second < self.target


@dataclass(frozen=True, slots=True)
class Columns:
    """What the records of a benchmark are made of."""

    values: list[bytes]
    keys: list[bytes]
    headers: list[dict[str, bytes]]
    timestamps: list[int]

    @classmethod
    def of(cls, count: int) -> Columns:
        dice = Random(1)
        return cls(
            values=[_value(dice) for _ in range(count)],
            keys=[b"user-%d" % dice.randrange(10_000) for _ in range(count)],
            headers=[{"trace": b"%016x" % dice.getrandbits(64)} for _ in range(count)],
            timestamps=[NOW + dice.randrange(1_000_000) for _ in range(count)],
        )


def main() -> int:
    """Print a table, or the same as JSON."""
    parser = argparse.ArgumentParser(description="Measure the batch.")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    parser.add_argument("--check", action="store_true", help="fail if a target is missed")
    options = parser.parse_args()
    lines = [*_thousand(), *_ten_thousand(), *_single()]
    if options.format == "json":
        rows = [asdict(line) | {"records_per_second": line.records_per_second} for line in lines]
        print(json.dumps(rows, indent=1))
    else:
        _print_table(lines)
    return 1 if options.check and any(line.is_missed for line in lines) else 0


def _thousand() -> list[Line]:
    count = 1000
    columns = Columns.of(count)
    values, keys, headers, times = (
        *(columns.values, columns.keys),
        *(columns.headers, columns.timestamps),
    )
    plain = _stamped(encode(values, timestamps=NOW))
    keyed = _stamped(encode(values, keys=keys, timestamps=NOW))
    full = _stamped(encode(values, keys=keys, headers=headers, timestamps=times))
    lz4 = _stamped(encode(values, timestamps=NOW, codec=Codec.LZ4))
    zstd = _stamped(encode(values, timestamps=NOW, codec=Codec.ZSTD))
    # A batch that compression would not make smaller is stored as it is, and would measure nothing.
    assert (Batch.trusted(lz4).codec, Batch.trusted(zstd).codec) == (Codec.LZ4, Codec.ZSTD)
    data = b"".join(values)
    bounds = list(range(0, len(data) + 1, VALUE_BYTES))
    joined = bytes(plain)
    offsets = Batch.trusted(plain).section.values.offsets
    offset, term, append_time = Offset(1_000_000), Term(3), Micros(NOW)

    def line(name: str, action: Callable[[], object], target: float | None = None) -> Line:
        return Line(name, count, _micros(action), target)

    return [
        line("baseline: join the values, checksum them", lambda: crc32c(b"".join(values))),
        line("encode", lambda: encode(values, timestamps=NOW), 5e6),
        line("encode, keys", lambda: encode(values, keys=keys, timestamps=NOW)),
        line(
            "encode, keys, headers, own timestamps",
            lambda: encode(values, keys=keys, headers=headers, timestamps=times),
        ),
        line("encode, lz4", lambda: encode(values, timestamps=NOW, codec=Codec.LZ4)),
        line("encode, zstd", lambda: encode(values, timestamps=NOW, codec=Codec.ZSTD)),
        line("builder, record by record", lambda: _built(values)),
        line(
            "stamp",
            lambda: stamp(plain, base_offset=offset, term=term, append_time=append_time),
        ),
        line("look at a trusted header", lambda: Batch.trusted(plain)),
        line("baseline: checksum a batch", lambda: crc32c(joined)),
        line("verify both checksums", lambda: Batch.trusted(plain).verify()),
        line("baseline: offsets equal a sorted copy", lambda: _is_sorted(offsets)),
        line("offsets climb", lambda: never_decreases(offsets, count=count + 1)),
        line("parse at the door", lambda: Batch.parse(plain)),
        line("parse at the door, keys", lambda: Batch.parse(keyed)),
        line("parse at the door, every column", lambda: Batch.parse(full)),
        line("parse at the door, lz4", lambda: Batch.parse(lz4)),
        line("parse at the door, zstd", lambda: Batch.parse(zstd)),
        line(
            "baseline: slice joined values",
            lambda: [data[start:stop] for start, stop in pairwise(bounds)],
        ),
        line("decode to bytes", lambda: Batch.trusted(plain).values(), 2e6),
        line("decode to bytes, lz4", lambda: Batch.trusted(lz4).values()),
        line("decode to bytes, zstd", lambda: Batch.trusted(zstd).values()),
        line("decode to records", lambda: list(Batch.trusted(plain))),
        line("decode to records, every column", lambda: list(Batch.trusted(full))),
        line("to Arrow", lambda: to_arrow(Batch.trusted(plain))),
        line("to Arrow, every column", lambda: to_arrow(Batch.trusted(full))),
    ]


def _ten_thousand() -> list[Line]:
    count = 10_000  # about what Spark likes best in one record batch
    columns = Columns.of(count)
    plain = _stamped(encode(columns.values, timestamps=NOW))
    full = _stamped(
        encode(
            columns.values,
            keys=columns.keys,
            headers=columns.headers,
            timestamps=columns.timestamps,
        )
    )
    values = to_arrow(Batch.trusted(plain))["value"]

    def line(name: str, action: Callable[[], object], target: float | None = None) -> Line:
        return Line(name, count, _micros(action), target)

    return [
        line("encode", lambda: encode(columns.values, timestamps=NOW), 5e6),
        line("parse at the door", lambda: Batch.parse(plain)),
        line("parse at the door, every column", lambda: Batch.parse(full)),
        line("decode to bytes", lambda: Batch.trusted(plain).values(), 2e6),
        line("to Arrow", lambda: to_arrow(Batch.trusted(plain)), 100e6),
        line("to Arrow, every column", lambda: to_arrow(Batch.trusted(full)), 100e6),
        line("from Arrow", lambda: from_arrow(values, timestamps=NOW)),
    ]


def _single() -> list[Line]:
    values = Columns.of(1).values
    one = _stamped(encode(values, timestamps=NOW))
    return [
        Line("encode", 1, _micros(lambda: encode(values, timestamps=NOW))),
        Line("parse at the door", 1, _micros(lambda: Batch.parse(one))),
        Line("decode to records", 1, _micros(lambda: list(Batch.trusted(one)))),
    ]


def _value(dice: Random) -> bytes:
    value = b'{"user": "u%07d", "event": "purchase", "page": "/items/%06d", "cents": %05d}' % (
        *(dice.randrange(10_000), dice.randrange(100_000), dice.randrange(100_000)),
    )
    return value.ljust(VALUE_BYTES)


def _stamped(buffer: bytearray) -> bytearray:
    stamp(buffer, base_offset=Offset(1_000_000), term=Term(3), append_time=Micros(NOW))
    return buffer


def _is_sorted(offsets: memoryview) -> bool:
    numbers = offsets.cast("i").tolist()
    return numbers == sorted(numbers)


def _built(values: list[bytes]) -> bytearray:
    builder = BatchBuilder()
    for value in values:
        builder.add(value, timestamp=NOW)
    return builder.build()


def _micros(action: Callable[[], object]) -> float:
    """Return the microseconds that `action` takes in the best of several rounds."""
    clock = time.perf_counter
    started = clock()
    action()
    once = max(clock() - started, 1e-7)
    loops = max(1, int(ROUND_SECONDS / once))
    best = float("inf")
    for _ in range(ROUNDS):
        started = clock()
        for _ in range(loops):
            action()
        best = min(best, clock() - started)
    return best / loops * 1e6


def _print_table(lines: list[Line]) -> None:
    print(f"{'':<42}{'records':>8}{'µs':>10}{'ns':>9}{'M records':>11}{'':>3}")
    print(f"{'':<42}{'/ batch':>8}{'/ batch':>10}{'/ record':>9}{'/ s':>11}{'':>3}target")
    for line in lines:
        verdict = ""
        if line.target is not None:
            verdict = f"{'MISSED' if line.is_missed else 'ok'}, at least {line.target / 1e6:g}"
        print(
            f"{line.name:<42}{line.records:>8,}{line.micros_per_batch:>10.2f}"
            f"{line.micros_per_batch * 1000 / line.records:>9.1f}"
            f"{line.records_per_second / 1e6:>11.2f}   {verdict}"
        )


if __name__ == "__main__":
    sys.exit(main())
