"""The catalog as a node uses it: read from its own replica, written through its leader."""

from __future__ import annotations

import asyncio
import logging
from itertools import count
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.api import ClusterStatus
from angarium.errors import (
    AngariumError,
    InvalidArgument,
    NotFound,
    NotLeader,
    OutcomeUnknown,
    PreconditionFailed,
    no_partition,
)
from angarium.ids import CATALOG_GROUP, Index, NodeId
from angarium.machine.catalog import (
    CatalogMachine,
    Form,
    Labels,
    NodeRegister,
    decode,
    encode,
)
from angarium.machine.catalog.values import (
    Formed,
    LevelRaised,
    Moving,
    NodeRegistered,
    ProducerOpened,
    ProducerShared,
    ProducersIssued,
    TopicMade,
)
from angarium.machine.outcomes import Done, Refused
from angarium.node.deadlines import in_time
from angarium.node.joining import cluster_name
from angarium.wire import Unreachable
from angarium.wire.error_codec import Failure, error_of
from angarium.wire.operations import Operation

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.ids import Buffer
    from angarium.machine.catalog import CatalogApplied, CatalogCommand, CatalogOutcome
    from angarium.machine.catalog.values import Node as Member
    from angarium.machine.catalog.values import Partition, Topic
    from angarium.node.node import Node

_log = logging.getLogger(__name__)

_KINDS: Final[dict[str, type[CatalogOutcome]]] = {
    kind.__name__: kind
    for kind in (
        Done,
        Formed,
        LevelRaised,
        Moving,
        NodeRegistered,
        ProducerOpened,
        ProducerShared,
        ProducersIssued,
        TopicMade,
    )
}

REMOVED_FAILURES: Final = 10
"""After so many attempts to introduce itself, and again after as many, a node asks the others
whether it still belongs to them."""

REMOVED_ANSWER_S_MAX: Final = 1.0

INTRODUCE_PAUSE_S_MIN: Final = 0.002
INTRODUCE_PAUSE_S_MAX: Final = 0.1
"""How long a node that could not introduce itself waits before it tries again: at first hardly at
all, for a leader that has just been elected serves in a moment, then twice as long each time."""


class _Answer(msgspec.Struct, frozen=True, array_like=True):
    """How an outcome travels: its kind, its content, and how far the leader's catalog was."""

    kind: str
    content: bytes
    applied: Index


