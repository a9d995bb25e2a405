"""The catalog as a node uses it: read from its own replica, written through its leader."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import (
    AngariumError,
    InvalidArgument,
    NotLeader,
    OutcomeUnknown,
)
from angarium.ids import CATALOG_GROUP, Index, NodeId, Term
from angarium.machine.catalog import (
    BALANCE_LEVEL,
    CatalogMachine,
    ClusterRecover,
    Form,
    Labels,
    NodeJoin,
    NodeRegister,
    decode,
    encode,
)
from angarium.machine.catalog.access_values import GrantMade
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
from angarium.node.admission import check_not_removed
from angarium.node.catalog_view import CatalogView
from angarium.node.deadlines import in_time
from angarium.node.joining import cluster_name, join_token_now
from angarium.node.naming import partition_name
from angarium.node.release import new_decoy_key
from angarium.retrying import Backoff, Tries
from angarium.security.tokens import token_digest
from angarium.wire.error_codec import Failure, error_of
from angarium.wire.errors import AddressDisputed, NodeIsAlive, NodeRemoved
from angarium.wire.operations import Operation

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.ids import Buffer, RaftGroupId
    from angarium.machine.catalog import CatalogApplied, CatalogCommand, CatalogOutcome
    from angarium.machine.catalog.values import Node as Member
    from angarium.node.node import Node

_log = logging.getLogger(__name__)

_KINDS: Final[dict[str, type[CatalogOutcome]]] = {
    kind.__name__: kind
    for kind in (
        Done,
        Formed,
        GrantMade,
        LevelRaised,
        Moving,
        NodeRegistered,
        ProducerOpened,
        ProducerShared,
        ProducersIssued,
        TopicMade,
    )
}

TELL_S_MAX: Final = 1.0
"""How long a peer may take to pass on who this node is."""

INTRODUCE_PAUSES: Final = Backoff(first_s=0.002, longest_s=0.1)
"""How long a node that could not introduce itself waits before it tries again: at first hardly at
all, for a leader that has just been elected serves in a moment, then twice as long each time."""


class _Answer(msgspec.Struct, frozen=True, array_like=True):
    """How an outcome travels: its kind, its content, and how far the leader's catalog was."""

    kind: str
    content: bytes
    applied: Index


