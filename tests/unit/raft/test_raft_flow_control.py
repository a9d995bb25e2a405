"""How much a leader sends, and holds."""

from __future__ import annotations

import pytest
from tests.unit.raft.cluster import Cluster, sent

from angarium.errors import InvalidArgument, LimitExceeded
from angarium.ids import Index, ReplicaId
from angarium.raft import (
    ENTRY_OVERHEAD_BYTES,
    Config,
    LocalMessage,
    Message,
    MessageKind,
    ProgressState,
    ProgressView,
    ProposalDropped,
    UncommittedLimit,
    UnknownPeer,
)
from angarium.raft.progress import Progress, Window


def _view(cluster: Cluster, follower: int) -> ProgressView:
    return cluster[1].status().progress[ReplicaId(follower)]


def test_a_full_window_stops_the_stream_until_an_acknowledgement() -> None:
    cluster = Cluster(2, inflight_messages_max=3)
    cluster.elect(1)
    for number in range(5):
        cluster[1].propose([b"%d" % number])
    cluster.handle(1)
    appends = sent(cluster.in_flight, MessageKind.APPEND)
    assert [len(m.entries) for m in appends] == [1, 1, 1]
    view = _view(cluster, 2)
    assert (view.is_paused, view.inflight_messages, view.window_is_full) == (True, 3, True)
    cluster.settle()
    assert len(cluster.replicas[2].data()) == 5
    assert _view(cluster, 2).inflight_messages == 0


def test_the_window_counts_bytes_too() -> None:
    cluster = Cluster(2, message_bytes_max=100, inflight_bytes_max=250)
    cluster.elect(1)
    for _ in range(6):
        cluster[1].propose([b"x" * 90])
    cluster.handle(1)
    assert len(sent(cluster.in_flight, MessageKind.APPEND)) == 3
    assert _view(cluster, 2).inflight_bytes == 270
    cluster.settle()
    assert len(cluster.replicas[2].data()) == 6


def test_a_lost_full_window_is_noticed_through_a_heartbeat() -> None:
    cluster = Cluster(2, inflight_messages_max=2)
    cluster.elect(1)
    cluster.isolate(2)
    for number in range(4):
        cluster.propose(1, b"%d" % number)
    assert _view(cluster, 2).window_is_full
    cluster.heal()
    cluster.tick(1)
    cluster.settle()
    assert len(cluster.replicas[2].data()) == 4


def test_one_message_holds_only_so_many_bytes() -> None:
    cluster = Cluster(2, message_bytes_max=2 * (10 + ENTRY_OVERHEAD_BYTES))
    cluster.elect(1)
    cluster.isolate(2)
    for _ in range(5):
        cluster.propose(1, b"x" * 10)
    cluster.propose(1, b"y" * 1000)  # larger than a message may be: it travels alone
    cluster.heal()
    counts: list[int] = []
    cluster.tick(1)
    for _ in range(30):
        for replica in (1, 2):
            cluster.handle(replica)
        counts += [len(m.entries) for m in sent(cluster.in_flight, MessageKind.APPEND)]
        cluster.deliver()
    assert max(counts) == 2
    assert len(cluster.replicas[2].data()) == 6


def test_a_probe_sends_one_append_per_heartbeat() -> None:
    cluster = Cluster()
    cluster.elect(1)
    cluster[1].report_unreachable(ReplicaId(2))
    assert _view(cluster, 2).state is ProgressState.PROBE
    for number in range(3):
        cluster[1].propose([b"%d" % number])
    cluster.handle(1)
    to_2 = [m for m in sent(cluster.in_flight, MessageKind.APPEND) if m.to == 2]
    assert len(to_2) == 1
    cluster.settle()
    assert _view(cluster, 2).state is ProgressState.REPLICATE
    assert len(cluster.replicas[2].data()) == 3


def test_proposals_are_refused_at_the_bound_of_uncommitted_bytes() -> None:
    cluster = Cluster(uncommitted_bytes_max=100)
    cluster.elect(1)
    cluster.isolate(1)
    cluster[1].propose([b"x" * 150])  # anything goes when nothing waits
    before = cluster[1].last_index
    with pytest.raises(UncommittedLimit) as refused:
        cluster[1].propose([b"y"])
    assert isinstance(refused.value, LimitExceeded)
    assert isinstance(refused.value, ProposalDropped)
    assert refused.value.limit == "uncommitted_bytes_max"
    assert cluster[1].last_index == before
    cluster[1].propose([b""])  # costs nothing
    cluster.heal()
    cluster.tick(1)
    cluster.settle()
    cluster.propose(1, b"y")
    assert cluster.replicas[3].data() == [b"x" * 150, b"y"]


