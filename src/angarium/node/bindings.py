"""What a node's number is bound to: the NAME in its certificate, and what the node says of itself.

With TLS a number belongs to the NAME that the catalog has for it, whichever side dialled. A node
that answers where the catalog has it is asked before its addresses or labels change there: what
others know of it, such as its incarnation, is not enough. The question goes to the node and not to
the one that asks for the change, for an answer by the folder's secret could be fetched from the
node and passed on. Both hold from `BOUND_NAMES_LEVEL` on.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, TypeAlias

from angarium.addresses import dialled
from angarium.errors import AngariumError, OutcomeUnknown
from angarium.ids import NodeId
from angarium.node.release import BOUND_NAMES_LEVEL
from angarium.security.tls import UntrustedNode
from angarium.wire import Role, Unreachable, dial
from angarium.wire.errors import AddressDisputed
from angarium.wire.operations import Operation, OwnRegistrationAnswer, OwnRegistrationHeader

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable

    from angarium.machine.catalog import CatalogMachine, NodeRegister
    from angarium.machine.catalog import Node as Member
    from angarium.node.node import Node
    from angarium.security.tls import Certificate, Dialling, NodeTls
    from angarium.wire import Connection

ANSWER_S_MAX: Final = 2.5
"""How long a node may take to say whether it goes by other addresses now; after that it counts as
gone. Several round trips between regions, and a busy event loop, take less."""

WARN_S: Final = 10.0
"""The least time between two warnings that a false registration of this node was refused."""

Addresses: TypeAlias = tuple[tuple[str, str], ...]

_log = logging.getLogger(__name__)


class Bindings:
    """Checks NAMEs and registrations against the catalog, as far as it is known here."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._seen: Addresses | None = None
        """The addresses that the catalog had for this node at the last look."""
        self._warned_at: float | None = None
        self._is_binding = False
        self.on_moved: Callable[[NodeId, Addresses, Addresses], None] | None = None
        """Told of each change of this node's addresses: before and after."""

    # --- NAMEs ------------------------------------------------------------------------------

    @property
    def own_name(self) -> str:
        """The NAME in this node's certificate, where the cluster binds numbers to NAMEs."""
        tls = self._node.config.tls
        return "" if tls is None or not self._is_on else tls.name.name

    @property
    def is_renamed(self) -> bool:
        """Whether this node's number is bound to another NAME than its certificate has."""
        bound = self.bound_name(self._node.id)
        return bool(bound and self.own_name) and bound != self.own_name

    def bound_name(self, node: NodeId) -> str:
        """Return the NAME that a number is bound to; empty if it is bound to none."""
        machine = self._machine
        known = None if machine is None or not self._is_on else machine.nodes.by_id.get(node)
        return "" if known is None else known.name

    def check(self, connection: Connection) -> None:
        """Raise `UntrustedNode` if a peer's number is bound to another NAME than it has shown."""
        if self._node.config.tls is not None:
            node = NodeId(connection.peer.hello.node)
            check_bound(node, self.bound_name(node), connection.peer_certificate)

    def dialling(self, node: NodeId) -> Dialling | None:
        """Return how `node` is dialled by TLS: certificates of other NAMEs are rejected."""
        tls = self._node.config.tls
        return None if tls is None else BoundDialling(tls, node, self.bound_name)

    # --- registrations ----------------------------------------------------------------------

    async def check_own(self, command: NodeRegister) -> None:
        """Raise `AddressDisputed` if `command` changes a node that answers and does not confirm it.

        One that does not answer where the catalog has it may be elsewhere by now.
        """
        machine = self._machine
        known = None if machine is None else machine.nodes.changed_by(command)
        if known is None:
            return  # nothing changes, or the node is new; for another disk: `check_not_alive`
        asked = OwnRegistrationHeader(
            command.incarnation,
            _sorted(command.addresses),
            command.labels.region,
            command.labels.zone,
            command.labels.host,
            command.level_min,
            command.level_max,
            command.name,
        )
        if await self._consents(known, asked) is False:
            raise AddressDisputed(
                f"node {known.id} answers at {written(known.addresses)} and has not asked to be "
                f"registered at {_shown(command.addresses, command.name)}: only the node itself "
                "changes its registration while it is there"
            )

    def consents(self, asked: OwnRegistrationHeader) -> OwnRegistrationAnswer:
        """Return whether this node asks to be registered like this; log a warning if not."""
        node, config = self._node, self._node.config
        is_own = node.is_identified and asked == OwnRegistrationHeader(
            node.folder_identity.incarnation,
            _sorted(node.addresses.items()),
            config.region,
            config.zone,
            config.host,
            config.release.level_min,
            config.release.level_max,
            self.own_name if asked.name else "",
        )
        if not is_own:
            self._warn(asked)
        return OwnRegistrationAnswer(is_own)

    def changed(self) -> None:
        """Compare, after a change of the catalog, what it says of this node with what is true."""
        node, machine = self._node, self._machine
        known = None if machine is None else machine.nodes.by_id.get(node.id)
        if known is None or known.incarnation != node.folder_identity.incarnation:
            return
        before, self._seen = self._seen, _sorted(known.addresses)
        if not node.catalog.is_current:
            return
        if before is not None and before != self._seen:
            self._moved(before)
        if self.own_name and not known.name and not self._is_binding:
            # The level was raised: from here on this number is bound.
            self._is_binding = True
            node.catalog.introduce_again()

    def _moved(self, before: Addresses) -> None:
        node, after = self._node, self._seen or ()
        is_own = after == _sorted(node.addresses.items())
        _log.warning(
            "node %d is registered at %s now, and was at %s before%s",
            node.id,
            written(after),
            written(before),
            "" if is_own else "; this process did not ask for that, and registers again",
        )
        if self.on_moved is not None:
            self.on_moved(node.id, before, after)
        if not is_own:
            node.catalog.introduce_again()

    def _warn(self, asked: OwnRegistrationHeader) -> None:
        now = asyncio.get_running_loop().time()
        if self._warned_at is not None and now - self._warned_at < WARN_S:
            return
        self._warned_at = now
        node = self._node
        name = f"node {node.id}" if node.is_identified else "a node without data"
        _log.warning(
            "%s was to be registered at %s, and is at %s: refused",
            name,
            _shown(asked.addresses, asked.name),
            written(node.addresses.items()),
        )

    # --- asking -----------------------------------------------------------------------------

    async def _consents(self, known: Member, asked: OwnRegistrationHeader) -> bool | None:
        """Return whether the node confirms a registration; None if it does not answer."""
        if known.id == self._node.id:
            return self.consents(asked).is_own
        home = asyncio.create_task(self._answer_at_home(known, asked))
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                linked = self._node.peers.connection(known.id)
                if linked is not None and linked.peer.hello.incarnation == known.incarnation:
                    answer = await _answer(linked, asked)
                    if answer is not None:
                        return answer
                return await home
        except TimeoutError:
            # Its link may be dead, and the host at its address gone: both were asked at once.
            return home.result() if home.done() and not home.cancelled() else None
        finally:
            home.cancel()
            await asyncio.gather(home, return_exceptions=True)

    async def _answer_at_home(self, known: Member, asked: OwnRegistrationHeader) -> bool | None:
        where = dialled(dict(known.addresses).get("wire", ""))
        if where is None or str(where) == self._node.addresses["wire"]:
            return None
        try:
            connection = await dial(
                host=where.host,
                port=where.port,
                # As a peer it is told the incarnation, which the next owner of an address lacks.
                hello=self._node.greeting(Role.PEER),
                expected_node=known.id,
                timeout_s=ANSWER_S_MAX,
                tls=self.dialling(known.id),
            )
        except AngariumError:
            return None  # the address is free, or has another owner
        try:
            is_it = connection.peer.hello.incarnation == known.incarnation
            return await _answer(connection, asked) if is_it else None
        finally:
            connection.fail(Unreachable("it was only asked whether it has said so"))

    # --- small parts ------------------------------------------------------------------------

    @property
    def _machine(self) -> CatalogMachine | None:
        replica = self._node.host.catalog if self._node.is_open else None
        return None if replica is None else replica.catalog.machine

    @property
    def _is_on(self) -> bool:
        machine = self._machine
        return machine is not None and machine.nodes.level >= BOUND_NAMES_LEVEL


