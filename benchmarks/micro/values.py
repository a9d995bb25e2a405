"""What a small frozen value costs: made, read, and turned into bytes and back.

    python -m benchmarks.micro.values

The value has the shape of a Raft entry: two integers, some bytes, a kind. The best of several
rounds counts, because other work on the machine can only slow a round down. The figures of decision
0002 come from here.
"""

from __future__ import annotations

import gc
import pickle
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS: Final = 7
LOOPS: Final = 100_000
DATA: Final = b"x" * 100
KEPT: Final = 300_000
"""Values alive during the garbage collector's walk, as in a node with many busy groups."""


@dataclass(frozen=True, slots=True)
class FrozenDataclass:
    term: int
    place: int
    data: bytes = b""
    kind: int = 0


@dataclass(slots=True)
class MutableDataclass:
    term: int
    place: int
    data: bytes = b""
    kind: int = 0


class Named(NamedTuple):
    term: int
    place: int
    data: bytes = b""
    kind: int = 0


class Struct(msgspec.Struct, frozen=True, gc=False):
    term: int
    place: int
    data: bytes = b""
    kind: int = 0


KINDS: Final = (FrozenDataclass, MutableDataclass, Named, Struct)

_pack = msgspec.msgpack.Encoder().encode
_unpack_struct = msgspec.msgpack.Decoder(Struct).decode


def main() -> None:
    """Print one line per kind of value, in nanoseconds per operation."""
    print(f"{'':<18}{'make':>8}{'read':>8}{'==':>8}{'gc walk of':>14}")
    print(f"{'':<18}{'ns':>8}{'ns':>8}{'ns':>8}{KEPT // 1000:>8} k, ms")
    makes = {kind: _best(lambda kind=kind: _make(kind)) for kind in KINDS}  # type: ignore[misc]
    for kind in KINDS:
        value, twin = kind(3, 7, DATA, 1), kind(3, 7, DATA, 1)
        read = _best(lambda value=value: _read(value))  # type: ignore[misc]
        same = _best(lambda value=value, twin=twin: _compare(value, twin))  # type: ignore[misc]
        walk = _gc_walk_ms(kind)
        print(f"{kind.__name__:<18}{makes[kind]:>8.0f}{read:>8.0f}{same:>8.0f}{walk:>14.1f}")

    struct, frozen = Struct(3, 7, DATA, 1), FrozenDataclass(3, 7, DATA, 1)
    packed, pickled = _pack(struct), pickle.dumps(frozen, protocol=5)
    print(f"\n{'':<26}{'to bytes':>10}{'back':>8}{'bytes':>8}")
    for name, there, back, size in (
        ("msgspec, Struct", lambda: _pack(struct), lambda: _unpack_struct(packed), len(packed)),
        (
            "pickle, FrozenDataclass",
            lambda: pickle.dumps(frozen, protocol=5),
            lambda: pickle.loads(pickled),
            len(pickled),
        ),
    ):
        print(f"{name:<26}{_best_call(there):>10.0f}{_best_call(back):>8.0f}{size:>8}")


def _make(kind: Callable[[int, int, bytes, int], object]) -> None:
    for index in range(LOOPS):
        kind(3, index, DATA, 1)


def _read(value: FrozenDataclass | MutableDataclass | Named | Struct) -> None:
    for _ in range(LOOPS):
        value.place  # noqa: B018  (the read is what is measured)


def _compare(value: object, twin: object) -> None:
    for _ in range(LOOPS):
        value == twin  # noqa: B015  (the comparison is what is measured)


def _gc_walk_ms(kind: Callable[[int, int, bytes, int], object]) -> float:
    """Return what a full collection costs more while `KEPT` values are alive."""
    gc.collect()
    empty = _seconds(gc.collect)
    kept = [kind(3, index, DATA, 1) for index in range(KEPT)]
    gc.collect()
    full = _seconds(gc.collect)
    assert kept
    return (full - empty) * 1e3


def _best_call(call: Callable[[], object]) -> float:
    def loop() -> None:
        for _ in range(LOOPS):
            call()

    return _best(loop)


def _best(run: Callable[[], object]) -> float:
    """Return the nanoseconds of one of the `LOOPS` operations of `run`, the loop's own included."""
    return min(_seconds(run) for _ in range(ROUNDS)) / LOOPS * 1e9


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