class CatalogDesk:
    """Where a node asks about the cluster, and asks for changes of it."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._advanced = asyncio.Event()
        self.is_current = False
        """Whether this node's catalog has caught up since its start. Until then it may lack what
        this node itself took part in before: how far a log is committed is not synced."""
        self.watchers: list[Callable[[CatalogApplied | None], None]] = []
        """Called when something in the catalog has changed here."""

    # --- reading ----------------------------------------------------------------------------

    @property
    def machine(self) -> CatalogMachine:
        """The catalog as of the last entry applied here."""
        replica = self._node.host.catalog
        if replica is None:
            raise Unreachable("this node's catalog is being repaired")
        return replica.catalog.machine

    @property
    def applied(self) -> Index:
        """How far this node's catalog is."""
        replica = self._node.host.catalog
        return replica.applied if replica is not None else Index(0)

    def check_formed(self) -> None:
        """Raise `NotLeader` as long as this catalog knows of no member.

        The first id is that of the node that forms the cluster. Until the catalog has said so, a
        newcomer would be given the same one.
        """
        if not self.machine.cluster or not self.machine.nodes.by_id:
            raise NotLeader("the cluster is being formed")

    def topic(self, name: str) -> Topic:
        """Return a topic by name; raises `NotFound`."""
        topics = self.machine.topics
        known = topics.by_name.get(name)
        if known is None:
            raise NotFound(f"there is no topic {name!r}")
        return topics.by_id[known]

    def partition(self, name: str, number: int) -> Partition:
        """Return a partition; raises `NotFound`, and `InvalidArgument` for one below 0."""
        topic = self.topic(name)
        if not 0 <= number < len(topic.groups):
            raise no_partition(name, len(topic.groups), number)
        return self.machine.topics.partitions[topic.groups[number]]

    def changed(self, applied: CatalogApplied | None) -> None:
        """Hear that an entry was applied; None: a snapshot, so anything may be different."""
        self._node.levels.note(self.machine)
        self._advanced.set()
        self._advanced = asyncio.Event()
        if applied is None or applied.nodes or applied.groups or applied.topics:
            for watcher in self.watchers:
                watcher(applied)

    async def reach(self, index: Index) -> None:
        """Wait until this node's catalog has applied `index`."""
        while self.applied < index:
            await self._advanced.wait()

    async def catch_up(self) -> None:
        """Wait until this node's catalog knows everything that was decided before this call."""
        _, applied = await self._at_leader(None)
        async with in_time(self._node.config.request_timeout_s, "catching up with the catalog"):
            await self.reach(applied)

    # --- writing ----------------------------------------------------------------------------

    async def submit(self, command: CatalogCommand) -> CatalogOutcome:
        """Carry out a command, wherever the leader is, and wait until it shows here too.

        Raises the refusal, or `NotLeader` while there is nobody to ask.
        """
        outcome, applied = await self._at_leader(command)
        async with in_time(self._node.config.request_timeout_s, "catching up with the catalog"):
            await self.reach(applied)
        return outcome

    async def serve(self, data: Buffer) -> _Answer:
        """Carry out what another node forwarded; raises `NotLeader` if this node cannot."""
        try:
            command = decode(data) if data else None
        except InvalidArgument as error:
            raise InvalidArgument(f"a forwarded command cannot be read: {error}") from error
        outcome, applied = await self._here(command)
        return _Answer(type(outcome).__name__, msgspec.msgpack.encode(outcome), applied)

    async def _at_leader(self, command: CatalogCommand | None) -> tuple[CatalogOutcome, Index]:
        node = self._node
        leader = node.leader_of(CATALOG_GROUP)
        if leader == node.id:
            return await self._here(command)
        if leader is None:
            raise NotLeader("the catalog has no leader at the moment")
        data = b"" if command is None else encode(command)
        frame = await node.peers.request(
            leader,
            Operation.CATALOG,
            b"",
            [data],
            timeout_s=node.config.request_timeout_s,
        )
        answer = frame.read(_Answer)
        kind = _KINDS.get(answer.kind)
        if kind is None:
            raise OutcomeUnknown(f"a leader of a newer release answered with a {answer.kind}")
        return msgspec.msgpack.decode(answer.content, type=kind), answer.applied

    async def _here(self, command: CatalogCommand | None) -> tuple[CatalogOutcome, Index]:
        """Carry out a command on this leader; None only makes sure that it still leads."""
        replica = self._node.host.catalog
        if replica is None or not replica.may_serve:
            raise NotLeader("this node does not lead the catalog", leader=_leader(self._node))
        future: asyncio.Future[CatalogOutcome] = asyncio.get_running_loop().create_future()

        def settle(outcome: CatalogOutcome | AngariumError) -> None:
            if future.done():
                return
            if isinstance(outcome, AngariumError):
                future.set_exception(outcome)
            elif isinstance(outcome, Refused):
                future.set_exception(error_of(Failure(outcome.code, outcome.message)))
            else:
                future.set_result(outcome)

        if command is None:
            replica.read_index(lambda refused: settle(refused or Done(changed=False)))
        else:
            replica.submit(command, now=self._node.now(), reply=settle)
        replica.process()
        self._node.wake()
        async with in_time(self._node.config.request_timeout_s, "a change of the catalog"):
            outcome = await future
        return outcome, replica.applied

    # --- this node's own entry --------------------------------------------------------------

    async def run(self) -> None:
        """See to it that the catalog knows this cluster and this node, as it is now."""
        pause = INTRODUCE_PAUSE_S_MIN
        for attempt in count(1):
            try:
                await self._introduce()
                return
            except AngariumError as error:
                _log.debug("not introduced yet: %s", error)
                outgrown = self._node.peers.outgrown
                if outgrown is not None:
                    # The catalog would tell the same, but nobody talks with us any more.
                    self._node.fail(outgrown)
                    return
                if attempt % REMOVED_FAILURES == 0 and await self._was_removed():
                    self._node.fail(PreconditionFailed(_REMOVED.format(self._node.id)))
                    return
                await asyncio.sleep(pause)
                pause = min(2 * pause, INTRODUCE_PAUSE_S_MAX)

    async def _introduce(self) -> None:
        node = self._node
        if not self.machine.cluster and node.leader_of(CATALOG_GROUP) == node.id:
            release = node.config.release
            await self.submit(Form(cluster=cluster_name(node.identity), level=release.level_max))
        await self.catch_up()
        self._became_current()
        known = self.machine.nodes.by_id.get(node.id)
        mine = self.registration(node.id if known is not None else None)
        if known is None or _as_registered(known) != _as_registered(mine):
            await self.submit(mine)

    async def _was_removed(self) -> bool:
        """Tell whether a node that knows no less than this one no longer knows this one.

        Nobody tells a node that was removed while it was down: it is no part of the catalog's
        group any more, and would wait for its leader for ever.
        """
        node = self._node
        if node.id not in self.machine.nodes.by_id:
            return False  # it has just been let in, and the others may not have heard yet
        for peer in node.peers.ids:
            try:
                frame = await node.peers.request(
                    peer, Operation.CLUSTER_STATUS, timeout_s=REMOVED_ANSWER_S_MAX
                )
                status = frame.read(ClusterStatus)
            except AngariumError:
                continue
            members = {one.id for one in status.nodes}
            # Ids are never given again: who is gone from a catalog that is as old is gone for good.
            if status.catalog_index >= self.applied and members and node.id not in members:
                return True
        return False

    def _became_current(self) -> None:
        if not self.is_current:
            self.is_current = True
            for watcher in self.watchers:
                watcher(None)

    def registration(self, known_as: NodeId | None) -> NodeRegister:
        """Return this node's entry as it should be."""
        node, config = self._node, self._node.config
        return NodeRegister(
            node=known_as,
            incarnation=node.identity.incarnation,
            addresses=tuple(sorted(node.addresses.items())),
            labels=Labels(config.region, config.zone, config.host),
            level_min=config.release.level_min,
            level_max=config.release.level_max,
        )


WAS_REMOVED: Final = "was removed from its cluster"
"""What a node says that does not belong to its cluster any more; `angarium up` looks for it."""

_REMOVED: Final = (
    f"node {{}} {WAS_REMOVED}; to let this machine in again, start it with an empty data folder and"
    " --join"
)


def _as_registered(one: Member | NodeRegister) -> tuple[object, ...]:
    return one.addresses, one.labels, one.level_min, one.level_max


def _leader(node: Node) -> NodeId | None:
    return node.leader_of(CATALOG_GROUP)
