"""Telling followers what is committed: with the next entries, or by itself a moment later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.replica.hosts import GROUP, Hosts

from angarium.batch import encode
from angarium.ids import Micros
from angarium.modes import DeliveryMode
from angarium.raft.messages import MessageKind
from angarium.replica.acks import Publishing

if TYPE_CHECKING:
    from angarium.replica.host import Host


def exchange(hosts: Hosts) -> int:
    """Deliver and sync without ever releasing news by themselves; return how many appends went."""
    appends = 0
    busy = True
    while busy:
        busy = False
        for host in hosts.hosts.values():
            for group, message in host.outbox.take_raft_messages():
                appends += message.kind is MessageKind.APPEND
                busy = True
                for other in hosts.hosts.values():
                    other.deliver(group, message, via=message.sender)
            sync = host.begin_sync()
            if sync is not None:
                sync.write()
                host.finish_sync(sync)
                busy = True
    return appends


def publish(hosts: Hosts, now: int) -> None:
    leader = hosts.leader()
    publishing = Publishing([encode([b"a"])], DeliveryMode.CONSISTENT, lambda _: None)
    leader.publish([publishing], now=Micros(now))
    leader.process()


def ends(hosts: Hosts) -> list[int]:
    return sorted(host.replicas[GROUP].end_offset for host in hosts.hosts.values())


def test_news_of_a_commit_travel_with_the_next_entries() -> None:
    hosts = Hosts()
    hosts.form()
    hosts.leader()
    hosts.settle()
    for number in range(1, 5):
        publish(hosts, now=number)
        assert exchange(hosts) == 2, "one append to each follower, and nothing besides"
        assert ends(hosts) == [number - 1, number - 1, number]


def test_without_further_entries_the_news_are_told_by_themselves() -> None:
    hosts = Hosts()
    hosts.form()
    hosts.leader()
    hosts.settle()
    publish(hosts, now=1)
    exchange(hosts)
    for host in hosts.hosts.values():
        host.outbox.release_commit_news()
    assert exchange(hosts) == 2
    assert ends(hosts) == [1, 1, 1]


def test_the_newest_commit_index_is_not_lost_when_a_node_closes() -> None:
    hosts = Hosts()
    hosts.form()
    hosts.leader()
    hosts.publish(b"a")
    commits = {node: host.replicas[GROUP].raft.commit for node, host in hosts.hosts.items()}
    for node, host in list(hosts.hosts.items()):
        host.close()
        reopened: Host = hosts.open(node)
        assert reopened.replicas[GROUP].raft.commit == commits[node]