def test_a_refused_proposal_appends_none_of_its_entries() -> None:
    cluster = Cluster(uncommitted_bytes_max=10)
    cluster.elect(1)
    cluster.isolate(1)
    cluster[1].propose([b"12345"])
    before = cluster[1].last_index
    with pytest.raises(UncommittedLimit):
        cluster[1].propose([b"1", b"123456789"])
    assert cluster[1].last_index == before


@pytest.mark.parametrize("asynchronous", [False, True])
def test_only_so_many_bytes_are_being_applied_at_a_time(asynchronous: bool) -> None:
    entry = 10 + ENTRY_OVERHEAD_BYTES
    cluster = Cluster(1, applying_bytes_max=2 * entry, async_storage_writes=asynchronous)
    cluster.elect(1)
    cluster[1].propose([b"x" * 10] * 5)
    batches = []
    for _ in range(20):
        if not cluster[1].has_ready():
            break
        ready = cluster[1].ready()
        batches.append(len(ready.committed))
        member = cluster.replicas[1]
        if asynchronous:
            for task in ready.messages:
                member.storage.append(
                    task.entries if task.kind is MessageKind.STORAGE_APPEND else ()
                )
                for response in task.responses:
                    cluster[1].step(response)
        else:
            member.write(ready.hard_state, ready.entries)
            cluster[1].advance()
    assert [b for b in batches if b] == [2, 2, 1]


def test_a_follower_passes_proposals_on_unless_told_not_to() -> None:
    cluster = Cluster()
    cluster.elect(1)
    cluster[2].propose([b"a", b"b"])
    cluster.settle()
    assert cluster.replicas[3].data() == [b"a", b"b"]
    proud = Cluster(forward_proposals=False)
    proud.elect(1)
    with pytest.raises(ProposalDropped):
        proud[2].propose([b"c"])


def test_the_window_frees_what_an_acknowledgement_covers() -> None:
    window = Window(messages_max=4, bytes_max=100)
    for last in (3, 5, 9):
        window.add(Index(last), 10)
    window.free_to(Index(2))
    assert (len(window), window.bytes) == (3, 30)
    window.free_to(Index(5))
    assert (len(window), window.bytes) == (1, 10)
    window.free_to(Index(99))
    assert (len(window), window.bytes) == (0, 0)


def test_a_stale_rejection_moves_nothing() -> None:
    progress = Progress(next_index=Index(10), window=Window(messages_max=8, bytes_max=1 << 20))
    progress.acknowledge(Index(5))
    progress.become_replicate()
    assert not progress.reject(Index(5), Index(3))
    assert progress.next_index == 6
    progress.become_probe()
    assert not progress.reject(Index(9), Index(3)), "only the latest probe can be meant"
    assert progress.reject(Index(5), Index(2))
    assert progress.next_index == 6, "what is known to match is never tried again"


def test_messages_a_peer_must_not_send_are_refused() -> None:
    cluster = Cluster()
    cluster.elect(1)
    with pytest.raises(LocalMessage):
        cluster[1].step(Message(kind=MessageKind.HUP, sender=ReplicaId(2)))
    with pytest.raises(LocalMessage):
        cluster[1].step(Message(kind=MessageKind.SNAPSHOT_STATUS, sender=ReplicaId(2)))
    with pytest.raises(UnknownPeer):
        cluster[1].step(
            Message(
                kind=MessageKind.APPEND_RESPONSE,
                sender=ReplicaId(9),
                term=cluster[1].term,
                index=Index(2),
            )
        )


@pytest.mark.parametrize(
    "settings",
    [
        {"id": 0},
        {"id": -1},
        {"heartbeat_ticks": 0},
        {"election_ticks": 1},
        {"inflight_messages_max": 0},
        {"inflight_bytes_max": 10, "message_bytes_max": 20},
        {"applying_bytes_max": 0},
        {"uncommitted_bytes_max": 0},
        {"pending_reads_max": 0},
        {"lease_reads": True, "check_quorum": False},
        {"applied": -1},
        {"message_bytes_max": -1},
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(InvalidArgument):
        Config(**{"id": ReplicaId(1), **settings})  # type: ignore[arg-type]
