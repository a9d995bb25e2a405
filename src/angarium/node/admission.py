"""Who may be a peer: the one place that decides it, from the greeting to the last frame.

A peer names this cluster and is registered in its catalog, under the incarnation of its data. Who
was removed is told so and ends. With TLS it has shown a node certificate of this cluster as well,
whatever its greeting says; without it nothing here proves that somebody is who they say.

A node whose own catalog may be old cannot know everybody. Until it has caught up, and while it
hears from no leader, it also lets in who is not in its catalog, but takes of it only what concerns
the catalog itself: that is how it learns who it is.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from angarium.addresses import dialled
from angarium.errors import AngariumError, OutcomeUnknown
from angarium.ids import CATALOG_GROUP, Incarnation, NodeId, replica_id
from angarium.node.bindings import WARN_S
from angarium.replica.scrutiny import Objection
from angarium.security.tls import UntrustedNode
from angarium.wire import HandshakeRefused, Hello, Role, Unreachable, dial
from angarium.wire.errors import NodeIsAlive, NodeRemoved, NotRegistered
from angarium.wire.operations import Operation

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.ids import ReplicaId
    from angarium.machine.catalog import CatalogApplied, CatalogMachine, NodeRegister
    from angarium.node.node import Node
    from angarium.wire import Connection

ALIVE_S_MAX: Final = 1.0
"""How long a node may take to show that it lives, before another may stand in its place."""

DOUBLE_S: Final = 5.0
"""How long somebody who was found to be a second process is refused without another look."""

DOUBLES_MAX: Final = 1_000
"""Processes remembered as copies; with more of them the memory begins anew."""


class Admission:
    """Decides about greetings, and keeps an eye on those who were let in."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._guests: set[Connection] = set()
        self._doubles: dict[tuple[int, object], float] = {}
        """Nodes, and processes that greeted as them while another process of theirs lived; until
        when that counts as known."""
        self._warned: dict[NodeId, float] = {}
        """Members that were asked about a registration that was refused; until when none of them is
        asked again."""
        self._is_warning = False
        self._looking: set[asyncio.Task[None]] = set()
        self.on_refusal: Callable[[str, AngariumError], None] | None = None
        """Told of each that was not taken for a node: as what it came, and why not."""

    # --- greetings --------------------------------------------------------------------------

    def is_proven(self, connection: Connection) -> bool:
        """Tell whether nodes need no proof here, or the other side has given it."""
        config = self._node.config
        if config.tls is None:
            return config.are_peers_trusted
        return config.tls.is_node(connection.peer_certificate, connection.tls_context)

    def admit(self, connection: Connection) -> None:
        """Let a peer in, or raise why not."""
        hello = connection.peer.hello
        try:
            self._check_proven(connection)
            self._check(hello)
            self._node.bindings.check(connection)
            self._check_single(hello)
            self._node.marks.check(hello)
        except NotRegistered:
            raise  # it may be a moment ahead of us
        except AngariumError as refused:
            self._tell_refusal(connection, f"a greeting as node {hello.node}", refused)
            raise
        # A greeting shows that the node's packets arrive here, not that ours arrive there: only
        # what it sends after our answer counts as a sign of life.
        connection.take_heard()
        self._guests.add(connection)
        self._find(hello)

    def refuse_join(self, connection: Connection) -> NoReturn:
        """Tell somebody who may not even ask to be let in why that is so; raises it."""
        refused = self._untrusted("who wants to join")
        self._tell_refusal(connection, "a wish to join", refused)
        raise refused

    def _tell_refusal(self, connection: Connection, what: str, refused: AngariumError) -> None:
        self.note_refusal(connection, what, refused)
        if self.on_refusal is not None:
            self.on_refusal(what, refused)

    def note_refusal(self, connection: Connection, what: str, refused: AngariumError) -> None:
        """Have the log say that somebody was not taken for a node; it has few lines for that."""
        if self._node.is_open:
            said = f"{what} from {connection.address}: {refused}"
            self._node.host.outbox.refusals.note(Objection.STRANGER, said)

    def _check_proven(self, connection: Connection) -> None:
        if not self.is_proven(connection):
            raise self._untrusted(f"node {connection.peer.hello.node}")

    def _untrusted(self, who: str) -> UntrustedNode:
        what = f"{who} has shown no node certificate of this cluster"
        if self._node.config.tls is None:
            return UntrustedNode(
                f"{what}, and here clients have to prove who they are: give every node one, in the"
                " section [tls] of its node.toml, or, where nobody else can reach the wire port,"
                " set trust_peers in [security]"
            )
        return UntrustedNode(f"{what}; every node needs one, in the section [tls] of its node.toml")

    def _find(self, hello: Hello) -> None:
        """Look for a member where it says it is, if it is nowhere else.

        When all addresses have changed at once, it is enough that one of two finds the other. A
        node that has lost its catalog knows no address at all: it believes whom it has met before.
        """
        peers, node = self._node.peers, NodeId(hello.node)
        is_known = self.is_member(hello) or (
            not self._has_catalog and self._node.marks.remembers(hello)
        )
        if hello.address is msgspec.UNSET or not is_known or node == self._node.id:
            return
        is_address = dialled(hello.address) is not None
        if is_address and not peers.is_up(node) and peers.address_of(node) != hello.address:
            peers.meet(node, hello.address)

    def guests_of(self, node: NodeId) -> list[Connection]:
        """Return the connections that a node has dialled to this one, and was admitted with."""
        return [one for one in self._guests if one.peer.hello.node == node]

    def left(self, connection: Connection, _: AngariumError | None) -> None:
        """Hear that a connection is gone."""
        self._guests.discard(connection)

    def look_again(self, applied: CatalogApplied | None) -> None:
        """Hang up on those who do not belong here any more: the catalog has changed."""
        if applied is not None and not applied.nodes:
            return
        for connection in list(self._guests):
            try:
                self._check(connection.peer.hello)
                self._node.bindings.check(connection)
            except NotRegistered:
                continue  # what it says is looked at anyway
            except AngariumError as gone:
                connection.fail(gone)

    def _check(self, hello: Hello) -> None:
        if not hello.cluster or not is_a_node(hello):
            raise HandshakeRefused(
                "a peer says which node of which cluster it is; clients connect as clients"
            )
        machine = self._machine
        if machine is None or not self._has_catalog:
            return
        check_not_removed(machine, NodeId(hello.node))
        if self.is_member(hello):
            return
        replica = self._node.host.catalog
        known = machine.nodes.by_id.get(NodeId(hello.node))
        if known is not None and replica is not None and replica.may_serve:
            # The catalog's leader knows of every incarnation there has been.
            raise NodeRemoved(
                f"node {hello.node} has come back with an empty data folder, and these are its "
                "data from before; start it with an empty folder if it is to be a node again"
            )
        if self._hears_leader:
            raise NotRegistered(f"node {hello.node} is not known here yet, or not as it is now")

    def is_member(self, hello: Hello) -> bool:
        """Tell whether the catalog, as far as it is known here, has this very node."""
        machine = self._machine
        known = None if machine is None else machine.nodes.by_id.get(NodeId(hello.node))
        return known is not None and known.incarnation == hello.incarnation

    @property
    def _machine(self) -> CatalogMachine | None:
        replica = self._node.host.catalog  # None while it is being repaired
        return None if replica is None else replica.catalog.machine

    @property
    def _has_catalog(self) -> bool:
        """Whether this node knows of any member: its catalog may be lost, or not copied yet."""
        machine = self._machine
        return machine is not None and bool(machine.cluster)

    @property
    def _hears_leader(self) -> bool:
        """Whether whatever the catalog says gets here within a moment."""
        node = self._node
        leader = node.leader_of(CATALOG_GROUP)
        is_heard = leader is not None and (leader == node.id or node.peers.is_up(leader))
        return is_heard and node.catalog.is_current

    # --- two of one kind --------------------------------------------------------------------

    def _check_single(self, hello: Hello) -> None:
        """Refuse a second process of one node: its data folder was copied."""
        node = self._node
        if hello.node == node.id:
            if hello.process != node.process:
                raise _double(hello, node.greeting(Role.PEER))
            return
        others = [one for one in self._guests if one.is_open and _is_double(one.peer.hello, hello)]
        if not others:
            return
        if self._doubles.get((hello.node, hello.process), 0.0) > _now():
            raise _double(hello, others[0].peer.hello)
        # A connection may outlive its process by a while: ask, and let this one come again.
        task = asyncio.create_task(self._look_for_double(others, hello))
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)
        raise NotRegistered(f"another process of node {hello.node} may be alive; try again")

    async def _look_for_double(self, others: list[Connection], hello: Hello) -> None:
        """Find out which of two processes is the node, by who is where the catalog has it.

        The one that was here first may have spoken in its name while it was down.
        """
        is_at_home = await self._process_at_home(NodeId(hello.node)) == hello.process
        for one in others:
            if is_at_home or not await _answers(one):
                one.fail(Unreachable("another process has replaced this one"))
            else:
                if len(self._doubles) >= DOUBLES_MAX:
                    self._doubles.clear()
                self._doubles[hello.node, hello.process] = _now() + DOUBLE_S
        if is_at_home:
            self._node.peers.look_at_home(NodeId(hello.node))

    async def _process_at_home(self, node: NodeId) -> object:
        """Return which process answers where the catalog says that `node` is; None if none does."""
        home = dialled(self._node.peers.home_of(node))
        if home is None:
            return None
        try:
            connection = await dial(
                host=home.host,
                port=home.port,
                hello=self._node.greeting(Role.PEER),
                expected_node=node,
                timeout_s=ALIVE_S_MAX,
                tls=self._node.bindings.dialling(node),
            )
        except AngariumError:
            return None
        process = connection.peer.hello.process
        await connection.close(timeout_s=ALIVE_S_MAX)
        return process

    # --- taking a node's place --------------------------------------------------------------

    async def check_not_alive(self, command: NodeRegister) -> None:
        """Raise `NodeIsAlive` if `command` would put another one in a living node's place, and
        `AddressDisputed` if it would have it elsewhere than where it is.

        One that is down, and one that was paused for long, can be replaced; if it comes back it
        is told so.
        """
        await self._node.bindings.check_own(command)
        machine = self._machine
        if machine is None or command.node is None:
            return
        check_not_removed(machine, command.node)
        known = machine.nodes.by_id.get(command.node)
        if known is None or known.incarnation == command.incarnation:
            return
        if command.node == self._node.id or await self._is_alive(command.node):
            raise NodeIsAlive(
                f"node {command.node} is alive, and only one that is down can be replaced: stop "
                "it first, or come in as a new node, without an id"
            )

    async def warn(self, command: NodeRegister) -> None:
        """Have the member that a refused registration is about log a warning.

        At most once in `WARN_S` for a member, and one at a time: requests to join need no token to
        be refused, and must not make this node dial others as often as they come.
        """
        machine, now = self._machine, _now()
        known = None
        if machine is not None:
            known = machine.nodes.known_as(command.node, command.incarnation)
        if known is None or self._is_warning or known.id in self._warned_by(now):
            return
        self._warned[known.id] = now + WARN_S
        self._is_warning = True
        try:
            with suppress(AngariumError):
                await self.check_not_alive(command)
        finally:
            self._is_warning = False

    def _warned_by(self, now: float) -> dict[NodeId, float]:
        self._warned = {node: until for node, until in self._warned.items() if until > now}
        return self._warned

    async def _is_alive(self, node: NodeId) -> bool:
        connection = self._node.peers.connection(node)
        return connection is not None and await _answers(connection)

    # --- what they say ----------------------------------------------------------------------

    def voice(self, connection: Connection) -> ReplicaId:
        """Return as whom a peer was let in: the only sender it may speak for."""
        hello = connection.peer.hello
        return replica_id(NodeId(hello.node), Incarnation(hello.incarnation))


