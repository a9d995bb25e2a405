"""An election is called one for a moment; a lost majority is told with its numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from angarium.errors import CorruptData, NotLeader
from angarium.ids import CATALOG_GROUP, Incarnation, NodeId, RaftGroupId, replica_id
from angarium.node import quorum

GROUP = RaftGroupId(7)


def votes_of(*nodes: int) -> SimpleNamespace:
    voters = [replica_id(NodeId(one), Incarnation(1)) for one in nodes]
    return SimpleNamespace(conf_state=SimpleNamespace(voters=voters))


def a_node(
    *,
    up: set[int],
    lost: str = "",
    replicas: tuple[int, ...] = (1, 2, 3),
    led_by: int | None = None,
) -> Any:
    """Return node 1, which has a replica of partition 2 of orders."""
    partition = SimpleNamespace(
        group=GROUP, topic=1, number=2, voters=tuple(map(NodeId, replicas)), target=()
    )
    topics = SimpleNamespace(partitions={GROUP: partition})
    return SimpleNamespace(
        id=NodeId(1),
        peers=SimpleNamespace(is_up=up.__contains__, address_of=lambda node: f"h:{node}"),
        host=SimpleNamespace(
            catalog=SimpleNamespace(group=CATALOG_GROUP, raft=votes_of(1)),
            replicas={GROUP: SimpleNamespace(group=GROUP, raft=votes_of(*replicas))},
            witnesses={},
        ),
        leader_of=lambda group: NodeId(1) if group == CATALOG_GROUP else led_by,
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


def test_who_only_reads_a_partition_is_ready_without_it() -> None:
    clock = Clock()
    for replicas, count in (((1, 2, 3), 1), ((2, 3, 4), 0)):
        node = a_node(up=set(), replicas=replicas, led_by=3)
        looking = quorum.Quorum(node, clock=clock)
        clock.now += 60
        assert not looking.is_led(GROUP), "its leader cannot be reached"
        assert len(looking.reasons()) == count
        assert looking.trouble(GROUP), "and that is told of the partition all the same"


def test_a_leader_without_a_majority_is_not_ready_and_takes_nothing() -> None:
    clock = Clock()
    up = {2, 3}
    looking = quorum.Quorum(a_node(up=up, led_by=1), clock=clock)
    clock.now += 60
    looking.check(GROUP)
    for gone in (2, 3):
        up.discard(gone)
        looking.link_changed(NodeId(gone))
    clock.now += quorum.ELECTION_S_MAX
    (reason,) = looking.reasons()
    assert "partition 2 of orders has 1 of 3 replicas" in reason
    with pytest.raises(NotLeader, match="1 of 3 replicas"):
        looking.check(GROUP)


def test_the_time_of_a_silence_counts_as_time_away() -> None:
    clock = Clock()
    up = {2}
    looking = quorum.Quorum(a_node(up=up), clock=clock)
    clock.now += 60
    assert looking.trouble(GROUP) == ""
    up.clear()
    looking.fell_silent(NodeId(3), quorum.ELECTION_S_MAX + 1)
    looking.fell_silent(NodeId(2), quorum.ELECTION_S_MAX)
    looking.link_changed(NodeId(2))
    assert looking.trouble(GROUP), "it was silent for as long as an election may take"
    up.add(2)
    looking.link_changed(NodeId(2))
    assert looking.trouble(GROUP) == ""
