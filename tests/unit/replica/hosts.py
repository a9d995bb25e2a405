"""Three hosts in memory, joined by function calls: a cluster without time or chance."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from angarium.batch import Batch, encode
from angarium.ids import Incarnation, Micros, NodeId, RaftGroupId, node_of
from angarium.log.memory_disk import MemoryDisk
from angarium.log.segments import SegmentConfig
from angarium.log.wal import WalConfig
from angarium.modes import DeliveryMode
from angarium.replica.acks import Published, Publishing
from angarium.replica.config import HostConfig, ReplicaConfig
from angarium.replica.host import Host
from angarium.replica.listener import HostListener
from angarium.replica.work import do_now

if TYPE_CHECKING:
    from angarium.errors import AngariumError
    from angarium.replica.damage import Fate
    from angarium.replica.partition_replica import PartitionReplica

GROUP = RaftGroupId(1)
CONFIG = HostConfig(
    replica=ReplicaConfig(
        election_ticks=5,
        snapshot_entries=10,
        snapshot_keep_entries=2,
        rest_after_ticks=5,
        transfer_chunk_bytes=4_096,
    ),
    wal=WalConfig(file_bytes=64 * 1024, reserve_bytes=8 * 1024),
    segments=SegmentConfig(segment_bytes=16 * 1024),
)


class Heard(HostListener):
    """What a host has told; somebody waits for records at every node, unless a test says else."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read = True
        self.damage: list[tuple[Fate, RaftGroupId, str]] = []

    def has_readers(self, raft_group: RaftGroupId) -> bool:
        return self.is_read and raft_group == GROUP

    def damaged(self, fate: Fate, raft_group: RaftGroupId, what: str) -> None:
        self.damage.append((fate, raft_group, what))


class Hosts:
    """The hosts of a small cluster; `cut` holds the nodes nobody hears."""

    def __init__(self, count: int = 3, config: HostConfig = CONFIG) -> None:
        self._config = config
        self.disks = {NodeId(number): MemoryDisk() for number in range(1, count + 1)}
        self.cut: set[NodeId] = set()
        self.hosts: dict[NodeId, Host] = {}
        self.heard: dict[NodeId, Heard] = {}
        for node in self.disks:
            self.open(node)

    def open(self, node: NodeId) -> Host:
        """Start, or restart, the host of a node."""
        dice = random.Random(node)
        self.heard[node] = Heard()
        self.hosts[node] = Host(
            self.disks[node],
            node=node,
            incarnation=Incarnation(node),
            config=self._config,
            jitter=dice.randrange,
            listener=self.heard[node],
        )
        return self.hosts[node]

    def form(self, *members: int) -> None:
        """Form the group on these nodes, or on all."""
        nodes = [NodeId(one) for one in members] or list(self.hosts)
        for node in nodes:
            self.hosts[node].form_group(GROUP, [self.hosts[one].id for one in nodes])

    def settle(self) -> None:
        """Deliver and sync until nothing is left to do."""
        busy = True
        while busy:
            busy = False
            for node, host in list(self.hosts.items()):
                for chore in host.outbox.take_chores():
                    do_now(chore)
                    busy = True
                busy = self._deliver(node, host) or busy
                sync = host.begin_sync()
                if sync is not None:
                    sync.write()
                    host.finish_sync(sync)
                    busy = True

    def _deliver(self, node: NodeId, host: Host) -> bool:
        host.outbox.release_commit_news()
        raft, peer = host.outbox.take_raft_messages(), host.outbox.take_peer_messages()
        for group, message in raft:
            if self._reaches(node, node_of(message.to)):
                self.hosts[node_of(message.to)].deliver(group, message, via=host.id)
        for told in peer:
            if self._reaches(node, node_of(told.to)):
                self.hosts[node_of(told.to)].deliver_from_peer(told, via=host.id)
        return bool(raft or peer)

    def _reaches(self, source: NodeId, target: NodeId) -> bool:
        return source not in self.cut and target not in self.cut and target in self.hosts

    def tick(self, count: int = 1) -> None:
        """Let time pass everywhere."""
        for _ in range(count):
            for host in self.hosts.values():
                host.tick()
            self.settle()

    def leader(self) -> PartitionReplica:
        """Let time pass until somebody serves; return who."""
        for _ in range(200):
            for node, host in self.hosts.items():
                replica = host.replicas.get(GROUP)
                if node not in self.cut and replica is not None and replica.may_serve:
                    return replica
            self.tick()
        raise AssertionError("nobody leads")

    def publish(
        self, *values: bytes, mode: DeliveryMode = DeliveryMode.CONSISTENT, now: int = 1
    ) -> list[Published | AngariumError]:
        """Publish one batch through the leader; return what was answered so far."""
        answers: list[Published | AngariumError] = []
        leader = self.leader()
        leader.publish([Publishing([encode(values)], mode, answers.append)], now=Micros(now))
        leader.process()
        self.settle()
        return answers

    def maintain(self, node: int) -> None:
        """Do a node's housekeeping now."""
        do_now(self.hosts[NodeId(node)].maintain())

    def values(self, node: int) -> list[bytes | None]:
        """Return what a node's replica holds."""
        log = self.hosts[NodeId(node)].replicas[GROUP].partition.log
        found: list[bytes | None] = []
        offset = log.start_offset
        while offset < log.end_offset:
            for view in log.read(offset, 1 << 20):
                batch = Batch.parse(view)
                found += batch.values()
                offset = batch.next_offset
        return found
