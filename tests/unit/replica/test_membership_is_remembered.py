"""A change of membership that is done is known to be done after a restart."""

from __future__ import annotations

from tests.unit.replica.several_hosts import SeveralHosts

from angarium.ids import NodeId, RaftGroupId
from angarium.raft import Change, ChangeKind, ConfChange

GROUP = RaftGroupId(1)
NODES = [NodeId(1), NodeId(2), NodeId(3)]
TICKS_MAX = 100


def test_the_commit_of_a_change_is_written_down_though_nobody_publishes_after_it() -> None:
    hosts = SeveralHosts(NODES)
    hosts.form(GROUP, NODES[:2])
    hosts.hosts[NODES[2]].join_group(GROUP)
    for _ in range(TICKS_MAX):
        hosts.tick()
    leader = next(one for one in (hosts.replica(node, GROUP) for node in NODES) if one.may_serve)
    newcomer = Change(ChangeKind.ADD_LEARNER, hosts.hosts[NODES[2]].id)
    leader.propose_conf_change(ConfChange((newcomer,)))
    leader.process()
    changed_at = leader.last_index
    for _ in range(TICKS_MAX):
        hosts.tick()
    for node in NODES[:2]:
        assert hosts.replica(node, GROUP).raft.conf_state.learners
        written = hosts.hosts[node].wal.log(GROUP).hard_state
        assert written.commit >= changed_at, "it would take the change for one under way"
