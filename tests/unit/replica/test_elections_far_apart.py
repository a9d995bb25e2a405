"""Replicas whose voters are far away wait for them; nobody else waits longer than ever."""

from __future__ import annotations

from tests.unit.replica.several_hosts import SeveralHosts

from angarium.ids import NodeId, RaftGroupId
from angarium.replica.config import ReplicaConfig
from angarium.replica.fullness import MARK_TICKS

GROUP = RaftGroupId(1)
NODES = [NodeId(1), NodeId(2), NodeId(3)]
FAR_TICKS = 8.0


def formed(*, far: bool) -> SeveralHosts:
    """Return hosts of one group; if they are `far`, each has measured how far the others are."""
    several = SeveralHosts(NODES, ReplicaConfig(rest_after_ticks=10_000))
    several.form(GROUP, NODES)
    for node, host in several.hosts.items():
        for other in NODES:
            if far and other != node:
                host.round_trips.note(other, FAR_TICKS)
    for _ in range(MARK_TICKS):
        several.tick()
    return several


def test_elections_wait_for_the_round_trip_to_a_majority() -> None:
    several = formed(far=True)
    waits = {several.replica(one, GROUP).raft._core.election_ticks for one in NODES}
    assert waits == {ReplicaConfig().election_ticks + int(FAR_TICKS)}


def test_elections_within_a_data_centre_are_as_quick_as_ever() -> None:
    several = formed(far=False)
    waits = {several.replica(one, GROUP).raft._core.election_ticks for one in NODES}
    assert waits == {ReplicaConfig().election_ticks}
