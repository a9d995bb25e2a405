"""Elections wait as long as votes are under way."""

from __future__ import annotations

from angarium.ids import Incarnation, NodeId, replica_id
from angarium.replica.round_trips import ALLOWED_TICKS_MAX, SAMPLES_MAX, RoundTrips

ONE, TWO, THREE = (replica_id(NodeId(number), Incarnation(7)) for number in (1, 2, 3))
VOTERS = (ONE, TWO, THREE)


def test_nothing_is_allowed_for_within_a_data_centre() -> None:
    trips = RoundTrips()
    assert not trips
    trips.note(NodeId(2), 0.01)
    trips.note(NodeId(3), 0.3)
    assert trips.allowed_ticks(ONE, VOTERS) == 0


def test_the_nearest_majority_counts() -> None:
    trips = RoundTrips()
    trips.note(NodeId(2), 3.2)
    trips.note(NodeId(3), 8.0)
    assert trips.allowed_ticks(ONE, VOTERS) == 3
    assert trips.allowed_ticks(ONE, (ONE,)) == 0
    assert trips.allowed_ticks(ONE, ()) == 0


def test_the_shortest_way_counts_so_that_a_busy_node_is_not_far_away() -> None:
    trips = RoundTrips()
    trips.note(NodeId(2), 3.0)
    for _ in range(SAMPLES_MAX - 1):
        trips.note(NodeId(2), 15.0)
    assert trips.of(NodeId(2)) == 3.0
    trips.note(NodeId(2), 15.0)
    assert trips.of(NodeId(2)) == 15.0, "it has moved"


def test_what_is_allowed_is_bounded_and_those_who_left_are_forgotten() -> None:
    trips = RoundTrips()
    trips.note(NodeId(2), 1_000.0)
    trips.note(NodeId(3), 1_000.0)
    assert trips.allowed_ticks(ONE, VOTERS) == ALLOWED_TICKS_MAX
    trips.forget([NodeId(3)])
    assert trips.of(NodeId(2)) == 0.0
