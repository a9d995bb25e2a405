"""Feed the batch decoder what nobody should send it, and see that it minds its manners.

    python -m tests.fuzz.batch --inputs 1000000

Every input comes from a seed and its number, so that one of them can be run again alone:
`--seed 7 --first 123456 --inputs 1`. For each input the decoder must either refuse with
`InvalidBatch` or accept; what it accepts must survive everything a reader can do with it, Arrow's
own full validation included. Nothing may take longer than a second, and in samples nothing may
allocate more than `PEAK_BYTES_MAX`.

Most inputs are good batches with something changed and the checksums made to match again:
otherwise the first gate would stop them all, and the ones behind it would never be tried.
"""

from __future__ import annotations

import argparse
import re
import resource
import struct
import sys
import time
import tracemalloc
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Final

from tests.fuzz.forgery import HEADER_FIELDS, forged, resealed

from angarium.batch import NEVER, Batch, BatchLimits, Codec, encode, split, stamp
from angarium.batch.arrow import to_arrow
from angarium.batch.compression import packed, unpacked
from angarium.errors import InvalidBatch
from angarium.ids import Micros, Offset, ProducerId, Term

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SECONDS_MAX: Final = 1.0
PEAK_BYTES_MAX: Final = 128 * 1024 * 1024
"""What decoding one input may allocate under the default limits (32 MiB sections)."""

SAMPLE_EVERY: Final = 500
"""Watching allocations slows Python down several times, so only each so-manieth input is."""

_INTERESTING: Final = (
    *(0, 1, 2, 3, 7, 8, 9, 15, 16, 127, 128, 136, 144, 255, 256, 65_535, 131_072, 131_073),
    *(2**31 - 8, 2**31 - 1, 2**31, 2**32 - 8, 2**32 - 1, 2**63 - 1),
)


@dataclass
class Outcome:
    """What happened so far."""

    inputs: int = 0
    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest_seconds: float = 0.0
    sampled: int = 0
    peak_bytes: int = 0


def run(*, inputs: int, seed: int, first: int = 0, progress: Callable[[Outcome], None]) -> Outcome:
    """Try `inputs` inputs of `seed`, starting with number `first`."""
    outcome = Outcome()
    corpus = _corpus()
    for number in range(first, first + inputs):
        kind, buffer = _input(Random(seed << 40 | number), corpus)
        is_sample = number % SAMPLE_EVERY == 0 or kind == "giant"
        _try(
            buffer,
            outcome,
            is_sample=is_sample,
            name=f"--seed {seed} --first {number} --inputs 1 ({kind})",
        )
        if outcome.inputs % 20_000 == 0:
            progress(outcome)
    return outcome


# --- one input ----------------------------------------------------------------------------------


def _try(buffer: bytearray, outcome: Outcome, *, name: str, is_sample: bool) -> None:
    outcome.inputs += 1
    if is_sample:
        _watch_memory(buffer, outcome, name)
    # The processor's time, not the wall's: nothing here waits, and a busy machine is no failure.
    started = time.process_time()
    try:
        _decode(buffer)
        outcome.accepted += 1
    except InvalidBatch as error:
        outcome.refused[_reason(error)] += 1
    except Exception as error:
        outcome.failures.append(f"{name}: {type(error).__name__}: {error}")
    seconds = time.process_time() - started
    outcome.slowest_seconds = max(outcome.slowest_seconds, seconds)
    if seconds > SECONDS_MAX:
        outcome.failures.append(f"{name}: took {seconds:.1f} s")


