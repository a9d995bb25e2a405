"""Which partition a record goes to: every publisher gives one answer."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from angarium.api.layout import Layout
from angarium.batch import key_hash
from angarium.batch.hashing import key_hash_column

LAYOUTS = st.sets(st.integers(0, 40), min_size=1).map(lambda some: Layout(tuple(sorted(some)), 41))
KEYS = st.lists(st.binary(max_size=12), max_size=50)


def test_over_all_partitions_it_is_the_remainder_as_it_always_was() -> None:
    layout = Layout.over(7)
    for number in range(100):
        key = str(number).encode()
        assert layout.of_key(key) == key_hash(key) % 7


def test_a_key_whose_checksum_is_zero_goes_where_its_hash_says() -> None:
    # The empty key: its checksum is 0, which is kept for "no key".
    assert Layout.over(5).of_key(b"") == key_hash(b"") % 5 == 1


@given(LAYOUTS, KEYS)
def test_all_four_ways_to_ask_agree(layout: Layout, keys: list[bytes]) -> None:
    hashes = [key_hash(key) for key in keys]
    one_by_one = [layout.of_key(key) for key in keys]
    assert [layout.of_hash(hashed) for hashed in hashes] == one_by_one
    column = key_hash_column(keys, count=len(keys))
    assert layout.of_hashes(np.frombuffer(column, dtype="<u4")).tolist() == one_by_one
    dealt = layout.dealt(struct.unpack(f"<{len(keys)}I", column))
    assert {at: number for number, some in dealt.items() for at in some} == dict(
        enumerate(one_by_one)
    )
    assert all(some == sorted(some) for some in dealt.values())


@given(LAYOUTS)
def test_the_turn_goes_round(layout: Layout) -> None:
    turns = [layout.in_turn(turn) for turn in range(2 * layout.count)]
    assert turns == [*layout.partitions, *layout.partitions]


def test_an_only_partition_is_told() -> None:
    assert Layout((3,), 4).only == 3
    assert Layout.over(2).only is None


def test_a_layout_has_partitions_that_the_topic_has() -> None:
    with pytest.raises(AssertionError):
        Layout((), 3)
    with pytest.raises(AssertionError):
        Layout((3,), 3)
