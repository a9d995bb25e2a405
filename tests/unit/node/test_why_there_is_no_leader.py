"""An election is called one for a moment; a lost majority is told with its numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from angarium.errors import CorruptData, NotLeader
from angarium.ids import NodeId, RaftGroupId
from angarium.node import quorum

GROUP = RaftGroupId(7)


def a_node(*, up: set[int], lost: str = "") -> Any:
    """Return node 1 of three that hold partition 2 of orders."""
    partition = SimpleNamespace(replicas=(NodeId(1), NodeId(2), NodeId(3)))
    topics = SimpleNamespace(partitions={GROUP: partition})
    return SimpleNamespace(
        id=NodeId(1),
        peers=SimpleNamespace(is_up=up.__contains__, address_of=lambda node: f"h:{node}"),
        host=SimpleNamespace(catalog=object(), replicas={GROUP: object()}),
        healing=SimpleNamespace(only_replica_lost=lambda _: lost),
        catalog=SimpleNamespace(
            name_of=lambda _: "partition 2 of orders", machine=SimpleNamespace(topics=topics)
        ),
    )


class Clock:
    """A clock that a test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_with_a_majority_it_is_an_election() -> None:
    clock = Clock()
    looking = quorum.Quorum(a_node(up={2}), clock=clock)
    clock.now += 60
    assert looking.trouble(GROUP) == ""
    with pytest.raises(NotLeader, match="partition 2 of orders is electing a leader"):
        raise looking.no_leader(GROUP)


def test_a_majority_that_stays_away_is_told() -> None:
    clock = Clock()
    looking = quorum.Quorum(a_node(up=set()), clock=clock)
    clock.now += 60
    looking.link_changed(NodeId(3))
    looking.link_changed(NodeId(2))
    assert looking.trouble(GROUP) == "", "links break for a moment when nodes restart"
    clock.now += quorum.ELECTION_S_MAX
    with pytest.raises(NotLeader) as told:
        raise looking.no_leader(GROUP)
    assert str(told.value) == (
        "partition 2 of orders has 1 of 3 replicas: it cannot take records until 2 are there; "
        "missing: node 2 (h:2), node 3 (h:3)"
    )


def test_damage_that_nobody_can_mend_is_not_retriable() -> None:
    looking = quorum.Quorum(a_node(up={2, 3}, lost="partition 2 of orders is damaged"))
    error = looking.no_leader(GROUP)
    assert isinstance(error, CorruptData)
    assert not error.retriable