def _watch_memory(buffer: bytearray, outcome: Outcome, name: str) -> None:
    tracemalloc.start()
    # What goes wrong here goes wrong again outside, and is reported there.
    with suppress(Exception):
        for part in split(buffer):
            Batch.parse(part, compacted=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    outcome.sampled += 1
    outcome.peak_bytes = max(outcome.peak_bytes, peak)
    if peak > PEAK_BYTES_MAX:
        outcome.failures.append(f"{name}: allocated {peak} bytes")


def _decode(buffer: bytearray) -> None:
    """Do with `buffer` all that a reader could."""
    for part in split(buffer):
        batch = Batch.parse(part, compacted=True)
        batch.verify()
        records = list(batch)
        assert len(records) == batch.count == len(batch.values())
        assert all(batch.base_offset <= record.offset < batch.next_offset for record in records)
        assert all(batch.min_expires_at <= record.expires_at for record in records)
        to_arrow(batch).validate(full=True)
        if records:
            middle = batch.count // 2
            assert batch.record(middle) == records[middle]
            assert batch.position_of(records[middle].offset) == middle
        if len(records) > 1000:
            continue  # compaction is no decoding, and its time is not judged here
        kept = Batch.parse(batch.retain(range(0, batch.count, 2)), compacted=True)
        assert list(kept) == records[::2]


def _reason(error: InvalidBatch) -> str:
    """Return the sentence without its numbers, so that equal reasons are counted together."""
    return re.sub(r"(?<!-)\b\d+\b", "#", str(error))


# --- making inputs ------------------------------------------------------------------------------


def _corpus() -> list[bytes]:
    """Return small good batches with every column and codec among them."""
    limits = BatchLimits()
    values = [b"value %d " % i * 3 for i in range(9)]
    keys = [None if i == 4 else b"k%d" % (i % 3) for i in range(9)]
    headers = [{"name": b"content", "ü": None} if i % 2 else None for i in range(9)]
    corpus = []
    for codec in Codec:
        for buffer in (
            encode([b"a"], codec=codec),
            encode(values, timestamps=5, codec=codec),
            encode([None, *values[1:]], keys=keys, timestamps=list(range(9)), codec=codec),
            encode(values, keys=keys, headers=headers, deliver_at=list(range(9)), codec=codec),
            encode(
                values,
                headers=headers,
                expires_at=[NEVER if i % 2 else i + 1 for i in range(9)],
                producer_id=ProducerId(3),
                codec=codec,
            ),
        ):
            corpus.append(bytes(buffer))
            stamp(buffer, base_offset=Offset(10), term=Term(2), append_time=Micros(77))
            corpus.append(bytes(buffer))
            corpus.append(
                bytes(Batch.trusted(buffer).retain(range(0, len(Batch.trusted(buffer)), 2)))
            )
    assert all(Batch.parse(buffer, limits=limits, compacted=True) for buffer in corpus)
    return corpus


def _input(dice: Random, corpus: list[bytes]) -> tuple[str, bytearray]:
    make = dice.choices(_MAKERS, _WEIGHTS)[0]
    return make.__name__.strip("_"), make(dice, corpus)


def _random_bytes(dice: Random, corpus: list[bytes]) -> bytearray:
    buffer = bytearray(dice.randbytes(dice.randrange(400)))
    if dice.random() < 0.5:
        buffer[:4] = b"ANGB"
    return buffer


def _random_body(dice: Random, corpus: list[bytes]) -> bytearray:
    """A good header before random columns."""
    good = dice.choice(corpus)
    return resealed(bytearray(good[:136] + dice.randbytes(len(good) - 136)))


def _flipped(dice: Random, corpus: list[bytes]) -> bytearray:
    """Damage as a disk or a network does it: the checksums do not match."""
    buffer = bytearray(dice.choice(corpus))
    for _ in range(dice.randint(1, 4)):
        buffer[dice.randrange(len(buffer))] ^= 1 << dice.randrange(8)
    return buffer


def _cut(dice: Random, corpus: list[bytes]) -> bytearray:
    buffer = bytearray(dice.choice(corpus))
    del buffer[dice.randrange(len(buffer)) :]
    if dice.random() < 0.5:
        buffer += bytes(-len(buffer) % 8)
    if len(buffer) >= 40 and dice.random() < 0.8:
        return forged(buffer, length=len(buffer))
    return buffer


def _lying_header(dice: Random, corpus: list[bytes]) -> bytearray:
    buffer = bytearray(dice.choice(corpus))
    for _ in range(dice.choice((1, 1, 2, 3))):
        kind, start = HEADER_FIELDS[dice.choice(_FIELD_NAMES)]
        value = dice.choice((*_INTERESTING, dice.getrandbits(63), -1))
        old = struct.unpack_from(kind, buffer, start)[0]
        value = dice.choice((value, old + 1, old - 1, old ^ 1 << dice.randrange(16)))
        size = struct.calcsize(kind)
        buffer[start : start + size] = (value % (1 << 8 * size)).to_bytes(size, "little")
    return resealed(buffer)


def _changed_body(dice: Random, corpus: list[bytes]) -> bytearray:
    """Other numbers, or other bytes, in the columns of an otherwise good batch."""
    buffer = bytearray(dice.choice(corpus))
    for _ in range(dice.randint(1, 3)):
        _change(dice, buffer, 136)
    return resealed(buffer)


def _changed_section(dice: Random, corpus: list[bytes]) -> bytearray:
    """A section changed before it is compressed: the stream is good, what it holds is not."""
    good = dice.choice(corpus)
    batch = Batch.trusted(good)
    header, start = batch.header, batch.columns.end
    stored = good[start : start + header.packed_bytes]
    section = bytearray(unpacked(header.codec, stored, section_bytes=header.section_bytes))
    for _ in range(dice.randint(1, 3)):
        _change(dice, section, 0)
    if dice.random() < 0.1:
        section += bytes(dice.choice((1, 8, 1 << 16, 1 << 20)))
    codec = dice.choice(tuple(Codec))
    stream = packed(codec, section)
    buffer = bytearray(good[:start] + stream + bytes(-len(stream) % 8))
    return forged(
        buffer,
        length=len(buffer),
        codec=codec,
        packed_bytes=len(stream),
        section_bytes=len(section),
    )


def _spliced(dice: Random, corpus: list[bytes]) -> bytearray:
    """The front of one batch and the back of another, or several in a row."""
    one, other = dice.choice(corpus), dice.choice(corpus)
    if dice.random() < 0.3:
        return bytearray(one + other)
    buffer = bytearray(one[: dice.randrange(len(one))] + other[dice.randrange(len(other)) :])
    return forged(buffer, length=len(buffer)) if len(buffer) >= 40 else buffer


def _giant(dice: Random, corpus: list[bytes]) -> bytearray:
    """A few hundred bytes that unpack to as much as the limits allow, or claim to."""
    stream, codec, section_bytes, count, flags = dice.choice(_giant_sections())
    buffer = bytearray(corpus[0][:136] + stream + bytes(-len(stream) % 8))
    return forged(
        buffer,
        length=len(buffer),
        codec=codec,
        packed_bytes=len(stream),
        section_bytes=dice.choice((section_bytes, section_bytes, 64, 1 << 25, 1 << 31)),
        count=count,
        span=count,
        flags=flags,
    )


@cache
def _giant_sections() -> list[tuple[bytes, Codec, int, int, int]]:
    limits = BatchLimits()
    giants = []
    for buffer in (
        encode([bytes(limits.section_bytes_max - 64)]),
        encode([b""] * limits.records_max, key_hashes=False),
        encode([b""] * limits.records_max, keys=[b"k"] * limits.records_max, key_hashes=False),
        encode([None] * limits.records_max, headers=[[("ü", b"")] * 2] * limits.records_max),
        encode([b""] * 4, headers=[[("h", None)] * (limits.headers_max + 1), None, None, None]),
    ):
        header = Batch.trusted(buffer).header
        for codec in (Codec.LZ4, Codec.ZSTD):
            stream = packed(codec, buffer[136:])
            giants.append((stream, codec, header.section_bytes, header.count, header.flags))
    return giants


def _change(dice: Random, buffer: bytearray, start: int) -> None:
    """Change one number or byte of `buffer` at or after `start`."""
    if len(buffer) - start < 8:
        return
    if dice.random() < 0.3:
        buffer[dice.randrange(start, len(buffer))] = dice.randrange(256)
        return
    place = start + 4 * dice.randrange((len(buffer) - start) // 4 - 1)
    value = dice.choice((*_INTERESTING, dice.getrandbits(32), dice.randrange(64)))
    struct.pack_into("<I", buffer, place, value & 0xFFFFFFFF)


_FIELD_NAMES: Final = tuple(HEADER_FIELDS)
_MAKERS: Final = (
    *(_random_bytes, _random_body, _flipped, _cut),
    *(_lying_header, _changed_body, _changed_section, _spliced, _giant),
)
_WEIGHTS: Final = (10, 5, 10, 10, 25, 20, 15, 5, 0.02)


# --- the command --------------------------------------------------------------------------------


def main(arguments: Iterable[str] | None = None) -> int:
    """Run from the command line; 1 if anything failed."""
    parser = argparse.ArgumentParser(description="Feed the batch decoder hostile inputs.")
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    options = parser.parse_args(None if arguments is None else list(arguments))
    started = time.perf_counter()

    def progress(outcome: Outcome) -> None:
        seconds = time.perf_counter() - started
        print(
            f"{outcome.inputs:>10,} of {options.inputs:,} inputs, {outcome.accepted:,} accepted, "
            f"{len(outcome.failures)} failed, {outcome.inputs / seconds:,.0f}/s",
            flush=True,
        )

    outcome = run(inputs=options.inputs, seed=options.seed, first=options.first, progress=progress)
    _summarise(outcome, seconds=time.perf_counter() - started)
    return 1 if outcome.failures else 0


def _summarise(outcome: Outcome, *, seconds: float) -> None:
    print(f"\n{outcome.inputs:,} inputs in {seconds:.1f} s")
    print(f"  accepted                 {outcome.accepted:,}")
    print(f"  refused                  {outcome.refused.total():,}")
    for reason, count in outcome.refused.most_common():
        print(f"    {count:>10,}  {reason}")
    print(f"  slowest input            {outcome.slowest_seconds * 1e3:.1f} ms (limit 1000)")
    print(
        f"  largest allocation       {outcome.peak_bytes / 2**20:.1f} MiB in "
        f"{outcome.sampled:,} samples (limit {PEAK_BYTES_MAX >> 20})"
    )
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"  largest resident size    {resident / 1024:.0f} MiB")
    print(f"  failures                 {len(outcome.failures)}")
    for failure in outcome.failures[:20]:
        print(f"    {failure}")


if __name__ == "__main__":
    sys.exit(main())
