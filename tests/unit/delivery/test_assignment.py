"""Balanced, deterministic, and quiet when members come and go."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from angarium.delivery import assignment

names = st.sets(st.text("abcdef0123456789", min_size=1, max_size=8), min_size=1, max_size=12)
counts = st.integers(1, 48)


def partitions(count: int) -> list[tuple[str, int]]:
    """Return the partitions of two topics."""
    return [("orders" if one % 2 else "invoices", one) for one in range(count)]


@given(members=names, count=counts)
@settings(deadline=None)
def test_nobody_is_idle_while_another_has_two(members: set[str], count: int) -> None:
    chosen = assignment(members, partitions(count))
    shares = Counter(chosen.values())
    assert len(chosen) == count
    assert all(shares[one] in (count // len(members), -(-count // len(members))) for one in members)


@given(members=names, count=counts, newcomer=st.text("xyz", min_size=1, max_size=4))
@settings(deadline=None)
def test_one_that_comes_takes_its_share_and_nothing_else_moves(
    members: set[str], count: int, newcomer: str
) -> None:
    before = assignment(members, partitions(count))
    after = assignment({*members, newcomer}, partitions(count), before=before)
    moved = [one for one in before if after[one] != before[one]]
    share = -(-count // (len(members) + 1))
    # Besides the newcomer's share, each member may give up what exceeds its smaller quota.
    assert len(moved) <= share + len(members)
    assert sum(after[one] == newcomer for one in after) <= share


@given(members=names, count=counts, data=st.data())
@settings(deadline=None)
def test_one_that_leaves_hands_on_its_share_and_nothing_else_moves(
    members: set[str], count: int, data: st.DataObject
) -> None:
    gone = data.draw(st.sampled_from(sorted(members)))
    before = assignment(members, partitions(count))
    after = assignment(members - {gone}, partitions(count), before=before)
    if len(members) == 1:
        assert after == {}
        return
    moved = {one for one in before if after[one] != before[one]}
    assert moved == {one for one in before if before[one] == gone}


def test_without_a_memory_little_more_than_a_share_moves() -> None:
    """Everybody computes the same from the members alone; that costs some movement."""
    everything = partitions(60)
    total = 0
    for size in range(2, 12):
        members = {f"member-{one}" for one in range(size)}
        before, after = (
            assignment(members, everything),
            assignment({*members, "newcomer"}, everything),
        )
        moved = sum(before[one] != after[one] for one in everything)
        total += moved
        assert moved <= 3 * -(-60 // (size + 1))
    assert total <= 2 * sum(-(-60 // (size + 1)) for size in range(2, 12))


def test_the_order_of_asking_does_not_matter() -> None:
    upward = assignment(["a", "b", "c"], partitions(9))
    assert assignment(["c", "b", "a"], partitions(9)[::-1]) == upward


def test_nobody_gets_nothing() -> None:
    assert assignment([], partitions(3)) == {}


def test_members_get_what_lives_in_their_region() -> None:
    homes = {("orders", number): ("eu", "us")[number % 2] for number in range(8)}
    regions = {"a": "eu", "b": "eu", "c": "us", "d": "us"}
    chosen = assignment(regions, homes, regions=regions, homes=homes)
    assert all(regions[member] == homes[one] for one, member in chosen.items())
    assert sorted(map(list(chosen.values()).count, regions)) == [2, 2, 2, 2]


@given(
    st.dictionaries(st.text("abcdef", min_size=1), st.sampled_from(["", "eu", "us"]), min_size=1),
    st.integers(0, 40),
)
def test_regions_change_who_but_not_how_many(regions: dict[str, str], count: int) -> None:
    homes = {one: ("eu", "us", "ap")[one[1] % 3] for one in partitions(count)}
    chosen = assignment(regions, homes, regions=regions, homes=homes)
    assert chosen.keys() == set(partitions(count))
    shares = [list(chosen.values()).count(member) for member in regions]
    assert max(shares) - min(shares) <= 1
    assert assignment(list(regions)[::-1], homes, regions=regions, homes=homes) == chosen