class NodeCatalog(CatalogView):
    """Where a node asks about the cluster, and asks for changes of it."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._advanced = asyncio.Event()
        self.is_current = False
        """Whether this node's catalog has caught up since its start. Until then it may lack what
        this node itself took part in before: how far a log is committed is not synced."""
        self._last: CatalogMachine | None = None
        self.watchers: list[Callable[[CatalogApplied | None], None]] = []
        """Called when something in the catalog has changed here."""
        self._policy_watchers: list[Callable[[], None]] = []
        self._policy = Index(0)
        """The version of the policy that they were told of."""

    # --- reading ----------------------------------------------------------------------------

    @property
    def machine(self) -> CatalogMachine:
        """The catalog as of the last entry applied here."""
        replica = self._node.host.catalog
        machine = None if replica is None else replica.catalog.machine
        if machine is None or (self._last is not None and not machine.cluster):
            # Its replica was lost to damage, and is not back yet: what it knew is still true.
            machine = self._last
        if machine is None:
            raise NotLeader(self._without())
        self._last = machine
        return machine

    @property
    def _known(self) -> CatalogMachine:
        return self.machine

    def _without(self) -> str:
        """Say why this node has no catalog."""
        reasons = [one for one in self._node.healing.reasons() if one.startswith("the catalog")]
        return (reasons or ["the catalog is being copied to this node"])[0]

    @property
    def is_here(self) -> bool:
        """Whether this node has a copy of it at the moment; damage may have taken it."""
        return self._node.host.catalog is not None

    @property
    def applied(self) -> Index:
        """How far this node's catalog is."""
        replica = self._node.host.catalog
        return replica.applied if replica is not None else Index(0)

    def name_of(self, group: RaftGroupId) -> str:
        """Return what people call a group of Raft."""
        if group == CATALOG_GROUP:
            return "the catalog"
        replica = self._node.host.catalog if self._node.is_open else None
        machine = None if replica is None else replica.catalog.machine
        partition = None if machine is None else machine.topics.partitions.get(group)
        if machine is None or partition is None:
            return f"the partition in groups/{group}"  # where its files are, at least
        return partition_name(machine, partition)

    def changed(self, applied: CatalogApplied | None) -> None:
        """Hear that an entry was applied; None: a snapshot, so anything may be different."""
        machine = self.machine
        self._node.levels.note(machine)
        self._node.host.outbox.compares_numbers = self._node.levels.compares_numbers
        try:
            check_not_removed(machine, self._node.id)
        except NodeRemoved as removed:
            self._node.fail(removed)
        self._advanced.set()
        self._advanced = asyncio.Event()
        self._node.bindings.changed()
        if machine.access.version != self._policy:
            self._policy = machine.access.version
            for told in self._policy_watchers:
                told()
        if applied is None or applied.nodes or applied.groups or applied.topics:
            for watcher in self.watchers:
                watcher(applied)

    def watch_policy(self, watcher: Callable[[], None]) -> None:
        """Have `watcher` called whenever users, roles, grants or tokens have changed here."""
        self._policy_watchers.append(watcher)

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
        if leader is None or (
            not node.quorum.is_led(CATALOG_GROUP) and node.quorum.trouble(CATALOG_GROUP)
        ):
            raise node.quorum.no_leader(CATALOG_GROUP)
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
        former = replica.catalog.machine.cluster
        if former not in ("", cluster_name(self._node.folder_identity)) and not isinstance(
            command, ClusterRecover
        ):
            # Whatever it issued now the lost ones may have issued, and their join tokens are good.
            raise NotLeader(f"the catalog of {former} is being recovered: ask again in a moment")
        wish = command.registration if isinstance(command, NodeJoin) else command
        if isinstance(wish, NodeRegister):
            await self._node.admission.check_not_alive(wish)
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
        replica.poke()
        self._node.wake()
        async with in_time(self._node.config.request_timeout_s, "a change of the catalog"):
            outcome = await future
        return outcome, replica.applied

    # --- this node's own entry --------------------------------------------------------------

    async def run(self) -> None:
        """See to it that the catalog knows this cluster and this node, as it is now."""
        tries = Tries(INTRODUCE_PAUSES)
        while True:
            try:
                await self._introduce()
                return
            except (NodeRemoved, NodeIsAlive) as final:
                self._node.fail(final)
                return
            except AddressDisputed as disputed:
                self._node.rivals.hear(NodeIsAlive(str(disputed)))
                await tries.pause()
            except AngariumError as error:
                _log.debug("not introduced yet: %s", error)
                await tries.pause()

    def introduce_again(self) -> None:
        """Tell the catalog that something about this node has changed."""
        self._node.run_beside(self.run)

    async def _tell_peers(self) -> None:
        """Register through the catalog's leader, while this node's copy of it is lost.

        Only when the leader knows as whom this node has come back will it send it a new copy.
        """
        data = encode(self.registration(self._node.id))
        for peer in self._node.peers.ids:
            with suppress(AngariumError):
                await self._node.peers.request(
                    peer, Operation.CATALOG, b"", [data], timeout_s=TELL_S_MAX
                )
                return

    async def _introduce(self) -> None:
        node = self._node
        if CATALOG_GROUP in node.host.own_ids.renewed and not node.leader_of(CATALOG_GROUP):
            await self._tell_peers()
        check_not_removed(self.machine, node.id)
        if not self.machine.cluster and node.leader_of(CATALOG_GROUP) == node.id:
            release = node.config.release
            await self.submit(
                Form(
                    cluster=cluster_name(node.folder_identity),
                    level=release.level_max,
                    is_automatic=release.level_max >= BALANCE_LEVEL,
                    decoy_key=new_decoy_key(release.level_max),
                )
            )
        await self._recover_cluster()
        await self.catch_up()
        self._became_current()
        known = self.machine.nodes.by_id.get(node.id)
        mine = self.registration(node.id if known is not None else None)
        if known is not None and known.addresses != mine.addresses:
            # The others would find out, too, but a cluster of one node has none.
            await node.rivals.look_at(dict(known.addresses).get("wire", ""))
        entry = mine if known is None else self._with_token(mine, known.name)
        if known is None or isinstance(entry, NodeJoin) or _differs(known, entry):
            await self.submit(entry)

    def _with_token(self, mine: NodeRegister, bound: str) -> NodeRegister | NodeJoin:
        """Return the entry that registers this node, whose number is bound to the NAME `bound`.

        With a join token it is bound to this node's. Without, it stays as it is, and the other
        nodes will not speak to this one; a node that is alone goes on.
        """
        if not bound or mine.name in ("", bound):
            return mine
        token = join_token_now(self._node.config)
        if token:
            return NodeJoin(digest=token_digest(token), registration=mine)
        _log.warning(
            "node %d is bound to the NAME %s, and its certificate is that of %s: put the former "
            "certificate back, or start it with a join token (`angarium cluster invite`)",
            self._node.id,
            bound,
            mine.name,
        )
        return msgspec.structs.replace(mine, name="")

    async def _recover_cluster(self) -> None:
        """Enter what the data folder says: the cluster goes on under another id, by this node."""
        node = self._node
        cluster, known = cluster_name(node.folder_identity), self.machine.cluster
        if not known or known == cluster or node.leader_of(CATALOG_GROUP) != node.id:
            return
        found = await asyncio.to_thread(node.succession)
        await self.submit(
            ClusterRecover(
                cluster=cluster,
                previous=known,
                node=node.id,
                last_term=Term(0) if found is None else found.last_term,
                last_index=Index(0) if found is None else found.alone_from,
                by="" if found is None else found.by,
            )
        )
        _log.warning("the cluster %s goes on as %s", known, cluster)

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
            incarnation=node.folder_identity.incarnation,
            addresses=tuple(sorted(node.addresses.items())),
            labels=Labels(config.region, config.zone, config.host),
            level_min=config.release.level_min,
            level_max=config.release.level_max,
            renewed=tuple(sorted(node.host.own_ids.renewed.items())),
            name=node.bindings.own_name,
        )


def _differs(known: Member, mine: NodeRegister) -> bool:
    """Tell whether the catalog has something else of this node than it says of itself."""
    return _as_registered(known) != _as_registered(mine) or mine.name not in ("", known.name)


def _as_registered(one: Member | NodeRegister) -> tuple[object, ...]:
    return one.addresses, one.labels, one.level_min, one.level_max, one.renewed


def _leader(node: Node) -> NodeId | None:
    return node.leader_of(CATALOG_GROUP)
