"""A newcomer is brought up by a snapshot that has it as a member, however often that fails."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from msgspec import structs
from tests.unit.replica.several_hosts import SeveralHosts

from angarium.batch import encode
from angarium.ids import CATALOG_GROUP, Micros, NodeId, Offset, RaftGroupId, ReplicaId
from angarium.modes import DeliveryMode
from angarium.raft import Change, ChangeKind, ConfChange, SnapshotTemporarilyUnavailable
from angarium.raft.messages import Message, MessageKind
from angarium.replica.acks import Publishing
from angarium.replica.catching_up import ADOPTION_ROOM_BYTES
from angarium.replica.config import ReplicaConfig
from angarium.replica.partition_files import PartitionFiles
from angarium.replica.peers import ChunkReply, ChunkRequest, PeerMessage
from angarium.replica.work import do_now

if TYPE_CHECKING:
    from angarium.log.segments.importing import SegmentImport

FIRST, SECOND = NodeId(1), NodeId(2)
TICKS_MAX = 200
SOON = ReplicaConfig(snapshot_entries=1, snapshot_keep_entries=0)


def a_leader_and_a_newcomer(*groups: RaftGroupId) -> SeveralHosts:
    """Return hosts of which the first leads `groups` alone and the second knows nothing of them."""
    two = SeveralHosts([FIRST, SECOND], SOON)
    for group in groups:
        two.form(group, [FIRST])
        two.hosts[SECOND].join_group(group)
    for _ in range(TICKS_MAX):
        two.tick()
        if all(two.replica(FIRST, group).may_serve for group in groups):
            return two
    pytest.fail("nobody leads")


def add_second(two: SeveralHosts, group: RaftGroupId) -> None:
    leader = two.replica(FIRST, group)
    newcomer = Change(ChangeKind.ADD_LEARNER, two.hosts[SECOND].id)
    leader.propose_conf_change(ConfChange((newcomer,)))
    leader.process()


def publish_one(two: SeveralHosts, group: RaftGroupId) -> None:
    leader = two.hosts[FIRST].replicas[group]
    batch = Publishing([bytearray(encode([b"one"]))], DeliveryMode.CONSISTENT, lambda _: None)
    leader.publish([batch], now=Micros(1_000))
    leader.process()
    two.settle()


def test_a_snapshot_taken_before_a_change_of_membership_is_no_good_for_the_newcomer() -> None:
    group = RaftGroupId(1)
    two = a_leader_and_a_newcomer(group)
    leader = two.replica(FIRST, group)
    leader.propose(b"")
    leader.process()
    two.is_lost = lambda _: True
    two.carry()
    taking = leader.take_snapshot()
    work = next(taking)
    # While it is being written somebody joins.
    add_second(two, group)
    two.carry()
    for _ in range(TICKS_MAX):
        work()
        try:
            work = next(taking)
        except StopIteration:
            break
    with pytest.raises(SnapshotTemporarilyUnavailable):
        leader.storage.snapshot()
    assert leader.wants_snapshot()


@pytest.mark.parametrize("group", [CATALOG_GROUP, RaftGroupId(1)])
def test_a_newcomer_whose_snapshot_was_lost_gets_another(group: RaftGroupId) -> None:
    two = a_leader_and_a_newcomer(group)
    lost: list[Message] = []

    def lose_three(message: Message) -> bool:
        if message.kind is MessageKind.SNAPSHOT and len(lost) < 3:
            lost.append(message)
            return True
        return False

    two.is_lost = lose_three
    add_second(two, group)
    for _ in range(TICKS_MAX):
        two.tick()
        if two.replica(SECOND, group).applied == two.replica(FIRST, group).applied:
            break
    assert len(lost) == 3
    assert two.replica(SECOND, group).applied == two.replica(FIRST, group).applied


def test_a_snapshot_that_is_no_good_any_more_is_taken_anew_even_if_nothing_was_applied_since() -> (
    None
):
    group = RaftGroupId(1)
    leader = a_leader_and_a_newcomer(group).replica(FIRST, group)
    for _ in range(2):
        for work in leader.take_snapshot():
            work()
        assert leader.snapshot_index == leader.applied
        assert leader.storage.snapshot().index == leader.applied
        # Segments that it lists are removed, and nobody publishes from now on.
        leader.storage.outdate()
        with pytest.raises(SnapshotTemporarilyUnavailable):
            leader.storage.snapshot()


@pytest.mark.parametrize("position", [1_000_000, 0], ids=["shorter", "removed"])
def test_a_snapshot_that_lists_what_is_not_there_is_no_good_any_more(position: int) -> None:
    group = RaftGroupId(1)
    two = a_leader_and_a_newcomer(group)
    leader = two.replica(FIRST, group)
    publish_one(two, group)
    assert leader.storage.snapshot().index == leader.applied
    # A restart has forgotten that compaction left less of a segment, or nothing, after that.
    asked = ChunkRequest(
        group=group,
        sender=two.hosts[SECOND].id,
        to=leader.id,
        snapshot_index=leader.snapshot_index,
        segment=Offset(0) if position else Offset(77),
        position=position,
        length=1_024,
        doubt=False,
    )
    leader.receive_from_peer(asked)
    (reply,) = two.hosts[FIRST].outbox.take_peer_messages()
    assert isinstance(reply, ChunkReply)
    assert reply.gone
    with pytest.raises(SnapshotTemporarilyUnavailable):
        leader.storage.snapshot()
    assert leader.wants_snapshot()


def test_a_copy_with_a_pace_takes_its_time_and_arrives() -> None:
    group = RaftGroupId(1)
    two = a_leader_and_a_newcomer(group)
    leader = two.hosts[FIRST].replicas[group]
    value = bytes(range(256)) * 400
    for _ in range(3):
        batch = Publishing([bytearray(encode([value]))], DeliveryMode.CONSISTENT, lambda _: None)
        leader.publish([batch], now=Micros(1_000))
        leader.process()
        two.settle()
    for work in leader.take_snapshot():
        work()
    newcomer = two.hosts[SECOND].replicas[group]
    per_tick = 2_000
    newcomer.pace_copy(per_tick)
    add_second(two, group)
    seen = [0]
    for _ in range(2 * TICKS_MAX):
        two.tick()
        seen.append(max(newcomer.copied_bytes, seen[-1]))
        if newcomer.applied == leader.applied and newcomer.applied:
            break
    else:
        pytest.fail("it did not arrive")
    stored = sum(one.bytes for one in leader.partition.log.segments)
    # Not faster than said: a look at the largest step, which is what came together before it.
    assert max(after - before for before, after in pairwise(seen)) <= per_tick + 4_096
    assert len(seen) - 1 >= stored // per_tick
    assert newcomer.partition.log.end_offset == leader.partition.log.end_offset


def test_copies_that_both_nodes_hold_back_take_their_time_and_arrive() -> None:
    groups = [RaftGroupId(1), RaftGroupId(2), RaftGroupId(3)]
    two = a_leader_and_a_newcomer(*groups)
    value = bytes(range(256)) * 40
    stored = 0
    for group in groups:
        leader = two.hosts[FIRST].replicas[group]
        for _ in range(3):
            batch = Publishing(
                [bytearray(encode([value]))], DeliveryMode.CONSISTENT, lambda _: None
            )
            leader.publish([batch], now=Micros(1_000))
            leader.process()
            two.settle()
        for work in leader.take_snapshot():
            work()
        stored += sum(one.bytes for one in leader.partition.log.segments)
    # Less than a chunk: each waits longer for its turn than a silent peer is waited for.
    for host in two.hosts.values():
        host.pace.bytes_per_tick = 100
    for group in groups:
        add_second(two, group)
    newcomer = two.hosts[SECOND]
    ticks = 0
    for _ in range(8 * stored // 100):
        two.tick()
        ticks += 1
        if all(newcomer.replicas[one].applied for one in groups):
            break
    else:
        pytest.fail("they did not arrive")
    # Nobody has to wait for what the last one takes.
    assert ticks >= stored * 2 // 3 // 100 - 10
    # Nothing was asked for anew: no copy was taken for dead while it waited.
    assert newcomer.pace.passed_bytes <= stored + 3 * 4_096


def test_a_copy_is_opened_once_and_its_folder_stays_while_threads_are_late() -> None:
    """A node ended: two threads opened the same files, for the leader had offered them twice."""
    group = RaftGroupId(1)
    two = a_leader_and_a_newcomer(group)
    publish_one(two, group)
    offers: list[Message] = []

    def is_lost(message: Message) -> bool:
        if message.snapshot is not None:
            offers.append(message)
        return message.snapshot is not None

    two.is_lost = is_lost
    add_second(two, group)
    for _ in range(TICKS_MAX):
        two.tick()
        if offers:
            break
    newcomer = two.hosts[SECOND]
    two.threadless.add(SECOND)
    for _ in range(2):
        newcomer.deliver(group, offers[0], via=two.hosts[FIRST].id)
        two.carry()
    assert len(two.put_off) == 1
    newcomer.remove_group(group)
    assert group in newcomer.replicas
    two.threadless.clear()
    do_now(two.put_off[0])
    two.is_lost = lambda _: False
    for _ in range(TICKS_MAX):
        two.tick()
        if newcomer.replicas[group].end_offset == 1:
            return
    pytest.fail("the newcomer has nothing")


def a_copy_under_way(group: RaftGroupId) -> tuple[SeveralHosts, list[ChunkReply]]:
    """Return hosts of which the second waits for a chunk of a copy, and that chunk."""
    two = SeveralHosts(
        [FIRST, SECOND], replace(SOON, transfer_chunk_bytes=4_096, transfer_chunks_per_tick=1)
    )
    two.form(group, [FIRST])
    two.hosts[SECOND].join_group(group)
    for _ in range(TICKS_MAX):
        two.tick()
        if two.replica(FIRST, group).may_serve:
            break
    leader = two.hosts[FIRST].replicas[group]
    value = bytes(range(256)) * 400
    batch = Publishing([bytearray(encode([value]))], DeliveryMode.CONSISTENT, lambda _: None)
    leader.publish([batch], now=Micros(1_000))
    leader.process()
    two.settle()
    add_second(two, group)
    newcomer = two.hosts[SECOND]
    for _ in range(TICKS_MAX):
        two.tick()
        if newcomer.replicas[group].copied_bytes:
            break
    replies: list[ChunkReply] = []
    deliver = newcomer.deliver_from_peer

    def held(message: PeerMessage, *, via: ReplicaId) -> None:
        if isinstance(message, ChunkReply):
            replies.append(message)
        else:
            deliver(message, via=via)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(newcomer, "deliver_from_peer", held)
        for _ in range(TICKS_MAX):
            two.tick()
            if replies:
                break
    two.threadless.add(SECOND)
    return two, replies


def test_a_copy_that_is_gone_at_its_source_has_its_files_until_its_thread_is_done() -> None:
    """An answer that says so may come while a chunk that came before it is being written."""
    group = RaftGroupId(1)
    two, replies = a_copy_under_way(group)
    newcomer, source = two.hosts[SECOND], two.hosts[FIRST].id
    newcomer.deliver_from_peer(replies[0], via=source)
    newcomer.deliver_from_peer(structs.replace(replies[0], data=b"", gone=True), via=source)
    two.carry()
    assert len(two.put_off) == 1
    assert newcomer.replicas[group].is_in_use
    newcomer.remove_group(group)
    assert group in newcomer.replicas


def test_an_older_copy_writes_nothing_while_a_newer_one_is_opened() -> None:
    """Both have the same files, and the newer one's thread renames and removes some."""
    group = RaftGroupId(1)
    two, replies = a_copy_under_way(group)
    newcomer, source = two.hosts[SECOND], two.hosts[FIRST]
    leader = source.replicas[group]
    publish_one(two, group)
    snapshot = leader.storage.snapshot()
    assert snapshot.index > replies[0].snapshot_index
    offer = Message(
        kind=MessageKind.SNAPSHOT,
        sender=leader.id,
        to=newcomer.id,
        term=leader.raft.term,
        snapshot=snapshot,
    )
    newcomer.deliver(group, offer, via=source.id)
    newcomer.deliver_from_peer(replies[0], via=source.id)
    two.carry()
    assert len(two.put_off) == 1


def test_a_copy_takes_its_place_only_when_there_is_room_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = RaftGroupId(1)
    two = a_leader_and_a_newcomer(group)
    leader = two.hosts[FIRST].replicas[group]
    for _ in range(3):
        publish_one(two, group)
    for work in leader.take_snapshot():
        work()
    newcomer = two.hosts[SECOND].replicas[group]
    disk = newcomer._catching_up._disk
    monkeypatch.setattr(disk, "free_bytes", lambda: ADOPTION_ROOM_BYTES)
    adopted: list[object] = []
    adopt = PartitionFiles.adopt

    def adopted_now(self: PartitionFiles, importing: SegmentImport) -> None:
        adopted.append(importing)
        adopt(self, importing)

    monkeypatch.setattr(PartitionFiles, "adopt", adopted_now)
    add_second(two, group)
    for _ in range(TICKS_MAX):
        two.tick()
    assert not adopted
    monkeypatch.undo()
    for _ in range(TICKS_MAX):
        two.tick()
    assert newcomer.partition.log.end_offset == leader.partition.log.end_offset
