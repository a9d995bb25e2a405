"""EVENTUAL entries that a leader holds back while others are under way."""

from __future__ import annotations

from tests.unit.replica.hosts import Hosts
from tests.unit.replica.test_commit_news import exchange

from angarium.batch import encode
from angarium.ids import Micros
from angarium.modes import DeliveryMode
from angarium.replica.acks import Published, Publishing
from angarium.replica.replica import HELD_BYTES_MAX


def formed() -> Hosts:
    hosts = Hosts()
    hosts.form()
    hosts.leader()
    hosts.settle()
    return hosts


def publish(hosts: Hosts, value: bytes, mode: DeliveryMode = DeliveryMode.EVENTUAL) -> list[object]:
    """Publish as the node does; return where the answer is put."""
    answers: list[object] = []
    leader = hosts.leader()
    leader.publish(
        [Publishing([encode([value])], mode, answers.append)],
        now=Micros(1),
        may_wait=leader.has_uncommitted,
    )
    if not leader.raft.holds_entries:
        leader.process()
    return answers


def test_the_first_goes_at_once_and_those_behind_it_together() -> None:
    hosts = formed()
    publish(hosts, b"0")
    assert not hosts.leader().raft.holds_entries
    answers = [publish(hosts, b"%d" % number) for number in range(1, 4)]
    assert all(isinstance(one, Published) and one.provisional for (one,) in answers)
    assert exchange(hosts) == 2, "only the first has left"
    assert hosts.leader().end_offset == 1
    hosts.leader().send_held()
    assert exchange(hosts) == 2, "the others in one append to each follower"
    assert hosts.leader().end_offset == 4


def test_whoever_waits_for_a_commit_is_not_held_back() -> None:
    hosts = formed()
    publish(hosts, b"0")
    publish(hosts, b"1")
    answers = publish(hosts, b"2", DeliveryMode.CONSISTENT)
    assert not hosts.leader().raft.holds_entries
    exchange(hosts)
    (answer,) = answers
    assert isinstance(answer, Published)
    assert hosts.leader().end_offset == 3


def test_much_is_not_held_back() -> None:
    hosts = formed()
    publish(hosts, b"0")
    publish(hosts, b"x" * (HELD_BYTES_MAX // 2))
    assert hosts.leader().raft.holds_entries
    publish(hosts, b"x" * (HELD_BYTES_MAX // 2))
    assert not hosts.leader().raft.holds_entries


def test_what_commits_too_late_to_be_answered_early_is_not_held_back() -> None:
    hosts = formed()
    publish(hosts, b"0")
    late = Micros(1 + 10_000_000)
    answers: list[object] = []
    leader = hosts.leader()
    one = Publishing([encode([b"1"])], DeliveryMode.EVENTUAL, answers.append)
    leader.publish([one], now=late, may_wait=True)
    assert not leader.raft.holds_entries
    assert answers == []
