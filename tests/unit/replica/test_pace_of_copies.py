"""All copies of a node share one pace, in turn, and none of them is starved."""

from __future__ import annotations

from collections import Counter

from angarium.ids import Index, Offset, RaftGroupId, ReplicaId
from angarium.replica.pacing import (
    OUTRUN_TIMES_MAX,
    PIECE_BYTES_MIN,
    PIECES_PER_TICK,
    Outrun,
    Pace,
)
from angarium.replica.peers import ChunkRequest

WHOLE = 1 << 20


def a_request(group: int, sender: int = 7) -> ChunkRequest:
    return ChunkRequest(
        group=RaftGroupId(group),
        sender=ReplicaId(sender),
        to=ReplicaId(1),
        snapshot_index=Index(1),
        segment=Offset(0),
        position=0,
        length=WHOLE,
    )


def test_without_a_bound_everything_passes_and_is_counted() -> None:
    pace = Pace()
    assert pace.granted(WHOLE, group=RaftGroupId(1)) == WHOLE
    assert pace.granted(WHOLE, group=RaftGroupId(2)) == WHOLE
    assert pace.passed_bytes == 2 * WHOLE
    assert not list(pace.due())


def test_copies_have_their_turns_in_the_order_in_which_they_came() -> None:
    pace = Pace()
    pace.bytes_per_tick = 300_000
    groups = [RaftGroupId(number) for number in range(1, 9)]
    took: Counter[RaftGroupId] = Counter()
    for group in groups:
        assert pace.granted(WHOLE, group=group) == 0, "nothing has been allowed yet"
    ticks = 400
    for _ in range(ticks):
        for group, request in pace.due():
            assert request is None
            took[group] += pace.granted(WHOLE, group=group)
            # A copy asks for more as soon as it has something, and waits behind the others.
            assert pace.granted(WHOLE, group=group) == 0
    assert sum(took.values()) == pace.passed_bytes
    assert abs(pace.passed_bytes - ticks * 300_000) <= 2 * PIECE_BYTES_MIN + 300_000
    assert max(took.values()) - min(took.values()) <= 300_000 // PIECES_PER_TICK


def test_what_is_large_is_cut_and_what_was_not_used_does_not_add_up() -> None:
    pace = Pace()
    pace.bytes_per_tick = 8 << 20
    for _ in range(10):
        assert not list(pace.due())
    granted = 0
    while length := pace.granted(64 << 20, group=RaftGroupId(1)):
        assert length == pace.bytes_per_tick // PIECES_PER_TICK
        granted += length
    assert granted == pace.bytes_per_tick


def test_a_peer_that_asks_again_has_one_place_in_the_queue_and_keeps_it() -> None:
    pace = Pace()
    pace.bytes_per_tick = 1
    first, second = a_request(1, sender=7), a_request(1, sender=8)
    for _ in range(3):
        for one in (first, second):
            assert not pace.granted(WHOLE, group=one.group, peer=one.sender, request=one)
    assert pace.is_used
    due = [one for _ in range(3) for one in pace.due()]
    assert due == [(RaftGroupId(1), first), (RaftGroupId(1), second)]


def test_everybody_goes_on_when_the_bound_is_lifted() -> None:
    pace = Pace()
    pace.bytes_per_tick = 1
    for group in range(1, 5):
        pace.granted(WHOLE, group=RaftGroupId(group))
    pace.bytes_per_tick = None
    assert [group for group, _ in pace.due()] == [1, 2, 3, 4]
    assert not pace.is_used


def test_a_copy_is_outrun_with_each_later_snapshot_until_it_follows_the_log() -> None:
    outrun = Outrun()
    for index in (10, 10, 20, 15, 20):
        outrun.copies(Index(index))
    assert outrun.times == 1, "the same one again, or an earlier one, is no later one"
    # The snapshot alone, and a part of what is behind it.
    for index, of in ((20, 20), (20, 90), (89, 90)):
        assert not outrun.has_log_to(Index(index), of=Index(of))
    outrun.copies(Index(90))
    assert outrun.times == 2
    assert outrun.has_log_to(Index(95), of=Index(95))
    outrun.copies(Index(200))
    assert outrun.times == 0


def test_what_counts_of_being_outrun_has_a_bound() -> None:
    outrun = Outrun()
    for index in range(1, 100):
        outrun.copies(Index(index))
    assert outrun.times == OUTRUN_TIMES_MAX


def test_how_often_copies_were_outrun_counts_for_a_tick_and_the_worst_of_them() -> None:
    pace = Pace()
    for times in (1, 3, 2):
        pace.hear_outrun(times)
    assert not list(pace.due())
    assert pace.outrun_times == 3
    assert not list(pace.due())
    assert pace.outrun_times == 0, "no copy said anything: all have come to their end"
