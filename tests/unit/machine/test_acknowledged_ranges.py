"""`Ranges` against a plain set of integers."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from angarium.machine.ranges import BLOCK, Ranges

OFFSETS_MAX = 5 * BLOCK

_near = st.sampled_from([0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK - 1, 4 * BLOCK])
_offset = st.one_of(st.integers(0, OFFSETS_MAX - 1), _near)
_length = st.one_of(st.integers(1, 8), st.integers(1, 3 * BLOCK), st.just(BLOCK))
_aligned = st.tuples(
    st.integers(0, 6).map(lambda block: block * BLOCK), st.sampled_from([BLOCK, 2 * BLOCK])
)
_adds = st.lists(st.one_of(st.tuples(_offset, _length), _aligned), max_size=20)


def _floor(model: set[int]) -> int:
    floor = 0
    while floor in model:
        floor += 1
    return floor


def _as_ranges(model: set[int], floor: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for offset in sorted(one for one in model if one >= floor):
        if found and found[-1][1] == offset:
            found[-1] = (found[-1][0], offset + 1)
        else:
            found.append((offset, offset + 1))
    return found


@settings(max_examples=150, deadline=None)
@given(_adds)
def test_ranges_behave_like_a_set_of_offsets(adds: list[tuple[int, int]]) -> None:
    ranges, model = Ranges(), set[int]()
    for start, length in adds:
        end = start + length
        fresh = set(range(start, end)) - model
        model |= fresh
        assert ranges.add(start, end) == len(fresh)
        floor = _floor(model)
        assert ranges.floor == floor
        assert ranges.count == sum(one >= floor for one in model)
    floor = ranges.floor
    assert list(ranges.ranges()) == _as_ranges(model, floor)
    end = 10 * BLOCK
    gaps = [one for start, past in ranges.missing(0, end) for one in range(start, past)]
    assert gaps == sorted(set(range(end)) - model)
    for probe in (floor - 1, floor, floor + 1, BLOCK, 2 * BLOCK + 7, OFFSETS_MAX):
        assert (probe in ranges) == (probe in model or probe < 0)


@settings(max_examples=60, deadline=None)
@given(_adds, st.integers(0, OFFSETS_MAX))
def test_missing_ranges_stay_inside_what_was_asked_for(
    adds: list[tuple[int, int]], start: int
) -> None:
    ranges = Ranges(BLOCK // 2)
    for first, length in adds:
        ranges.add(first, first + length)
    end = start + 700
    gaps = list(ranges.missing(start, end))
    for first, past in gaps:
        assert max(start, ranges.floor) <= first < past <= end
    inside = {one for first, past in gaps for one in range(first, past)}
    assert all((one in ranges) != (one in inside) for one in range(start, end))


@settings(max_examples=60, deadline=None)
@given(_adds)
def test_containers_survive_a_snapshot(adds: list[tuple[int, int]]) -> None:
    ranges = Ranges()
    for start, length in adds:
        ranges.add(start, start + length)
    other = Ranges(ranges.floor)
    other.put_runs(ranges.runs())
    other.put_bitmaps(ranges.bitmaps())
    assert other == ranges
    assert other.count == ranges.count


@settings(max_examples=60, deadline=None)
@given(_adds)
def test_the_order_of_acknowledgements_does_not_matter(adds: list[tuple[int, int]]) -> None:
    forward, backward = Ranges(), Ranges()
    for start, length in adds:
        forward.add(start, start + length)
    for start, length in reversed(adds):
        backward.add(start, start + length)
    assert forward == backward


def test_the_floor_never_passes_an_unacknowledged_offset() -> None:
    ranges = Ranges()
    ranges.add(1, 100_000)
    assert ranges.floor == 0
    ranges.add(0, 1)
    assert ranges.floor == 100_000
    assert ranges.containers == 0


def test_a_long_run_costs_no_more_than_a_short_one() -> None:
    ranges = Ranges()
    ranges.add(1, 10**12)
    assert ranges.containers <= 3
    assert ranges.count == 10**12 - 1
    assert list(ranges.missing(0, 10**12 + 5)) == [(0, 1), (10**12, 10**12 + 5)]


def test_neighbouring_full_blocks_become_one_run() -> None:
    ranges = Ranges()
    for block in (3, 5, 4, 1, 2):
        ranges.add(block * BLOCK, (block + 1) * BLOCK)
    assert ranges.runs() == [(1, 6)]


def test_a_copy_is_independent() -> None:
    ranges = Ranges()
    ranges.add(5, 6)
    other = ranges.copy()
    ranges.add(7, 8)
    ranges.add(0, 5)
    assert list(other.ranges()) == [(5, 6)]
    assert other.floor == 0


def test_no_more_containers_are_made_than_announced() -> None:
    ranges = Ranges()
    for start, end in ((5, 6), (3 * BLOCK, 5 * BLOCK), (9 * BLOCK + 1, 12 * BLOCK + 7), (7, 9)):
        announced, before = ranges.adds_containers(start, end), ranges.containers
        ranges.add(start, end)
        assert ranges.containers - before <= announced
