"""A node: the event loop around a `Host`.

It does what the host cannot: keep time, wait for the disk in a thread, send and receive. Inputs of
one turn of the loop are handled together: publishes to one partition share a Raft entry, messages
for one peer share a frame, and everything appended shares a sync.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING

from angarium.errors import LimitExceeded, NotFound, NotLeader, StorageError
from angarium.ids import CATALOG_GROUP, Micros, NodeId, node_of, replica_id
from angarium.log import identity as identities
from angarium.log.os_disk import OsDisk
from angarium.modes import DeliveryMode
from angarium.node.catalog import CatalogDesk
from angarium.node.joining import ask_to_join, cluster_name, new_cluster
from angarium.node.lag import LoopLag
from angarium.node.levels import Levels
from angarium.node.peers import Peers
from angarium.node.placement import Placement
from angarium.node.retention import Retention
from angarium.node.steering import CAUGHT_UP_ENTRIES
from angarium.node.syncing import Syncer
from angarium.replica.host import Host
from angarium.replica.peers import decode_peer_message
from angarium.wire import Hello, Role, Server, Unreachable
from angarium.wire.raft_codec import unpacked_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from angarium.ids import GroupId
    from angarium.node.config import NodeConfig
    from angarium.replica.acks import Publishing
    from angarium.replica.host import Sync
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.replica.work import Work
    from angarium.wire import Connection, Frame, Welcome

_log = logging.getLogger(__name__)

CONF_HEARD_TICKS = 4
"""Ticks after which everybody has heard that a change of membership is done: a heartbeat says it,
and goes out with every tick."""

HOUSEKEEPING_S = 0.1
"""How often segments are written behind and snapshots are considered."""

THOROUGH_EVERY = 5
"""In every so many-th round of housekeeping even a little is written; in the others only much."""

ENTRY_BYTES = 1 << 20
"""Publishes of one turn share entries up to this size, so that a follower gets to work on the
first while the rest is on its way; a larger single publish is an entry of its own."""

COMMIT_NEWS_S = 0.002
"""How long a leader waits for an append that tells its followers what is committed, before it says
so by itself. A publisher that waits for each answer is back before that with its next record; a
reader at a follower sees a record at most this much later."""


class Node:
    """One member of a cluster. `start`, then serve, then `stop`."""

    def __init__(self, config: NodeConfig) -> None:
        self.config = config
        self.welcome: Welcome | None = None
        """Decides what whoever connects to the wire port may do; set before `start`."""
        self.peers = Peers(self._greeting, on_change=self._link_changed)
        self.catalog = CatalogDesk(self)
        self.on_visible: Callable[[GroupId], None] = _ignore
        """Told which partitions have new records to read, once per turn of the loop."""
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
        self._syncer: Syncer | None = None
        self._placement = Placement(self)
        self._retention = Retention(self)
        election_ticks = config.host_config.replica.election_ticks
        self.lag = LoopLag(election_timeout_s=election_ticks * config.tick_ms / 1_000)
        self._tasks: list[asyncio.Task[None]] = []
        self._chores: set[asyncio.Task[None]] = set()
        self._gathered: defaultdict[GroupId, list[Publishing]] = defaultdict(list)
        self._gathered_bytes = 0
        self._is_hasty = False
        """Whether what is gathered should not wait for the sync under way."""
        self._visible: set[GroupId] = set()
        self._is_awake = False
        self._has_news = False
        self._or_stop = _OrStop(self)
        self._is_closing = False

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
        return Micros(time.time_ns() // 1_000)

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
                f"{config.data_directory} is empty: say whether to form a new cluster or whom to "
                "join; a node never forms one by itself"
            )
        self._attach_catalog()
        self.levels.note(self.catalog.machine)
        for run in (
            self._tick,
            self._keep_house,
            self._placement.run,
            self.catalog.run,
            self._retention.run,
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
        await asyncio.gather(*self._tasks, *self._chores, return_exceptions=True)
        if self._server is not None:
            await self._server.drain(timeout_s=2.0)
        await self.peers.stop()
        # Nobody is left to ask for anything: what is being written is the last.
        self._is_closing = True
        if self._syncer is not None:
            await asyncio.to_thread(self._syncer.stop)
        if self._host is not None and self.failure is None:
            await asyncio.to_thread(self._host.close)
        self.stopped.set()

    def fail(self, failure: BaseException) -> None:
        """Stop at once: going on would break a promise."""
        if self.failure is None:
            self.failure = failure
            _log.critical("the node stops: %s", failure, exc_info=failure)
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
        loop = asyncio.get_running_loop()
        identity = self.identity
        self.levels.check_data()
        self._host = Host(
            self._disk,
            node=identity.node_id,
            incarnation=identity.incarnation,
            config=self.config.host_config,
            jitter=random.randrange,
        )
        for group in self._host.replicas:
            self._attach(group)
        self._host.on_started = self._attach
        self._syncer = Syncer(loop, self._host, done=self._synced)
        self._syncer.start()

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
            self.host.replicas[group].partition.on_visible = lambda: self._visible.add(group)

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
        messages = unpacked_messages(bytes(frame.header), frame.payload)
        deliver = self.host.deliver
        try:
            for group, message in messages:
                deliver(group, message)
        except Exception as failure:
            self.fail(failure)
        self.wake()

    def take_peer_message(self, _: Connection, frame: Frame) -> None:
        """Take a message outside of Raft."""
        message = decode_peer_message(frame.payload)
        with self._or_stop:
            self.host.deliver_from_peer(message)
        self.wake()

    def publish(self, group: GroupId, publishing: Publishing) -> None:
        """Store batches in a partition this node leads.

        What comes while a sync is under way is gathered: it could not be synced before that one
        is done, and shares entries, messages and the next sync.
        """
        size = sum(map(len, publishing.batches))
        if self._gathered_bytes + size > self.config.gather_bytes_max:
            publishing.reply(LimitExceeded("gather_bytes_max", "too much waits to be stored"))
            return
        self._gathered_bytes += size
        self._gathered[group].append(publishing)
        if publishing.mode is DeliveryMode.EVENTUAL or self._gathered_bytes >= ENTRY_BYTES:
            self._is_hasty = True
        self.wake()

    def partition(self, group: GroupId) -> PartitionReplica:
        """Return this node's replica of a partition; raises `NotFound`."""
        replica = self.host.replicas.get(group)
        if replica is None:
            raise NotFound(f"node {self.id} has no replica of group {group}")
        return replica

    # --- driving ----------------------------------------------------------------------------

    def wake(self) -> None:
        """Have everything that came in carried out, at the end of this turn of the loop."""
        if not self._is_awake:
            self._is_awake = True
            asyncio.get_running_loop().call_soon(self._drive)

    def _drive(self) -> None:
        self._is_awake = False
        host = self._host
        if self.failure is not None or host is None:
            return
        try:
            if self._gathered and (self._is_hasty or not host.is_syncing):
                self._propose_gathered(host)
            self._send_and_sync(host)
        except Exception as failure:
            self.fail(failure)
        if self._visible:
            visible, self._visible = self._visible, set()
            for group in visible:
                self.on_visible(group)

    def _propose_gathered(self, host: Host) -> None:
        self._is_hasty = False
        gathered, self._gathered = self._gathered, defaultdict(list)
        self._gathered_bytes = 0
        now = self.now()
        for group, requests in gathered.items():
            replica = host.replicas.get(group)
            if replica is None:
                for request in requests:
                    request.reply(NotLeader(f"group {group} is not here any more"))
                continue
            for shared in _shared_entries(requests):
                replica.publish(shared, now=now)
            replica.process()

    def _send_and_sync(self, host: Host) -> None:
        outbox = host.outbox
        if outbox.raft_messages:
            self.peers.send_raft(outbox.take_raft_messages())
        if outbox.commit_news and not self._has_news:
            self._has_news = True
            asyncio.get_running_loop().call_later(COMMIT_NEWS_S, self._tell_commits)
        if outbox.peer_messages:
            for told in outbox.take_peer_messages():
                self.peers.tell(told)
        if outbox.chores:
            for chore in outbox.take_chores():
                self._do_chore(chore)
        if self._is_closing:
            return
        sync = host.begin_sync()
        if sync is not None:
            assert self._syncer is not None
            self._syncer.submit(sync)

    def _tell_commits(self) -> None:
        self._has_news = False
        if self.host.outbox.commit_news:  # else they have travelled with entries
            self.host.outbox.release_commit_news()
            self._drive()

    def _do_chore(self, chore: Generator[Work, None, None]) -> None:
        """Do work that blocks in a thread, and carry out what follows from it."""

        async def do() -> None:
            with self._or_stop:
                await _in_threads(chore)
            self.wake()

        task = asyncio.create_task(do())
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    def _synced(self, sync: Sync, failure: BaseException | None) -> None:
        if failure is not None:
            self.fail(failure)
            return
        if self.failure is None and self._host is not None:
            try:
                self._host.finish_sync(sync)
            except Exception as error:
                self.fail(error)
            self._drive()

    async def _tick(self) -> None:
        interval = self.config.tick_ms / 1_000
        loop = asyncio.get_running_loop()
        due = loop.time() + interval
        while self.failure is None:
            await asyncio.sleep(max(0.0, due - loop.time()))
            self.lag.record(loop.time() - due)
            # A loop that was held up does not make up for lost ticks: peers were silent as well.
            due = max(due + interval, loop.time())
            with self._or_stop:
                self.host.tick()
            self._drive()

    async def _keep_house(self) -> None:
        for number in count(1):
            await asyncio.sleep(HOUSEKEEPING_S)
            if self.failure is not None:
                return
            with self._or_stop:
                await _in_threads(self.host.maintain(urgent_only=number % THOROUGH_EVERY != 0))
            self.wake()


async def _in_threads(steps: Generator[Work, None, None]) -> None:
    """Do the work that `steps` hands out in threads, one piece after the other."""
    failure: BaseException | None = None
    while True:
        try:
            work = next(steps) if failure is None else steps.throw(failure)
        except StopIteration:
            return
        failure = None
        try:
            await asyncio.to_thread(work)
        except Exception as error:
            failure = error


def _shared_entries(requests: list[Publishing]) -> list[list[Publishing]]:
    """Return the publishes of one turn, in order, in groups that make an entry each."""
    entries: list[list[Publishing]] = []
    room = 0
    for request in requests:
        size = sum(map(len, request.batches))
        if size > room or not entries:
            entries.append([])
            room = ENTRY_BYTES
        entries[-1].append(request)
        room -= size
    return entries


class _OrStop:
    """Stops the node at whatever goes wrong inside: a host that broke off half-way is no host."""

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self._node.fail(error)
        return True


def _ignore(_: GroupId) -> None:
    """Nobody reads here."""
