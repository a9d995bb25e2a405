"""A node: one member of a cluster, from the first look at its data directory to its last sync.

It has what a `Host` cannot have: an identity in a cluster, a port, links to the other nodes, and
tasks that run as long as it does. `driving` brings the host its inputs and carries out its wishes.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING

from angarium.errors import NotFound, StorageError
from angarium.ids import CATALOG_GROUP, node_of, replica_id
from angarium.log import identity as identities
from angarium.log.os_disk import OsDisk
from angarium.node.catalog import CatalogDesk
from angarium.node.compaction import Compaction
from angarium.node.driving import Driver, wall_clock
from angarium.node.joining import ask_to_join, cluster_name, new_cluster
from angarium.node.lag import LoopLag
from angarium.node.levels import Levels
from angarium.node.peers import Peers
from angarium.node.placement import Placement
from angarium.node.retention import Retention
from angarium.node.scrubbing import Scrubbing
from angarium.node.steering import CAUGHT_UP_ENTRIES
from angarium.replica.host import Host
from angarium.replica.peers import decode_peer_message
from angarium.wire import Hello, Role, Server, Unreachable
from angarium.wire.raft_codec import unpacked_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from angarium.ids import GroupId, Micros, NodeId
    from angarium.node.config import NodeConfig
    from angarium.replica.acks import Publishing
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.wire import Connection, Frame, Welcome

_log = logging.getLogger(__name__)

CONF_HEARD_TICKS = 4
"""Ticks after which everybody has heard that a change of membership is done: a heartbeat says it,
and goes out with every tick."""


class Node:
    """One member of a cluster. `start`, then serve, then `stop`."""

    def __init__(self, config: NodeConfig) -> None:
        self.config = config
        self.welcome: Welcome | None = None
        """Decides what whoever connects to the wire port may do; set before `start`."""
        self.peers = Peers(self._greeting, on_change=self._link_changed)
        self.catalog = CatalogDesk(self)
        self.on_visible: Callable[[GroupId], None] = _ignore
        """Told which partitions have new records to read, once per turn of the loop; set before
        `start`."""
        self.on_stir: Callable[[GroupId], None] = _ignore
        """Told once per turn in which partitions somebody else leads, or groups have changed; set
        before `start`."""
        self.background: list[Callable[[], Coroutine[None, None, None]]] = []
        """What else runs as long as the node does; set before `start`."""
        self.failure: BaseException | None = None
        """Why the node had to stop, if it had to."""
        self.stopped = asyncio.Event()
        self._disk = OsDisk(config.data_directory)
        self.levels = Levels(config.release, self._disk)
        self._identity: identities.Identity | None = None
        self._host: Host | None = None
        self._server: Server | None = None
        self._driver: Driver | None = None
        self._placement = Placement(self)
        self._retention = Retention(self)
        self._compaction = Compaction(self)
        self._scrubbing = Scrubbing(bytes_per_s=config.scrub_bytes_per_s)
        election_ticks = config.host_config.replica.election_ticks
        self.lag = LoopLag(election_timeout_s=election_ticks * config.tick_ms / 1_000)
        self._tasks: list[asyncio.Task[None]] = []

    # --- what is known ----------------------------------------------------------------------

    @property
    def id(self) -> NodeId:
        """This node's id in the cluster."""
        return self.identity.node_id

    @property
    def identity(self) -> identities.Identity:
        """Who this node is; known once it has started."""
        assert self._identity is not None, "the node has not started"
        return self._identity

    @property
    def host(self) -> Host:
        """The replicas of this node; raises `Unreachable` while it is coming up."""
        if self._host is None:
            raise Unreachable("the node is starting and serves nobody yet")
        return self._host

    @property
    def _driven(self) -> Driver:
        if self._driver is None:
            raise Unreachable("the node is starting and serves nobody yet")
        return self._driver

    @property
    def wire_port(self) -> int:
        """The port listened on."""
        assert self._server is not None
        return self._server.port

    @property
    def addresses(self) -> dict[str, str]:
        """By door, where others reach this node."""
        return {"wire": f"{self.config.wire_host}:{self.wire_port}", **self.config.advertised}

    def now(self) -> Micros:
        """Return the wall clock's time."""
        return wall_clock()

    def leader_of(self, group: GroupId) -> NodeId | None:
        """Return who leads `group`, as far as this node's own replica knows."""
        replica = self.host.catalog if group == CATALOG_GROUP else self.host.replicas.get(group)
        if replica is None or not replica.raft.leader:
            return None
        return node_of(replica.raft.leader)

    def in_sync(self, group: GroupId) -> tuple[NodeId, ...] | None:
        """Return who votes in `group`, can be reached and has nearly everything.

        Only its leader knows; None elsewhere. A node whose data were wiped counts once its new
        incarnation votes. While the membership changes nobody counts: until everybody has heard
        that the change is done, those who leave are needed for a majority, too.
        """
        replica = self.host.catalog if group == CATALOG_GROUP else self.host.replicas.get(group)
        if replica is None or not replica.may_serve:
            return None
        if replica.raft.conf_state.voters_outgoing or replica.conf_ticks < CONF_HEARD_TICKS:
            return ()
        members = self.catalog.machine.nodes.by_id
        found = []
        for voter in replica.raft.conf_state.voters:
            member = members.get(node_of(voter))
            if member is None or voter != replica_id(member.id, member.incarnation):
                continue
            match = replica.raft.match(voter) or 0
            is_here = member.id == self.id or self.peers.is_up(member.id)
            if is_here and match + CAUGHT_UP_ENTRIES >= replica.raft.last_index:
                found.append(member.id)
        return tuple(sorted(found))

    # --- life -------------------------------------------------------------------------------

    async def start(self) -> None:
        """Come up on what the data directory holds, or form or join a cluster with an empty one."""
        config = self.config
        assert self.welcome is not None, "a node without a door serves nobody"
        config.data_directory.mkdir(parents=True, exist_ok=True)
        self._identity = identities.load(self._disk)
        self._server = await Server.listen(
            host=config.wire_host,
            port=config.wire_port,
            greeting=self._hello,
            welcome=self.welcome,
        )
        if self._identity is not None:
            self._open()
        elif config.form:
            self._become(new_cluster(), level=config.release.level_max)
            self.host.form_group(CATALOG_GROUP, [self.host.id])
            self.campaign(CATALOG_GROUP)
        elif config.join:
            identity, joined = await ask_to_join(config, self.addresses)
            self._become(identity, level=joined.level)
            self.host.join_group(CATALOG_GROUP)
            for peer, address in joined.peers:
                self.peers.know(peer, address)
        else:
            raise StorageError(
                f"{config.data_directory} is empty: say whether to form a new cluster (--form, or "
                "node.form in node.toml) or whom to join (--join, node.join); a node never forms "
                "one by itself"
            )
        self._attach_catalog()
        self.levels.note(self.catalog.machine)
        for run in (
            self._driven.tick,
            self._driven.keep_house,
            self._placement.run,
            self.catalog.run,
            self._retention.run,
            self._compaction.run,
            lambda: self._scrubbing.run(self.host.replicas),
            *self.background,
        ):
            task = asyncio.create_task(run())
            task.add_done_callback(self._ended)
            self._tasks.append(task)
        self.wake()

    async def stop(self) -> None:
        """Hand leadership over, finish what is under way, and close everything."""
        if self._host is not None and self.failure is None:
            await self._placement.hand_over()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._driver is not None:
            await self._driver.finish_chores()
        if self._server is not None:
            await self._server.drain(timeout_s=2.0)
        await self.peers.stop()
        if self._driver is not None:
            await self._driver.stop()
        if self._host is not None and self.failure is None:
            await asyncio.to_thread(self._host.close)
        self.stopped.set()

    def fail(self, failure: BaseException) -> None:
        """Stop at once: going on would break a promise."""
        if self.failure is None:
            self.failure = failure
            _log.critical("the node stops: %s", failure, exc_info=failure)
            if self._driver is not None:
                self._driver.halt()
            for task in self._tasks:
                task.cancel()
            self.stopped.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        # A node without one of its tasks would limp on, and nobody would know.
        failure = None if task.cancelled() else task.exception()
        if failure is not None:
            self.fail(failure)

    def _link_changed(self, node: NodeId) -> None:
        if self._host is not None and self.failure is None:
            self._host.link_changed(node)
            self.wake()

    def _become(self, identity: identities.Identity, *, level: int) -> None:
        identities.create(self._disk, identity)
        self.levels.begin(level)
        self._identity = identity
        self._open()

    def _open(self) -> None:
        identity = self.identity
        self.levels.check_data()
        self._host = Host(
            self._disk,
            node=identity.node_id,
            incarnation=identity.incarnation,
            config=self.config.host_config,
            jitter=random.randrange,
        )
        self._driver = Driver(
            self._host,
            self.peers,
            config=self.config,
            lag=self.lag,
            on_visible=self.on_visible,
            on_stir=self.on_stir,
            fail=self.fail,
        )
        for group in self._host.replicas:
            self._driver.watch(group)
        self._host.on_started = self._attach
        self._driver.start()

    def _attach_catalog(self) -> None:
        catalog = self.host.catalog
        if catalog is not None:
            catalog.catalog.on_change = self.catalog.changed

    def campaign(self, group: GroupId) -> None:
        """Do not wait for a timeout when nobody else can lead yet."""
        replica = self.host.catalog if group == CATALOG_GROUP else self.host.replicas.get(group)
        if replica is not None:
            replica.raft.campaign()
            replica.process()
            self.wake()

    def _attach(self, group: GroupId) -> None:
        """Have this node told what happens in a replica that has begun to work."""
        if group == CATALOG_GROUP:
            self._attach_catalog()
        else:
            self._driven.watch(group)

    def _greeting(self, role: Role) -> Hello:
        identity = self._identity
        hello = Hello(role=role)
        if identity is not None:
            hello = Hello(
                role=role,
                cluster=cluster_name(identity),
                node=identity.node_id,
                incarnation=identity.incarnation,
            )
        return self.config.release.introduced(hello)

    def _hello(self) -> Hello:
        return self._greeting(Role.PEER)

    # --- inputs -----------------------------------------------------------------------------

    def take_raft(self, _: Connection, frame: Frame) -> None:
        """Take Raft messages of many groups from another node."""
        self._driven.take_raft(unpacked_messages(bytes(frame.header), frame.payload))

    def take_peer_message(self, _: Connection, frame: Frame) -> None:
        """Take a message outside of Raft."""
        self._driven.take_peer_message(decode_peer_message(frame.payload))

    def publish(self, group: GroupId, publishing: Publishing) -> None:
        """Store batches in a partition this node leads."""
        self._driven.publish(group, publishing)

    def wake(self) -> None:
        """Have everything that came in carried out, at the end of this turn of the loop."""
        self._driven.wake()

    def partition(self, group: GroupId) -> PartitionReplica:
        """Return this node's replica of a partition; raises `NotFound`."""
        replica = self.host.replicas.get(group)
        if replica is None:
            raise NotFound(f"node {self.id} has no replica of group {group}")
        return replica


def _ignore(_: GroupId) -> None:
    """Nobody reads here."""