class BoundDialling:
    """How one node is dialled by TLS: a certificate of another NAME is rejected."""

    def __init__(self, tls: NodeTls, node: NodeId, bound_name: Callable[[NodeId], str]) -> None:
        self._tls = tls
        self._node = node
        self._bound_name = bound_name

    def context(self) -> ssl.SSLContext:
        """Return the context for the next connection."""
        return self._tls.context()

    def server_name(self, host: str) -> str:
        """Return the name to ask for at `host`."""
        return self._tls.server_name(host)

    def check(self, shown: Certificate) -> None:
        """Raise `UntrustedNode` unless the node has answered."""
        self._tls.check(shown)
        check_bound(self._node, self._bound_name(self._node), shown)


def check_bound(node: NodeId, name: str, shown: Certificate | None) -> None:
    """Raise `UntrustedNode` if `shown` is of another NAME than a number is bound to."""
    said = None if shown is None else shown.node_name
    if name and (said is None or said.name != name):
        raise UntrustedNode(
            f"node {node} is bound to the NAME {name}, and the certificate shown is that of "
            f"{'no node' if said is None else said.name}; give the node its own certificate, or a "
            "join token with the new one"
        )


def written(addresses: Iterable[tuple[str, str]]) -> str:
    """Return addresses as the log and audit records have them."""
    return " ".join(f"{door}={where}" for door, where in sorted(addresses))


def _shown(addresses: Addresses, name: str) -> str:
    return f"{written(addresses)} as {name}" if name else written(addresses)


async def _answer(connection: Connection, asked: OwnRegistrationHeader) -> bool | None:
    try:
        frame = await connection.request(Operation.OWN_REGISTRATION, asked, timeout_s=ANSWER_S_MAX)
        return frame.read(OwnRegistrationAnswer).is_own
    except (Unreachable, OutcomeUnknown):
        return None
    except AngariumError:
        return False  # it is there, and does not consent


def _sorted(addresses: Iterable[tuple[str, str]]) -> Addresses:
    return tuple(sorted(addresses))
