"""A log of few large entries is shortened as well as one of many small ones."""

from __future__ import annotations

import pytest
from tests.unit.replica.several_hosts import SeveralHosts

from angarium.batch import encode
from angarium.ids import Micros, NodeId, RaftGroupId
from angarium.modes import DeliveryMode
from angarium.replica.acks import Publishing
from angarium.replica.config import ReplicaConfig

GROUP = RaftGroupId(1)
NODE = NodeId(1)
LARGE = ReplicaConfig(snapshot_entries=100_000, snapshot_bytes=50_000, snapshot_keep_entries=0)


def publish(one: SeveralHosts, size: int) -> None:
    host = one.hosts[NODE]
    batch = bytearray(encode([bytes(size)]))
    request = Publishing([batch], DeliveryMode.CONSISTENT, lambda _: None)
    host.replicas[GROUP].publish([request], now=Micros(1_000))
    host.replicas[GROUP].process()
    one.settle()


def test_a_few_large_entries_make_a_snapshot_due() -> None:
    one = SeveralHosts([NODE], LARGE)
    one.form(GROUP, [NODE])
    replica = one.replica(NODE, GROUP)
    for _ in range(50):
        one.tick()
    if not replica.may_serve:
        pytest.fail("nobody leads")
    first = replica.snapshot_index
    for _ in range(4):
        publish(one, 10_000)
    assert replica.snapshot_index == first
    publish(one, 10_000)
    assert replica.snapshot_index == replica.applied
    for _ in range(4):
        publish(one, 10_000)
    assert replica.snapshot_index == replica.applied - 4, "it counts anew"
