"""Which publishes wait for company before they become an entry, and until when."""

from __future__ import annotations

from angarium.ids import RaftGroupId
from angarium.modes import DeliveryMode
from angarium.node.gathering import (
    CROWD,
    ENOUGH,
    ENTRY_BYTES,
    PATIENCE_S,
    PRESSED_GAP_S,
    PRESSED_PATIENCE_S,
    WORTHWHILE_BYTES,
    Gathering,
)
from angarium.replica.acks import Publishing

ONE, OTHER = RaftGroupId(1), RaftGroupId(2)


def publishing(size: int = 100, mode: DeliveryMode = DeliveryMode.CONSISTENT) -> Publishing:
    return Publishing([bytearray(size)], mode, lambda _: None)


def gathering(*publishes: Publishing, group: RaftGroupId = ONE, now: float = 0.0) -> Gathering:
    gathered = Gathering(bytes_max=1 << 30)
    for one in publishes:
        assert gathered.add(group, one, now=now)
    return gathered


def nobody(_: RaftGroupId) -> int:
    return 0


def somebody(_: RaftGroupId) -> int:
    return 1


def a_crowd(_: RaftGroupId) -> int:
    return CROWD


def test_where_nothing_is_under_way_nobody_waits() -> None:
    first, second = publishing(), publishing()
    gathered = gathering(first, second)
    assert gathered.take(nobody, is_syncing=False, now=0.0) == [(ONE, [first, second])]
    assert not gathered


def test_what_comes_during_a_sync_waits_for_its_end_if_an_entry_is_under_way() -> None:
    gathered = gathering(publishing())
    assert gathered.take(somebody, is_syncing=True, now=1.0) == []
    assert gathered.take(somebody, is_syncing=False, now=1.0)


def test_the_first_of_a_partition_does_not_wait_for_the_sync_of_others() -> None:
    gathered = gathering(publishing())
    assert gathered.take(nobody, is_syncing=True, now=0.0)


def test_on_a_pressed_node_whatever_comes_during_a_sync_waits_for_its_end() -> None:
    gathered = pressed(crowd=1)
    gathered.add(ONE, publishing(), now=1.0)
    assert gathered.take(nobody, is_syncing=True, now=1.0) == []
    assert gathered.take(nobody, is_syncing=False, now=1.0)


def test_while_many_wait_for_their_answers_small_publishes_gather() -> None:
    gathered = gathering(publishing())
    assert gathered.take(a_crowd, is_syncing=False, now=0.0) == []
    assert gathered.take(lambda _: CROWD - 1, is_syncing=False, now=0.0)


def test_partitions_do_not_wait_for_each_other() -> None:
    gathered = gathering(publishing())
    other = publishing()
    gathered.add(OTHER, other, now=0.0)
    due = gathered.take(lambda group: CROWD if group == ONE else 0, is_syncing=False, now=0.0)
    assert due == [(OTHER, [other])]
    assert gathered


def test_patience_ends_and_counts_from_the_first_that_came() -> None:
    gathered = gathering(publishing(), now=10.0)
    gathered.add(ONE, publishing(), now=10.0 + PATIENCE_S / 2)
    assert gathered.patient_until == 10.0 + PATIENCE_S
    assert gathered.take(a_crowd, is_syncing=False, now=10.0 + PATIENCE_S / 2) == []
    ((_, requests),) = gathered.take(a_crowd, is_syncing=False, now=10.0 + PATIENCE_S)
    assert len(requests) == 2


def test_much_waits_for_no_other_entry_but_for_a_sync() -> None:
    gathered = gathering(publishing(WORTHWHILE_BYTES))
    assert gathered.take(a_crowd, is_syncing=True, now=0.0) == []
    assert gathered.take(a_crowd, is_syncing=False, now=0.0)


def test_a_full_entry_and_eventual_publishes_wait_for_nothing() -> None:
    for hasty in (publishing(ENTRY_BYTES), publishing(mode=DeliveryMode.EVENTUAL)):
        before = publishing()
        gathered = gathering(before, hasty)
        assert gathered.take(a_crowd, is_syncing=True, now=0.0) == [(ONE, [before, hasty])]


def test_at_the_bound_no_more_is_taken_until_some_has_left() -> None:
    gathered = Gathering(bytes_max=250)
    assert gathered.add(ONE, publishing(100), now=0.0)
    assert gathered.add(OTHER, publishing(100), now=0.0)
    assert not gathered.add(ONE, publishing(100), now=0.0)
    gathered.take(nobody, is_syncing=False, now=0.0)
    assert gathered.add(ONE, publishing(250), now=0.0)


def pressed(*, crowd: int) -> Gathering:
    """Return a gathering of a pressed node where so many have published at a time."""
    gathered = gathering(*[publishing() for _ in range(crowd)], now=0.0)
    assert gathered.take(nobody, is_syncing=False, now=0.0)
    gathered.next_period(1.0)
    return gathered


def test_a_pressed_node_lets_a_crowd_gather_until_nobody_more_comes() -> None:
    gathered = pressed(crowd=CROWD)
    gathered.add(ONE, publishing(), now=1.0)
    assert gathered.take(nobody, is_syncing=False, now=1.0) == []
    assert gathered.patient_until == 1.0 + PRESSED_GAP_S
    late = 1.0 + PRESSED_GAP_S / 2
    gathered.add(ONE, publishing(), now=late)
    assert gathered.take(nobody, is_syncing=False, now=1.0 + PRESSED_GAP_S) == []
    ((_, requests),) = gathered.take(nobody, is_syncing=False, now=late + PRESSED_GAP_S)
    assert len(requests) == 2


def test_a_pressed_node_does_not_wait_for_ever_while_more_and_more_come() -> None:
    gathered = pressed(crowd=CROWD)
    now = 1.0
    while now < 1.0 + PRESSED_PATIENCE_S - 2 * PRESSED_GAP_S:
        gathered.add(ONE, publishing(), now=now)
        assert gathered.take(nobody, is_syncing=False, now=now) == []
        now += 0.9 * PRESSED_GAP_S
    gathered.add(ONE, publishing(), now=1.0 + PRESSED_PATIENCE_S)
    assert gathered.take(nobody, is_syncing=False, now=1.0 + PRESSED_PATIENCE_S)


def test_a_pressed_node_does_not_wait_for_more_than_enough() -> None:
    gathered = pressed(crowd=CROWD)
    for _ in range(ENOUGH - 1):
        gathered.add(ONE, publishing(), now=1.0)
    assert gathered.take(nobody, is_syncing=False, now=1.0) == []
    gathered.add(ONE, publishing(), now=1.0)
    assert gathered.take(nobody, is_syncing=False, now=1.0)


def test_on_a_pressed_node_too_whoever_publishes_alone_waits_for_nobody() -> None:
    gathered = pressed(crowd=1)
    gathered.add(ONE, publishing(), now=1.0)
    assert gathered.take(nobody, is_syncing=False, now=1.0)


def test_a_crowd_that_has_gone_is_forgotten_after_a_period() -> None:
    gathered = pressed(crowd=CROWD)
    gathered.next_period(1.0)
    gathered.add(ONE, publishing(), now=1.0)
    assert gathered.take(nobody, is_syncing=False, now=1.0)


def test_a_node_that_keeps_up_again_waits_no_longer_than_before() -> None:
    gathered = pressed(crowd=CROWD)
    gathered.next_period(0.0)
    gathered.add(ONE, publishing(), now=1.0)
    assert gathered.take(nobody, is_syncing=False, now=1.0)
