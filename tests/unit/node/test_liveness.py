"""Who is alive: decided from what was heard, the allowance for the way, and looks at the time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angarium.ids import NodeId
from angarium.node.liveness import ABORT_FACTOR, PATIENCE_S_MIN, Beats, Liveness, patience_s

ONE, TWO = NodeId(1), NodeId(2)
LOOK_S = 0.2
PATIENCE_S = 2.0


def beats(patience: float = PATIENCE_S) -> Beats:
    return Beats(look_s=LOOK_S, patience=lambda _: patience)


def looks(seconds: float) -> int:
    return round(seconds / LOOK_S)


def test_two_of_the_longest_election_timeouts_without_a_byte_are_silence() -> None:
    found = beats(patience_s(election_s=0.5, way_s=0.0, way_s_max=1.0))
    for _ in range(looks(2.0) - 1):
        found.look([ONE], heard=[])
        assert not found.is_silent(ONE)
    found.look([ONE], heard=[])
    assert found.is_silent(ONE)
    assert found.silent_s(ONE) == pytest.approx(2.0)
    assert not found.is_given_up(ONE)


def test_a_pause_of_a_second_is_none_however_short_ticks_are() -> None:
    for election_s in (0.05, 0.2, 0.5):
        found = beats(patience_s(election_s=election_s, way_s=0.0, way_s_max=0.1))
        for _ in range(looks(1.0) + 1):  # what came last may have come a look before the pause
            found.look([ONE], heard=[])
        assert not found.is_silent(ONE), election_s


def test_the_way_to_a_node_is_allowed_for_up_to_a_bound() -> None:
    near = patience_s(election_s=0.5, way_s=0.001, way_s_max=1.0)
    far = patience_s(election_s=0.5, way_s=0.4, way_s_max=1.0)
    absurd = patience_s(election_s=0.5, way_s=60.0, way_s_max=1.0)
    assert far - near == pytest.approx(0.399)
    assert absurd == pytest.approx(3.0)
    assert patience_s(election_s=0.001, way_s=0.0, way_s_max=1.0) == PATIENCE_S_MIN


def test_whatever_is_heard_ends_the_silence_of_that_node_alone() -> None:
    found = beats()
    for _ in range(looks(PATIENCE_S)):
        found.look([ONE, TWO], heard=[TWO])
    assert found.is_silent(ONE)
    assert found.silent_s(TWO) == 0.0
    found.look([ONE, TWO], heard=[ONE])
    assert not found.is_silent(ONE)
    assert found.silent_s(TWO) == pytest.approx(LOOK_S)


def test_connections_stay_until_the_silence_is_long() -> None:
    found = beats()
    for _ in range(looks(ABORT_FACTOR * PATIENCE_S) - 1):
        found.look([ONE], heard=[])
    assert found.is_silent(ONE)
    assert not found.is_given_up(ONE)
    found.look([ONE], heard=[])
    assert found.is_given_up(ONE)


def test_a_node_whose_link_ended_begins_anew() -> None:
    found = beats()
    for _ in range(looks(PATIENCE_S)):
        found.look([ONE], heard=[])
    found.look([], heard=[])
    assert found.silent_s(ONE) == 0.0
    assert not found.is_silent(ONE)


@given(st.lists(st.booleans(), max_size=60), st.floats(0.0, 1.0))
def test_a_node_is_silent_exactly_when_nothing_came_for_so_long(
    heard: list[bool], way_s: float
) -> None:
    allowed = patience_s(election_s=0.5, way_s=way_s, way_s_max=1.0)
    found = beats(allowed)
    for one in heard:
        found.look([ONE], heard=[ONE] if one else [])
    quiet = next((at for at, one in enumerate(reversed(heard)) if one), len(heard))
    assert found.is_silent(ONE) == (quiet * LOOK_S >= allowed)


class Dialled:
    """A connection that a silent node has dialled."""

    def __init__(self) -> None:
        self.is_heard = False
        self.pings = 0
        self.gave_up = ""

    def take_heard(self) -> bool:
        is_heard, self.is_heard = self.is_heard, False
        return is_heard

    def ping(self) -> None:
        self.pings += 1

    def give_up(self, why: str) -> None:
        self.gave_up = why


def test_what_a_node_has_dialled_is_measured_while_the_link_to_it_is_down() -> None:
    dialled, marks = Dialled(), list[NodeId]()
    peers = SimpleNamespace(
        ids=[ONE],
        control=lambda _: None,
        connections=lambda _: [],
        is_silent=lambda _: False,
        mark=lambda node, **_: marks.append(node),
    )
    replica = SimpleNamespace(election_ticks=10, vouch_ticks=4)
    node: Any = SimpleNamespace(
        peers=peers,
        admission=SimpleNamespace(guests_of=lambda _: [dialled]),
        host=SimpleNamespace(round_trips=SimpleNamespace(of=lambda _: 0)),
        config=SimpleNamespace(tick_ms=50, host_config=SimpleNamespace(replica=replica)),
    )
    liveness = Liveness(node)
    for _ in range(looks(PATIENCE_S)):
        liveness.look()
    assert dialled.pings == looks(PATIENCE_S)
    dialled.is_heard = True
    for _ in range(looks(ABORT_FACTOR * PATIENCE_S)):
        liveness.look()
    assert not dialled.gave_up
    liveness.look()
    assert "silent" in dialled.gave_up
    assert not marks, "a node without a link is unreachable already"
