"""Damage where peers compact each in its own time: mended by one that is as far, or begun anew."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.unit.log.stamped_batches import stamped
from tests.unit.replica.hosts import CONFIG, GROUP, Hosts

from angarium.batch import encode
from angarium.ids import Micros, NodeId, Offset
from angarium.log.segments.compacted_mark import Pass
from angarium.log.segments.names import FOOTER, SEGMENT, file_name
from angarium.modes import DeliveryMode
from angarium.replica.acks import Publishing
from angarium.replica.damage import Fate
from angarium.replica.peers import FramesReply
from angarium.replica.work import do_now

if TYPE_CHECKING:
    from angarium.log.segments import PartitionLog, SegmentDamage
    from angarium.log.segments.segment import Segment

VICTIM = 2
FOLDER = f"groups/{GROUP}/segments"
BATCHES = 48
KEYS = 36
COMPACTED = 40
"""Below it the first four records are superseded, and only they."""


def with_keys(message_bytes_max: int) -> Hosts:
    """Return hosts with three segments of sixteen records each, written everywhere."""
    config = replace(CONFIG, replica=replace(CONFIG.replica, message_bytes_max=message_bytes_max))
    hosts = Hosts(config=config)
    hosts.form()
    for number in range(BATCHES):
        leader = hosts.leader()
        batch = encode([b"x" * 900], keys=[b"%d" % (number % KEYS)])
        publishing = Publishing([batch], DeliveryMode.CONSISTENT, lambda _: None)
        leader.publish([publishing], now=Micros(number + 1))
        leader.process()
        hosts.settle()
    hosts.tick(2)
    for node in hosts.hosts:
        hosts.maintain(node)
    return hosts


def log_of(hosts: Hosts, node: int) -> PartitionLog:
    return hosts.hosts[NodeId(node)].replicas[GROUP].partition.log


def compact(log: PartitionLog, until: int) -> None:
    goal = Pass(Offset(until))
    log.close_segment(goal.until)
    log.sync()
    while log.compactor.is_behind(goal):
        do_now(log.compactor.turn(goal, limit=log.synced_offset))


def lose_a_segment(hosts: Hosts) -> None:
    base = next(iter(log_of(hosts, VICTIM).segments)).base_offset
    hosts.hosts[NodeId(VICTIM)].close()
    for suffix in (SEGMENT, FOOTER):
        hosts.disks[NodeId(VICTIM)].remove(file_name(FOLDER, base, suffix))
    hosts.open(NodeId(VICTIM))
    assert log_of(hosts, VICTIM).damage


@pytest.mark.parametrize("message_bytes_max", range(2_000, 9_000, 1_000))
def test_a_replica_whose_peers_are_all_compacted_further_begins_anew(
    message_bytes_max: int,
) -> None:
    """However many answers the stretch takes: the last came from the same peer (seed 50920)."""
    hosts = with_keys(message_bytes_max)
    for peer in (1, 3):
        compact(log_of(hosts, peer), COMPACTED)
    lose_a_segment(hosts)
    hosts.tick(60)
    assert "compacted" in str(hosts.hosts[NodeId(VICTIM)].lost[GROUP])


@pytest.mark.parametrize("further", [1, 3])
@pytest.mark.parametrize("message_bytes_max", [3_000, 4_000, 30_000])
def test_a_replica_is_mended_by_the_one_peer_that_is_as_far(
    further: int, message_bytes_max: int
) -> None:
    hosts = with_keys(message_bytes_max)
    compact(log_of(hosts, further), COMPACTED)
    lose_a_segment(hosts)
    hosts.tick(60)
    assert not log_of(hosts, VICTIM).damage
    assert len(hosts.values(VICTIM)) == BATCHES


def test_a_replica_waits_for_a_peer_that_is_behind_and_for_one_that_is_silent() -> None:
    hosts = with_keys(3_000)
    compact(log_of(hosts, VICTIM), COMPACTED)
    lose_a_segment(hosts)
    hosts.cut.add(NodeId(3))
    hosts.tick(60)
    assert log_of(hosts, VICTIM).damage
    compact(log_of(hosts, 1), COMPACTED)
    hosts.tick(60)
    assert not log_of(hosts, VICTIM).damage
    assert hosts.values(VICTIM) == hosts.values(1)


def offer(hosts: Hosts, sender: int, damage: SegmentDamage, frames: list[bytes]) -> None:
    """Bring the victim frames that a peer at its own stage has in place of what is damaged."""
    host, peer = hosts.hosts[NodeId(VICTIM)], hosts.hosts[NodeId(sender)].id
    stage = log_of(hosts, VICTIM).compactor.stage
    reply = FramesReply(
        GROUP, peer, host.id, damage.from_offset, tuple(frames), gone=False, stage=stage
    )
    host.deliver_from_peer(reply, via=peer)


@pytest.mark.parametrize("is_compacted", [True, False])
def test_frames_that_do_not_fit_end_a_replica_only_where_compaction_can_have_cut_them(
    is_compacted: bool,
) -> None:
    hosts = with_keys(30_000)
    if is_compacted:
        for node in hosts.hosts:
            compact(log_of(hosts, node), COMPACTED)
    log = log_of(hosts, VICTIM)
    first = next(iter(log.segments))
    flip_bit(hosts, first, 500)
    log.verify_segment(first.base_offset)
    (damage,) = log.damage
    others = [stamped(Offset(at), term=7) for at in range(damage.from_offset, damage.to_offset)]
    hosts.cut |= {NodeId(1), NodeId(3)}
    lost = hosts.hosts[NodeId(VICTIM)].lost
    hosts.tick(1)
    for peer in (1, 3):
        assert not lost
        offer(hosts, peer, damage, others)
    assert (GROUP in lost) == is_compacted


def flip_bit(hosts: Hosts, segment: Segment, position: int) -> None:
    file = hosts.disks[NodeId(VICTIM)].open(file_name(FOLDER, segment.base_offset, SEGMENT))
    byte = file.pread(1, position)[0] ^ 1
    file.pwrite([bytes([byte])], position)
    file.close()


def test_damage_that_grows_while_it_is_mended_is_mended_too() -> None:
    """The first that was found cannot be mended before what lies in front of it."""
    hosts = with_keys(30_000)
    log = log_of(hosts, VICTIM)
    first = next(iter(log.segments))
    good = hosts.values(VICTIM)
    hosts.cut |= {NodeId(1), NodeId(3)}
    for position in (2_900, 900):
        flip_bit(hosts, first, position)
        log.verify_segment(first.base_offset)
        hosts.tick(2)
    hosts.cut.clear()
    hosts.tick(60)
    assert hosts.values(VICTIM) == good


def test_damage_is_counted_each_time_it_is_found() -> None:
    hosts = with_keys(30_000)
    log = log_of(hosts, VICTIM)
    first = next(iter(log.segments))
    counts = hosts.hosts[NodeId(VICTIM)].outbox.damage.counts
    for times in (1, 2):
        flip_bit(hosts, first, 500)
        log.verify_segment(first.base_offset)
        hosts.tick(30)
        assert (counts[Fate.FOUND], counts[Fate.MENDED]) == (times, times)
