"""A node: one member of a cluster, from the first look at its data directory to its last sync.

It has what a `Host` cannot have: an identity in a cluster, a port, links to the other nodes, and
tasks that run as long as it does. `driving` brings the host its inputs and carries out its wishes.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from angarium.addresses import Address
from angarium.discovery.lookout import Lookout
from angarium.discovery.static import StaticDiscovery
from angarium.errors import (
    InvalidArgument,
    NewerRelease,
    NotFound,
    PreconditionFailed,
    StorageError,
)
from angarium.ids import CATALOG_GROUP, full_id, is_witness, node_of, replica_id
from angarium.log import folder_identity, rolled_back, successions
from angarium.log.folder_lock import FolderInUse
from angarium.log.folder_modes import make_private
from angarium.log.os_disk import OsDisk
from angarium.node import succession
from angarium.node.admission import Admission
from angarium.node.bindings import Bindings
from angarium.node.catalog import NodeCatalog
from angarium.node.compaction import Compaction
from angarium.node.driving import Driver
from angarium.node.fencing import Fencing
from angarium.node.greetings import check_nobody_there
from angarium.node.healing import Healing
from angarium.node.hearing import Hearing
from angarium.node.joining import Asking, ask_to_join, cluster_name, new_cluster
from angarium.node.lacking import lacks, told
from angarium.node.lag import LoopLag
from angarium.node.levels import Levels
from angarium.node.liveness import Liveness
from angarium.node.marks import Marks
from angarium.node.own_facts import OwnFacts
from angarium.node.peers import Peers
from angarium.node.placement import Placement
from angarium.node.ports import PATIENCE_S, listening
from angarium.node.quorum import Quorum
from angarium.node.readiness import Readiness
from angarium.node.replicas import Replicas
from angarium.node.retention import Retention
from angarium.node.rivals import Rivals
from angarium.node.rumours import Rumours
from angarium.node.scrubbing import Scrubbing
from angarium.node.second_cluster import SecondCluster
from angarium.node.spanning import Spanning
from angarium.node.steering import in_sync
from angarium.node.timekeeping import Timekeeping
from angarium.replica.host import Host
from angarium.replica.peers import decode_peer_message
from angarium.replica.scrutiny import Objection
from angarium.security.tls import Door
from angarium.wire import Hello, Role, Server, Unreachable
from angarium.wire.descriptors import own_descriptors
from angarium.wire.errors import ClusterSucceeded, NodeIsAlive, NodeRemoved, RolledBack
from angarium.wire.handshake import SuccessorHello
from angarium.wire.raft_codec import unpacked_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from angarium.errors import AngariumError
    from angarium.ids import Micros, NodeId, RaftGroupId, ReplicaId
    from angarium.log.disk import DiskLock
    from angarium.log.folder_identity import FolderIdentity
    from angarium.log.successions import Succession
    from angarium.node.config import NodeConfig
    from angarium.node.origins import Origins
    from angarium.replica.partition_replica import PartitionReplica
    from angarium.wire import Connection, Frame, Welcome

_log = logging.getLogger(__name__)

_FINAL = (NodeRemoved, NodeIsAlive, NewerRelease, RolledBack, ClusterSucceeded)
"""What another node says that will not change: this node is no member of the cluster."""

LOCK_PATIENCE_S = 2.0
LOCK_PAUSE_S = 0.05
"""How long, and how often, a node tries to have its data folder: its predecessor may have been
killed and not be quite gone yet."""


class Node:
    """One member of a cluster. `start`, then serve, then `stop`."""

    def __init__(self, config: NodeConfig) -> None:
        self.config = config
        self.welcome: Welcome | None = None
        """Decides what a connection to the wire port may do; set before `start`."""
        self.process = secrets.randbits(48)
        """Tells this process from any other that says it is this node."""
        self.bindings = Bindings(self)
        """Checks which NAME and which addresses belong to a node's number."""
        self.peers = Peers(
            self.greeting,
            tls=self.bindings.dialling,
            on_change=self._link_changed,
            on_refused=self._link_refused,
        )
        self.lookout = Lookout(
            [
                *([StaticDiscovery([*map(Address.parse, config.join)])] if config.join else ()),
                *([config.discovery] if config.discovery is not None else ()),
            ]
        )
        """Everybody who can be asked where other nodes are."""
        self.rumours, self.liveness = Rumours(self), Liveness(self)
        self.admission, self.catalog = Admission(self), NodeCatalog(self)
        self.replicas, self._second = Replicas(self), SecondCluster(self)
        self._disk = OsDisk(config.data_directory, pause=time.sleep)
        self.readiness = Readiness(self, OwnFacts(config, self._disk))
        """Why this node should not be relied on, if there is a reason."""
        self.readiness.sources += [lambda: told(lacks(self)), own_descriptors().reasons]
        self.hearing = Hearing(self)
        """What happens in its replicas, for subscribers."""
        self.background: list[Callable[[], Coroutine[None, None, None]]] = []
        """What else runs as long as the node does; set before `start`."""
        self.failure: BaseException | None = None
        """Why the node had to stop, if it had to."""
        self.stopped = asyncio.Event()
        self.healing = Healing(self)
        """What becomes of replicas that damage has taken."""
        self.quorum, self.spanning = Quorum(self), Spanning(self)
        """Why partitions have no leader."""
        self.readiness.sources += [self.healing.reasons, self.quorum.reasons]
        self._lock: DiskLock | None = None
        self.asking = Asking()
        """What became of the wish to be let in, while it has no data."""
        self.levels = Levels(config.release, self._disk)
        self.marks = Marks(self, self._disk)
        self.rivals = Rivals(self, self._disk)
        self.readiness.sources += [self.rivals.reasons, self._second.reasons]
        self._identity: FolderIdentity | None = None
        self._host: Host | None = None
        self._server: Server | None = None
        self.time = Timekeeping(self)
        self.readiness.sources.append(self.time.reasons)
        self._placement = Placement(self)
        self._retention = Retention(self)
        self._compaction = Compaction(self)
        self._scrubbing = Scrubbing(bytes_per_s=config.scrub_bytes_per_s)
        election_ticks = config.host_config.replica.election_ticks
        self.lag = LoopLag(election_timeout_s=election_ticks * config.tick_ms / 1_000)
        self.driver = Driver(
            self.peers,
            config=config,
            lag=self.lag,
            now=self.now,
            hearing=self.hearing,
            fail=self.fail,
        )
        """Takes publishes and messages, once the data are open."""
        self._tasks: set[asyncio.Task[None]] = set()

    # --- what is known ----------------------------------------------------------------------

    @property
    def id(self) -> NodeId:
        """This node's id in the cluster."""
        return self.folder_identity.node_id

    @property
    def folder_identity(self) -> FolderIdentity:
        """Who this node is; known once it has started."""
        assert self._identity is not None, "the node has not started"
        return self._identity

    @property
    def host(self) -> Host:
        """The replicas of this node; raises `Unreachable` while it is coming up."""
        if self._host is None:
            raise Unreachable(self.asking.sentence)
        return self._host

    @property
    def is_identified(self) -> bool:
        """Whether it knows who it is: before it was let in it does not."""
        return self._identity is not None

    @property
    def durable_end(self) -> int:
        """How far this node's log is on disk, over all groups."""
        return self.host.wal.durable_end

    @property
    def is_open(self) -> bool:
        """Whether its data are open; before that it can say nothing."""
        return self._host is not None

    @property
    def is_member(self) -> bool:
        """Whether the catalog, as far as it is known here, has this node in it."""
        catalog = self.host.catalog
        return catalog is not None and self.id in catalog.catalog.machine.nodes.by_id

    @property
    def wire_port(self) -> int:
        """The port listened on."""
        assert self._server is not None
        return self._server.port

    @property
    def addresses(self) -> dict[str, str]:
        """By door, where others reach this node."""
        wire = Address(self.config.wire_host, self.wire_port)
        return {"wire": str(wire), **self.config.advertised}

    @property
    def origins(self) -> Origins:
        """From which regions partitions that this node leads are published to."""
        return self._placement.following.origins

    def succession(self) -> Succession | None:
        """Return how this folder came to another cluster, if that is still noted. Blocks."""
        return successions.load(self._disk)

    def forget_succession(self) -> None:
        """Forget that note: whoever has to know has been told. Blocks."""
        successions.forget(self._disk)

    def now(self) -> Micros:
        """Return the time this node goes by: its clock's, as far as a majority believes it."""
        return self.time.now()

    def leader_of(self, group: RaftGroupId) -> NodeId | None:
        """Return who leads `group`, as far as this node's own replica knows."""
        replica = self.host.catalog if group == CATALOG_GROUP else self.host.replicas.get(group)
        if replica is None or not replica.raft.leader or is_witness(replica.raft.leader):
            return None  # a witness serves nobody, and lets another one lead in a moment
        return node_of(replica.raft.leader)

    def silence_ms(self, group: RaftGroupId) -> int:
        """Return how long ago this node's replica last heard from its leader; 0 if it leads."""
        return self.host.silent_ticks(group) * self.config.tick_ms

    def round_trip_ms(self, node: NodeId) -> float | None:
        """Return how long the way to another node and back takes; None if that is not known."""
        micros = self.time.clocks.round_trip(node)
        return None if micros is None else micros / 1_000

    def in_sync(self, group: RaftGroupId) -> tuple[NodeId, ...] | None:
        """Return who votes in `group`, can be reached and has everything but the very newest.

        Only its leader knows; None elsewhere. A node whose data were wiped counts once its new
        incarnation votes, and not as what it was.
        """
        replica = self.host.catalog if group == CATALOG_GROUP else self.host.replicas.get(group)
        if replica is None or not replica.may_serve:
            return None
        members = self.catalog.machine.nodes.by_id.values()
        wanted = {one.replica_in(group) for one in members}
        wanted |= {one.witness_in(group) for one in members}
        is_here = partial(self.is_here, group)
        return in_sync(replica, is_wanted=wanted.__contains__, is_here=is_here)

    def is_here(self, group: RaftGroupId, replica: ReplicaId) -> bool:
        """Tell whether a replica can be reached now, and its node still has the disk it lives on.

        A node that came back with an empty disk greets with another incarnation.
        """
        member = self.catalog.machine.nodes.by_id.get(node_of(replica))
        if member is None or member.replica_in(group) != full_id(replica):
            return False
        return self.peers.is_up_as(replica_id(member.id, member.incarnation))

    # --- life -------------------------------------------------------------------------------

    async def listen(self) -> None:
        """Have the data directory to itself and the port open, so that it can be asked how it is.

        It serves nobody before it has started.
        """
        config = self.config
        assert self.welcome is not None, "a node without a door serves nobody"
        make_private(config.data_directory)
        self._lock = await self._locked()
        self._identity = folder_identity.load(self._disk)
        self._server = await listening(
            partial(
                Server.listen,
                host=config.wire_host,
                port=config.wire_port,
                greeting=self._hello,
                welcome=self.welcome,
                on_foreign=self._second.hear,
                tls=None if config.tls is None else config.tls.listener(Door.WIRE),
                certificate_required=config.tls is not None and config.tls.requires_certificates,
            ),
            patience_s=0.0 if self._identity is None else PATIENCE_S,
        )

    async def start(self) -> None:
        """Come up on what the data directory holds, or form or join a cluster with an empty one."""
        config = self.config
        if self._server is None:
            await self.listen()
        if self._identity is not None:
            self._check_not_left()
            self._check_not_rolled_back()
            self._open()
            self.host.await_catalog()
        elif config.form:
            await check_nobody_there(config, self.lookout)
            self._become(new_cluster(), level=config.release.level_max)
            self.host.form_group(CATALOG_GROUP, [self.host.id])
            self.campaign(CATALOG_GROUP)
        elif self.lookout.sources:
            identity, joined = await ask_to_join(config, self.addresses, self.asking, self.lookout)
            self._become(identity, level=joined.level)
            self.host.join_group(CATALOG_GROUP)
            for peer, address in joined.peers:
                self.peers.know(peer, address)
        else:
            raise StorageError(
                f"{config.data_directory} is empty: say whether to form a new cluster (--form, or "
                "node.form in node.toml) or whom to join (--join, node.join, or --discover and "
                "[discovery] for who finds them); a node never forms one by itself"
            )
        if self.host.catalog is not None:
            self.levels.note(self.catalog.machine)
        for run in (
            self.driver.tick,
            self.driver.keep_house,
            self.time.run,
            self.liveness.run,
            self._placement.run,
            self.catalog.run,
            self.readiness.run,
            self.marks.run,
            self.healing.run,
            Fencing(self).run,
            self._retention.run,
            self._compaction.run,
            lambda: self._scrubbing.run(self.host.replicas),
            *((self.lookout.run, self.rumours.run) if config.discovery is not None else ()),
            *self.background,
        ):
            self.run_beside(run)
        self.wake()

    def run_beside(self, run: Callable[[], Coroutine[None, None, None]]) -> None:
        """Let something run beside everything else, until it is done or the node stops."""
        task = asyncio.create_task(run())
        task.add_done_callback(self._ended)
        self._tasks.add(task)

    async def stop(self) -> None:
        """Hand leadership over, finish what is under way, and close everything."""
        if self._host is not None and self.failure is None:
            await self._placement.hand_over()
        tasks = list(self._tasks)  # a task that ends leaves the set
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.driver.finish_chores()
        if self._server is not None:
            await self._server.drain(timeout_s=2.0)
        await self.peers.stop()
        await self.driver.stop()
        if self._host is not None and self.failure is None:
            await self.marks.save()
            await asyncio.to_thread(self._host.close)
        await self.marks.close()
        if self._lock is not None:
            self._lock.release()
        self.stopped.set()

    async def _locked(self) -> DiskLock:
        """Have the folder to ourselves before anything in it is looked at."""
        deadline = asyncio.get_running_loop().time() + LOCK_PATIENCE_S
        while True:
            try:
                lock = self._disk.lock()
            except FolderInUse:
                if asyncio.get_running_loop().time() >= deadline:
                    raise
                await asyncio.sleep(LOCK_PAUSE_S)
                continue
            if not lock.is_kept:
                _log.warning(
                    "the file system of %s has no locks: nothing keeps a second process from "
                    "destroying these data",
                    self._disk.root,
                )
            return lock

    def _check_not_left(self) -> None:
        """Raise why nobody may start on this folder: its cluster went on, or is about to."""
        begun = successions.load(self._disk)
        if begun is not None and not begun.is_done:
            raise PreconditionFailed(
                "the recovery of the catalog was begun on this folder and did not end: run "
                f"`angarium cluster recover-catalog --data {self._disk.root}` again"
            )
        why = successions.left(self._disk)
        if why is not None:
            raise ClusterSucceeded(
                f"{why}. The file {successions.LEFT_NAME} in the data folder says so: remove it "
                "only if it was the other nodes that were wrong"
            )

    def _check_not_rolled_back(self) -> None:
        """Raise `RolledBack` if the other nodes have refused this folder before."""
        why = rolled_back.noted(self._disk)
        if why is not None:
            raise RolledBack(
                f"{why}. The file {rolled_back.NAME} in the data folder says so: remove it only "
                "if it was the other nodes that were wrong"
            )

    def fail(self, failure: BaseException) -> None:
        """Stop at once: going on would break a promise."""
        if self.failure is None:
            self.failure = failure
            # What the others say needs no traceback, and no mistake of ours is in it.
            trace = None if isinstance(failure, _FINAL) else failure
            _log.critical("the node stops: %s", failure, exc_info=trace)
            self.driver.halt()
            for task in list(self._tasks):
                task.cancel()
            self.stopped.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        # A node without one of its tasks would limp on, and nobody would know.
        failure = None if task.cancelled() else task.exception()
        if failure is not None:
            self.fail(failure)

    def _link_changed(self, node: NodeId) -> None:
        if self.peers.is_up(node):
            self.rivals.let_in()
        self.quorum.link_changed(node)
        self.readiness.look_again()
        self.rumours.link_changed(node)
        if self._host is not None and self.failure is None:
            self._host.link_changed(node)
            self.hearing.link_changed(node)
            self.wake()

    def _link_refused(self, error: AngariumError) -> None:
        if self._host is None:
            return
        if isinstance(error, NodeIsAlive):
            self.rivals.hear(error)
        elif isinstance(error, ClusterSucceeded):
            self.succeeded(error)
        elif isinstance(error, _FINAL):
            if isinstance(error, RolledBack):
                with suppress(StorageError):  # a full disk must not keep it from ending
                    rolled_back.note(self._disk, str(error))
            self.fail(error)

    def succeeded(self, error: ClusterSucceeded) -> None:
        """Hear from one of this node's cluster that there is another one now, without this node.

        Who says so was dialled, and has proved where that is asked for that it is a node.
        """
        # It is read on both sides: by who goes on, and by who has to end.
        if error.former != cluster_name(self.folder_identity):
            return
        with suppress(StorageError):  # a full disk must not keep it from ending
            successions.note_left(self._disk, str(error))
        self.fail(error)

    def _become(self, identity: FolderIdentity, *, level: int) -> None:
        folder_identity.create(self._disk, identity)
        self.levels.begin(level)
        self._identity = identity
        self._open()

    def _open(self) -> None:
        identity = self.folder_identity
        self.levels.check_data()
        self.marks.load()
        self.rivals.load()
        self._host = Host(
            self._disk,
            node=identity.node_id,
            incarnation=identity.incarnation,
            config=self.config.host_config,
            jitter=random.randrange,
            listener=self.hearing,
            name_of=self.catalog.name_of,
        )
        self._host.outbox.compares_numbers = self.levels.compares_numbers
        self.driver.start(self._host)

    def campaign(self, group: RaftGroupId) -> None:
        """Do not wait for a timeout when nobody else can lead yet."""
        replica = self.host.catalog if group == CATALOG_GROUP else self.host.replicas.get(group)
        if replica is not None:
            replica.raft.campaign()
            replica.poke()
            self.wake()

    def greeting(self, role: Role) -> Hello:
        """Return how this node introduces itself."""
        identity = self._identity
        hello = Hello(role=role)
        if identity is not None:
            hello = Hello(
                role=role,
                cluster=cluster_name(identity),
                node=identity.node_id,
                incarnation=identity.incarnation,
                process=self.process,
                log_end=msgspec.UNSET if self._host is None else self._host.wal.end,
                address=msgspec.UNSET if self._server is None else self.addresses["wire"],
            )
            catalog = None if self._host is None else self._host.catalog
            told = {} if catalog is None else succession.invitations(catalog.catalog.machine)
            if told:
                hello = SuccessorHello(**msgspec.structs.asdict(hello), predecessors=told)
        return self.config.release.introduced(hello)

    def _hello(self) -> Hello:
        return self.greeting(Role.PEER)

    # --- inputs -----------------------------------------------------------------------------

    def take_raft(self, connection: Connection, frame: Frame) -> None:
        """Take Raft messages of many groups from another node."""
        messages = unpacked_messages(bytes(frame.header), frame.payload)
        if not self.admission.is_member(connection.peer.hello):
            messages = [one for one in messages if one[0] == CATALOG_GROUP]
        self.driver.take_raft(messages, self.admission.voice(connection))

    def take_peer_message(self, connection: Connection, frame: Frame) -> None:
        """Take a message outside of Raft."""
        try:
            message = decode_peer_message(frame.payload)
        except InvalidArgument as unreadable:
            self.host.outbox.refusals.note(Objection.CONTENT, str(unreadable))
            return
        if message.group == CATALOG_GROUP or self.admission.is_member(connection.peer.hello):
            self.driver.take_peer_message(message, self.admission.voice(connection))

    def wake(self) -> None:
        """Have everything that came in carried out, at the end of this turn of the loop."""
        self.driver.wake()

    def partition(self, group: RaftGroupId) -> PartitionReplica:
        """Return this node's replica of a partition; raises `NotFound`."""
        replica = self.host.replicas.get(group)
        if replica is None:
            name = self.catalog.name_of(group)
            raise NotFound(f"node {self.id} has no replica of {name}")
        return replica
