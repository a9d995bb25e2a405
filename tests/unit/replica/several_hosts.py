"""Hosts that share a group, driven by hand, with a network that carries everything at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.ids import Incarnation, NodeId, RaftGroupId, node_of
from angarium.log.memory_disk import MemoryDisk
from angarium.log.wal import WalConfig
from angarium.replica.config import HostConfig, ReplicaConfig
from angarium.replica.host import Host
from angarium.replica.listener import HostListener
from angarium.replica.work import do_now

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from angarium.raft.messages import Message
    from angarium.replica.replica import Replica
    from angarium.replica.work import Work


class _Read(HostListener):
    """Somebody waits for records at every node, so that all hear at once what is committed."""

    def has_readers(self, raft_group: RaftGroupId) -> bool:
        del raft_group
        return True


class SeveralHosts:
    """One host per node, none of them in any group yet."""

    def __init__(
        self,
        nodes: Sequence[NodeId],
        replica: ReplicaConfig | None = None,
        wal: WalConfig | None = None,
    ) -> None:
        self._config = HostConfig(replica=replica or ReplicaConfig(), wal=wal or WalConfig())
        self.disks = {node: MemoryDisk() for node in nodes}
        self.hosts = {node: self._opened(node) for node in nodes}
        self.deaf: set[NodeId] = set()
        """Nodes that nothing reaches and for which no time passes."""
        self.is_lost: Callable[[Message], bool] = lambda _: False
        """Which Raft messages do not arrive."""
        self.threadless: set[NodeId] = set()
        """Nodes whose threads have no time: what they have to do is `put_off`."""
        self.put_off: list[Generator[Work, None, None]] = []

    def form(self, group: RaftGroupId, members: Sequence[NodeId]) -> None:
        voters = [self.hosts[node].id for node in members]
        for node in members:
            self.hosts[node].form_group(group, voters)

    def restart(self, node: NodeId) -> None:
        self.hosts[node] = self._opened(node)

    def replica(self, node: NodeId, group: RaftGroupId) -> Replica:
        host = self.hosts[node]
        found = host.replicas[group] if group else host.catalog
        assert found is not None
        return found

    def leader_known_at(self, node: NodeId, group: RaftGroupId) -> NodeId | None:
        leader = self.replica(node, group).raft.leader
        return node_of(leader) if leader else None

    def tick(self) -> None:
        for node, host in self.hosts.items():
            if node not in self.deaf:
                host.tick()
        self.settle()

    def settle(self) -> None:
        """Carry messages, sync and keep house until nothing happens any more."""
        while self.carry():
            continue
        for host in self.hosts.values():
            do_now(host.maintain())

    def _opened(self, node: NodeId) -> Host:
        # Different patience, so that elections do not split.
        return Host(
            self.disks[node],
            node=node,
            incarnation=Incarnation(7),
            config=self._config,
            jitter=lambda ticks: int(node) * 3 % ticks,
            listener=_Read(),
        )

    def carry(self) -> bool:
        """Sync, and carry what there is once; tell whether there was anything."""
        carried = False
        for node, host in self.hosts.items():
            while (sync := host.begin_sync()) is not None:
                sync.write()
                host.finish_sync(sync)
            host.outbox.release_commit_news()
            for group, message in host.outbox.take_raft_messages():
                carried = True
                if node_of(message.to) not in self.deaf and not self.is_lost(message):
                    self.hosts[node_of(message.to)].deliver(group, message, via=host.id)
            for told in host.outbox.take_peer_messages():
                carried = True
                if node_of(told.to) not in self.deaf:
                    self.hosts[node_of(told.to)].deliver_from_peer(told, via=host.id)
            for chore in host.outbox.take_chores():
                if node in self.threadless:
                    self.put_off.append(chore)
                else:
                    do_now(chore)
        return carried