def is_a_node(hello: Hello) -> bool:
    """Tell whether somebody names a node that there could be."""
    return 0 < hello.node < 1 << 14 and hello.incarnation < 1 << 48


def _is_double(one: Hello, other: Hello) -> bool:
    """Tell whether two processes say that they are the same node with the same data."""
    is_same_node = (one.node, one.incarnation) == (other.node, other.incarnation)
    return is_same_node and one.process != other.process


def is_removed(machine: CatalogMachine, node: NodeId) -> bool:
    """Tell whether a node was there once.

    Ids go upward and are never given again, so even an old catalog is right about it.
    """
    return node not in machine.nodes.by_id and node < machine.nodes.next_id


def check_not_removed(machine: CatalogMachine, node: NodeId) -> None:
    """Raise `NodeRemoved` for a node that was there once."""
    if is_removed(machine, node):
        raise NodeRemoved(
            f"node {node} was removed from its cluster; to let this machine in again, start it "
            "with an empty data folder and --join, without an id"
        )


async def _answers(connection: Connection) -> bool:
    """Tell whether there is somebody on the other side: a refusal is an answer, too."""
    try:
        await connection.request(Operation.READINESS, timeout_s=ALIVE_S_MAX)
    except (Unreachable, OutcomeUnknown):
        return False
    except AngariumError:
        return True
    return True


def _double(hello: Hello, living: Hello) -> NodeIsAlive:
    address = living.address if isinstance(living.address, str) else ""
    return NodeIsAlive(
        f"another process says that it is node {hello.node}, and it answers"
        f"{f' at {address}' if address else ''}: one of the two lives on a copy of the data folder",
        address=address,
    )


def _now() -> float:
    return asyncio.get_running_loop().time()
