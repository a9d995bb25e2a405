"""A newcomer that copies slower than others publish is let go faster at both ends, and arrives."""

from __future__ import annotations

import pytest
from tests.unit.replica.several_hosts import SeveralHosts

from angarium.batch import encode
from angarium.ids import Micros, NodeId, RaftGroupId
from angarium.modes import DeliveryMode
from angarium.raft import Change, ChangeKind, ConfChange
from angarium.replica.acks import Publishing
from angarium.replica.catching_up import PACED_BYTES_MIN
from angarium.replica.config import ReplicaConfig
from angarium.replica.pacing import OUTRUN_FACTOR, OUTRUN_TIMES_MAX

FIRST, SECOND = NodeId(1), NodeId(2)
GROUP = RaftGroupId(1)
PUBLISHED_BYTES = 2_000
"""What is published in a tick."""
TICKS_MAX = 400


def a_leader_with_a_slow_newcomer() -> SeveralHosts:
    """Return a leader that waits for nobody, and a newcomer that is far behind."""
    impatient = ReplicaConfig(
        snapshot_entries=4,
        snapshot_keep_entries=0,
        snapshot_wait_entries=4,
        transfer_chunk_bytes=500,
        transfer_chunks_per_tick=100,
    )
    two = SeveralHosts([FIRST, SECOND], impatient)
    two.form(GROUP, [FIRST])
    two.hosts[SECOND].join_group(GROUP)
    for _ in range(TICKS_MAX):
        two.tick()
        if two.replica(FIRST, GROUP).may_serve:
            break
    for _ in range(20):
        publish(two)
    leader = two.replica(FIRST, GROUP)
    newcomer = Change(ChangeKind.ADD_LEARNER, two.hosts[SECOND].id)
    leader.propose_conf_change(ConfChange((newcomer,)))
    leader.process()
    return two


def publish(two: SeveralHosts) -> None:
    leader = two.hosts[FIRST].replicas[GROUP]
    data = bytearray(encode([bytes(PUBLISHED_BYTES)]))
    batch = Publishing([data], DeliveryMode.CONSISTENT, lambda _: None)
    leader.publish([batch], now=Micros(1_000))
    leader.process()
    two.settle()


def pass_tick(two: SeveralHosts, *, hurried: frozenset[NodeId]) -> None:
    """Let a tick pass in which somebody publishes more than a copy may take on its own."""
    for node, host in two.hosts.items():
        times = host.pace.outrun_times if node in hurried else 0
        host.pace.bytes_per_tick = PUBLISHED_BYTES // 2 * OUTRUN_FACTOR**times
    publish(two)
    two.tick()


def follows(two: SeveralHosts) -> bool:
    return two.replica(SECOND, GROUP).applied == two.replica(FIRST, GROUP).applied


def test_a_newcomer_that_is_outrun_hurries_at_both_ends_and_then_no_more() -> None:
    two = a_leader_with_a_slow_newcomer()
    most = dict.fromkeys(two.hosts, 0)
    for _ in range(TICKS_MAX):
        pass_tick(two, hurried=frozenset(two.hosts))
        most = {node: max(most[node], host.pace.outrun_times) for node, host in two.hosts.items()}
        if follows(two):
            break
    else:
        pytest.fail("it was outrun for ever")
    assert all(0 < times <= OUTRUN_TIMES_MAX for times in most.values())
    for _ in range(50):
        pass_tick(two, hurried=frozenset())
        assert follows(two)
    assert [host.pace.outrun_times for host in two.hosts.values()] == [0, 0]
    # Nothing is left over from before: the next time it falls behind it begins gently.
    two.deaf.add(SECOND)
    for _ in range(30):
        pass_tick(two, hurried=frozenset())
    two.deaf.clear()
    for _ in range(2):
        pass_tick(two, hurried=frozenset())
    assert not follows(two)
    assert [host.pace.outrun_times for host in two.hosts.values()] == [0, 0]


@pytest.mark.parametrize("hurried", [set(), {FIRST}, {SECOND}], ids=["none", "source", "newcomer"])
def test_it_would_be_outrun_for_ever_if_not_both_ends_hurried(hurried: set[NodeId]) -> None:
    two = a_leader_with_a_slow_newcomer()
    for _ in range(TICKS_MAX // 2):
        pass_tick(two, hurried=frozenset(hurried))
        assert not follows(two)


def test_what_an_operator_allows_is_not_exceeded_however_often_a_copy_is_outrun() -> None:
    two = a_leader_with_a_slow_newcomer()
    allowed = 1_000
    newcomer = two.hosts[SECOND]
    newcomer.replicas[GROUP].pace_copy(allowed)
    pass_tick(two, hurried=frozenset())
    before = newcomer.pace.passed_bytes
    for _ in range(TICKS_MAX // 2):
        pass_tick(two, hurried=frozenset(two.hosts))
    assert newcomer.pace.outrun_times > 1
    assert newcomer.pace.passed_bytes - before <= allowed * (TICKS_MAX // 2) + PACED_BYTES_MIN


def test_a_leader_forgets_a_newcomer_that_is_gone() -> None:
    two = a_leader_with_a_slow_newcomer()
    source = two.hosts[FIRST]
    for _ in range(TICKS_MAX):
        pass_tick(two, hurried=frozenset())
        if source.pace.outrun_times > 1:
            break
    else:
        pytest.fail("it was not outrun")
    two.deaf.add(SECOND)
    gone = Change(ChangeKind.REMOVE, two.hosts[SECOND].id)
    leader = two.replica(FIRST, GROUP)
    leader.propose_conf_change(ConfChange((gone,)))
    leader.process()
    for _ in range(3):
        pass_tick(two, hurried=frozenset())
    assert source.pace.outrun_times == 0
    assert not source.replicas[GROUP]._server._outrun
