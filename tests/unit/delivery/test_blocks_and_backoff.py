"""Bitmaps of offsets, and waits by chance."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from angarium.delivery.backoff import backoff
from angarium.delivery.blocks import Pool, blocks, by_block, first, lowest, offsets, runs
from angarium.machine.changes import GroupSettings
from angarium.machine.ranges import Ranges

some_offsets = st.sets(st.integers(0, 5_000), max_size=60)


@given(start=st.integers(0, 5_000), length=st.integers(1, 5_000))
def test_a_range_and_its_blocks_are_the_same_records(start: int, length: int) -> None:
    pieces = list(blocks(start, start + length))
    assert runs(pieces) == (start, start + length)
    assert [one for piece in pieces for one in offsets(*piece)] == list(
        range(start, start + length)
    )
    assert first(*pieces[0]) == start


@given(chosen=some_offsets)
def test_offsets_in_any_order_and_their_blocks_are_the_same(chosen: set[int]) -> None:
    pieces = by_block([*chosen, *chosen])
    assert sorted(one for piece in pieces.items() for one in offsets(*piece)) == sorted(chosen)


@given(chosen=some_offsets, count=st.integers(0, 70))
def test_the_lowest_bits_are_the_lowest(chosen: set[int], count: int) -> None:
    bits = sum(1 << one for one in chosen)
    assert list(offsets(0, lowest(bits, count))) == sorted(chosen)[:count]


@given(chosen=some_offsets, floor=st.integers(0, 5_000))
def test_the_machines_set_shows_its_blocks(chosen: set[int], floor: int) -> None:
    acked = Ranges(floor)
    for one in chosen:
        acked.add(one, one + 1)
    for block in range(6):
        shown = set(offsets(block, acked.bits(block)))
        assert shown == {one for one in range(block * 1_024, (block + 1) * 1_024) if one in acked}


@given(chosen=some_offsets)
def test_a_pool_gives_back_everything_lowest_first(chosen: set[int]) -> None:
    pool = Pool()
    for one in chosen:
        pool.add_offset(one)
    assert pool.count == len(chosen)
    taken: list[int] = []
    while (piece := pool.take(3)) is not None:
        taken += offsets(*piece)
    assert taken == sorted(chosen)


@given(attempts=st.integers(1, 100), offset=st.integers(0, 1 << 40), seed=st.integers(0, 1 << 60))
def test_waits_double_up_to_the_limit_and_keep_half_of_it(
    attempts: int, offset: int, seed: int
) -> None:
    settings = GroupSettings(backoff_min_micros=1_000, backoff_max_micros=64_000)
    full = min(1_000 << min(attempts - 1, 10), 64_000)
    wait = backoff(settings, attempts=attempts, offset=offset, seed=seed)
    assert full // 2 <= wait <= full
    assert wait == backoff(settings, attempts=attempts, offset=offset, seed=seed)
