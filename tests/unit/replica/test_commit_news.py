"""Telling followers what is committed: with the next entries, or by itself a moment later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.replica.hosts import CONFIG, GROUP, Hosts

from angarium.batch import encode
from angarium.ids import CATALOG_GROUP, Micros, node_of
from angarium.modes import DeliveryMode
from angarium.raft import Change, ChangeKind, ConfChange
from angarium.raft.messages import MessageKind
from angarium.replica.acks import Publishing

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.ids import NodeId
    from angarium.replica.host import Host


BEAT = CONFIG.replica.heartbeat_ticks


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


def test_where_nobody_waits_for_records_a_heartbeat_tells_the_commit() -> None:
    hosts = Hosts()
    hosts.form()
    leader = hosts.leader()
    for heard in hosts.heard.values():
        heard.is_read = False
    publish(hosts, now=1)
    exchange(hosts)
    publish(hosts, now=2)  # the leader has heard by now that nobody waits
    exchange(hosts)
    for host in hosts.hosts.values():
        host.outbox.release_commit_news()
    assert exchange(hosts) == 0
    assert ends(hosts) == [1, 1, 2]
    for _ in range(BEAT):
        hosts.hosts[node_of(leader.id)].tick()
    exchange(hosts)
    assert ends(hosts) == [2, 2, 2]


def test_what_the_catalog_commits_is_told_everybody_at_once() -> None:
    hosts = Hosts()
    voters = [host.id for host in hosts.hosts.values()]
    for host in hosts.hosts.values():
        host.form_group(CATALOG_GROUP, voters)
    catalogs = [host.catalog for host in hosts.hosts.values() if host.catalog is not None]
    while not any(catalog.may_serve for catalog in catalogs):
        for host in hosts.hosts.values():
            host.tick()
            exchange(hosts)
    leader = next(catalog for catalog in catalogs if catalog.may_serve)
    leader.propose(b"")
    leader.process()
    exchange(hosts)
    assert len({catalog.raft.commit for catalog in catalogs}) == 2, "only its leader knows"
    for host in hosts.hosts.values():
        host.outbox.release_commit_news()
    exchange(hosts)
    assert len({catalog.raft.commit for catalog in catalogs}) == 1


@pytest.mark.parametrize("which", [min, max])
def test_whoever_is_removed_hears_so_though_no_heartbeat_comes_any_more(
    which: Callable[[list[NodeId]], NodeId],
) -> None:
    hosts = Hosts()
    hosts.form()
    leader = hosts.leader()
    for heard in hosts.heard.values():
        heard.is_read = False
    publish(hosts, now=1)
    hosts.settle()
    # The one that answers before the change is committed, and the one that answers later.
    leaving = which([node for node in hosts.hosts if node != node_of(leader.id)])
    removed = hosts.hosts[leaving].replicas[GROUP]
    leader.propose_conf_change(ConfChange((Change(ChangeKind.REMOVE, removed.id),)))
    leader.process()
    hosts.settle()
    for _ in range(2 * BEAT):
        hosts.hosts[node_of(leader.id)].tick()
        hosts.settle()
    assert "does not belong to it any more" in removed.shortfall(), "it would be read for ever"


def test_where_somebody_has_begun_to_wait_the_first_commit_is_told_at_once() -> None:
    hosts = Hosts()
    hosts.form()
    leader = hosts.leader()
    for heard in hosts.heard.values():
        heard.is_read = False
    publish(hosts, now=1)
    hosts.settle()
    last = max(node for node in hosts.hosts if node != node_of(leader.id))
    hosts.heard[last].is_read = True
    publish(hosts, now=2)
    # The other follower's answer commits the record; this one's comes behind it.
    outbox = hosts.hosts[node_of(leader.id)].outbox
    appends = outbox.take_raft_messages()
    outbox.raft_messages = [one for one in appends if node_of(one[1].to) != last]
    exchange(hosts)
    assert leader.end_offset == 2
    assert not outbox.is_news_awaited
    outbox.raft_messages = [one for one in appends if node_of(one[1].to) == last]
    exchange(hosts)
    assert outbox.is_news_awaited, "a reader would wait until the next tick"


def test_a_follower_that_lost_an_append_is_still_asked_where_it_stands() -> None:
    hosts = Hosts()
    hosts.form()
    leader = hosts.leader()
    for heard in hosts.heard.values():
        heard.is_read = False
    behind = next(node for node in hosts.hosts if node != node_of(leader.id))
    publish(hosts, now=1)
    hosts.cut.add(behind)
    hosts.settle()
    hosts.cut.clear()
    assert ends(hosts)[0] == 0
    for _ in range(2 * BEAT):
        hosts.hosts[node_of(leader.id)].tick()
        hosts.settle()
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
