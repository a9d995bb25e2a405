"""Hosts joined by function calls: the whole way of a record, without time or chance."""

from __future__ import annotations

from tests.unit.replica.hosts import GROUP, Hosts

from angarium.batch import encode
from angarium.errors import NotLeader
from angarium.ids import Micros, NodeId
from angarium.machine.outcomes import Appended
from angarium.modes import DeliveryMode
from angarium.raft import Change, ChangeKind, ConfChange
from angarium.replica.acks import Published, Publishing


def test_a_consistent_publish_is_answered_when_a_majority_has_it() -> None:
    hosts = Hosts()
    hosts.form()
    (answer,) = hosts.publish(b"a", b"b")
    assert isinstance(answer, Published)
    assert not answer.provisional
    outcome = answer.outcomes[0]
    assert isinstance(outcome, Appended)
    assert (outcome.base_offset, outcome.next_offset) == (0, 2)
    hosts.tick(2)
    assert [hosts.values(node) for node in (1, 2, 3)] == [[b"a", b"b"]] * 3


def test_without_a_majority_a_consistent_publish_is_not_answered() -> None:
    hosts = Hosts()
    hosts.form()
    leader = hosts.leader()
    hosts.cut = set(hosts.hosts) - {NodeId(leader.id >> 48)}
    assert hosts.publish(b"a") == []


def test_an_eventual_publish_is_answered_by_the_leader_alone() -> None:
    hosts = Hosts()
    hosts.form()
    leader = hosts.leader()
    hosts.cut = set(hosts.hosts) - {NodeId(leader.id >> 48)}
    (answer,) = hosts.publish(b"a", mode=DeliveryMode.EVENTUAL)
    assert isinstance(answer, Published)
    assert answer.provisional


def test_an_eventual_publish_behind_an_old_uncommitted_one_waits() -> None:
    hosts = Hosts()
    hosts.form()
    leader = hosts.leader()
    hosts.cut = set(hosts.hosts) - {NodeId(leader.id >> 48)}
    assert len(hosts.publish(b"a", mode=DeliveryMode.EVENTUAL, now=1)) == 1
    assert hosts.publish(b"b", mode=DeliveryMode.EVENTUAL, now=200_000) == []


def test_a_follower_takes_no_publish() -> None:
    hosts = Hosts()
    hosts.form()
    leader = hosts.leader()
    follower = next(h for h in hosts.hosts.values() if h.id != leader.id).replicas[GROUP]
    answers: list[object] = []

    batch = encode([b"a"])
    follower.publish([Publishing([batch], DeliveryMode.CONSISTENT, answers.append)], now=Micros(1))
    assert isinstance(answers[0], NotLeader)


def test_a_host_that_starts_again_has_what_it_had() -> None:
    hosts = Hosts()
    hosts.form()
    for number in range(25):
        hosts.publish(b"%d" % number)
    hosts.tick(2)
    for node in (1, 2, 3):
        hosts.maintain(node)
    hosts.publish(b"last")
    for node in list(hosts.hosts):
        hosts.open(node)
    hosts.leader()
    hosts.tick(2)
    expected = [b"%d" % number for number in range(25)] + [b"last"]
    assert [hosts.values(node) for node in (1, 2, 3)] == [expected] * 3


def test_a_newcomer_gets_the_segments_before_the_state() -> None:
    hosts = Hosts(4)
    hosts.form(1, 2, 3)
    for number in range(30):
        hosts.publish(b"%d" % number, b"x" * 500)
    for node in (1, 2, 3):
        hosts.maintain(node)
    newcomer = hosts.hosts[NodeId(4)]
    newcomer.join_group(GROUP)

    leader = hosts.leader()
    leader.propose_conf_change(ConfChange((Change(ChangeKind.ADD_LEARNER, newcomer.id),)))
    leader.process()
    hosts.settle()
    for _ in range(40):
        hosts.tick()
        hosts.maintain(int(leader.id >> 48))
    assert hosts.values(4) == hosts.values(1)
    assert newcomer.replicas[GROUP].snapshot_index > 1


def test_an_idle_group_rests_and_wakes_when_something_is_published() -> None:
    hosts = Hosts()
    hosts.form()
    hosts.publish(b"a")
    hosts.tick(30)
    assert [host.resting for host in hosts.hosts.values()] == [1, 1, 1]
    (answer,) = hosts.publish(b"b")
    assert isinstance(answer, Published)
    hosts.tick(2)
    assert [host.resting for host in hosts.hosts.values()] == [0, 0, 0]
    assert hosts.values(1) == hosts.values(2) == hosts.values(3) == [b"a", b"b"]


def test_resting_groups_elect_another_leader_when_theirs_falls_silent() -> None:
    hosts = Hosts()
    hosts.form()
    hosts.publish(b"a")
    old = hosts.leader()
    hosts.tick(30)
    hosts.cut = {NodeId(old.id >> 48)}
    hosts.tick(40)
    assert hosts.leader().id != old.id


def test_a_removed_group_leaves_no_files_once_the_log_has_forgotten_it() -> None:
    hosts = Hosts()
    hosts.form()
    hosts.publish(b"a")
    host = hosts.hosts[NodeId(1)]
    host.remove_group(GROUP)
    assert host.is_leaving(GROUP)
    hosts.settle()
    assert not host.is_leaving(GROUP)
    assert not hosts.disks[NodeId(1)].exists(f"groups/{GROUP}")
    assert GROUP not in hosts.open(NodeId(1)).replicas


def test_a_host_whose_clock_was_not_compared_yet_lets_a_leadership_be() -> None:
    # Seed 60339: a node came back with a clock an hour ahead, was handed a leadership at once, and
    # stamped records with that time.
    hosts = Hosts()
    hosts.form()
    leader = hosts.leader()
    heir = next(host for host in hosts.hosts.values() if host.id != leader.id)
    heir.may_take_over = False
    leader.raft.transfer_leader(heir.id)
    leader.process()
    hosts.tick(40)
    assert hosts.leader() is leader, "it goes on when the handover has timed out"
    assert hosts.publish(b"a"), "and takes records again"

    heir.may_take_over = True
    leader.raft.transfer_leader(heir.id)
    leader.process()
    hosts.tick(2)
    assert hosts.leader().id == heir.id
