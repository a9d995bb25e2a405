"""A real broker inside a test's own process: the same node, service and door, in a folder.

One node is ready a few dozen milliseconds after the imports; several form a cluster in which a
test may stop one and start it again. What a node keeps is as safe here as anywhere, so give it a
folder that is thrown away.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, Self

from angarium.app.seeds import Seeds
from angarium.client.loop_thread import LoopThread
from angarium.doors.wire.door import WireDoor
from angarium.errors import AngariumError
from angarium.ids import CATALOG_GROUP
from angarium.node.config import NodeConfig
from angarium.node.node import Node
from angarium.security.authenticating import Authenticator
from angarium.service.access import Access
from angarium.service.access.accounts import CatalogAccounts
from angarium.service.audit import Audit
from angarium.service.metering import MeteredService
from angarium.testing.reserved_port import ReservedPort

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from angarium.security.tls import NodeTls
    from angarium.service.audit import AuditChoices

READY_SECONDS_MAX: Final = 180.0
"""How long a node may take until it is a member, on a busy machine. Then `TimeoutError`."""

MEMORY_FOLDER: Final = Path("/dev/shm")
"""Where a broker that is thrown away keeps its files if it can: nothing there waits for a disk."""

SWITCH_INTERVAL_S: Final = 0.0005
"""How long a busy thread may keep the others waiting while a broker shares the process. With the
default of 5 ms a test that computes would delay every answer by as much."""

_POLL_S: Final = 0.002


class InProcessBroker:
    """Nodes on free ports of this machine, on the caller's event loop."""

    def __init__(
        self,
        folder: Path,
        *,
        nodes: int = 1,
        tick_ms: int = 50,
        tls: NodeTls | None = None,
        is_authentication_required: bool = False,
        audit: AuditChoices | None = None,
    ) -> None:
        assert nodes > 0, "a broker has at least one node"
        self.nodes: list[Node | None] = []
        """In the order in which they joined; None for one that was stopped."""
        self.services: list[MeteredService | None] = []
        """What each of them serves: the contract, in this process."""
        self.accesses: list[Access | None] = []
        """Who may do what on each of them."""
        self._is_authentication_required = is_authentication_required
        self._audit = audit
        self._ports: list[ReservedPort] = []
        self._folder = folder
        self._count = nodes
        self._tick_ms = tick_ms
        self._tls = tls

    @property
    def addresses(self) -> list[str]:
        """Where the running nodes listen, for `Client(*broker.addresses)`."""
        return [node.addresses["wire"] for node in self.nodes if node is not None]

    async def have_heard_of(self, user: str) -> None:
        """Return when every running node knows a user who was just made through one of them."""
        for access in self.accesses:
            if access is not None:
                await access.calls.describe_user(user)  # it catches up where nobody is found

    async def start(self) -> None:
        """Form a cluster, and return once every node is a member of it."""
        async with asyncio.timeout(READY_SECONDS_MAX):
            for at in range(self._count):
                self.nodes.append(None)
                self.services.append(None)
                self.accesses.append(None)
                self._ports.append(ReservedPort())
                await self._start(at)

    async def stop(self) -> None:
        """Stop all nodes."""
        for at in reversed(range(len(self.nodes))):
            await self.stop_node(at)
        for port in self._ports:
            port.release()

    async def stop_node(self, at: int) -> None:
        """Stop one node in good order; what it keeps stays in its folder."""
        node, self.nodes[at] = self.nodes[at], None
        access, self.accesses[at] = self.accesses[at], None
        self.services[at] = None
        if access is not None and access.audit is not None:
            await access.audit.close()
        if node is not None:
            await node.stop()

    async def start_node(self, at: int) -> None:
        """Start a node again that was stopped, at the port that it had."""
        async with asyncio.timeout(READY_SECONDS_MAX):
            await self._start(at)

    async def _start(self, at: int) -> None:
        others = tuple(self.addresses)
        config = NodeConfig(
            data_directory=self._folder / f"node-{at + 1}",
            wire_port=self._ports[at].number,
            tick_ms=self._tick_ms,
            form=not others,
            join=others,
            tls=self._tls,
        )
        while True:
            node = Node(config)
            service = MeteredService(node)
            audit = None if self._audit is None else Audit(service, self._audit)
            access = Access(service, is_required=self._is_authentication_required, audit=audit)
            accounts = CatalogAccounts(node.catalog)
            authenticator = Authenticator(accounts, anonymous=access.anonymous)
            if audit is not None:
                authenticator.on_failure = audit.login_failed
                service.cluster.on_join = audit.joined
                node.admission.on_refusal = audit.turned_away
                node.bindings.on_moved = audit.moved
            node.welcome = WireDoor(node, service, access, authenticator).welcome
            node.background.append(Seeds(node).run)
            try:
                await node.start()
            except AngariumError as error:
                await node.stop()
                if not error.retriable:
                    raise
                await asyncio.sleep(_POLL_S)
                continue
            break
        self.nodes[at], self.services[at], self.accesses[at] = node, service, access
        while not _is_member(node):
            if node.failure is not None:
                raise node.failure
            await asyncio.sleep(_POLL_S)


class BrokerThread:
    """A broker in a thread of its own, for programs without an event loop. Use it with `with`."""

    def __init__(self, *, nodes: int = 1) -> None:
        self._nodes = nodes

    @property
    def addresses(self) -> list[str]:
        """Where it listens, for `SyncClient(*broker.addresses)`."""
        return self._broker.addresses

    def __enter__(self) -> Self:
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(min(self._interval, SWITCH_INTERVAL_S))
        is_there = os.access(MEMORY_FOLDER, os.W_OK)
        self._folder = TemporaryDirectory(
            prefix="angarium-", dir=MEMORY_FOLDER if is_there else None
        )
        self._thread = LoopThread("angarium-broker")
        self._broker = InProcessBroker(Path(self._folder.name), nodes=self._nodes)
        try:
            self._thread.call(self._broker.start())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._thread.call(self._broker.stop())
        finally:
            self._thread.stop()
            self._folder.cleanup()
            sys.setswitchinterval(self._interval)


@asynccontextmanager
async def in_process_broker(
    folder: Path,
    *,
    nodes: int = 1,
    tick_ms: int = 50,
    is_authentication_required: bool = False,
    audit: AuditChoices | None = None,
) -> AsyncIterator[InProcessBroker]:
    """Start a broker in `folder` and stop it afterwards."""
    broker = InProcessBroker(
        folder,
        nodes=nodes,
        tick_ms=tick_ms,
        is_authentication_required=is_authentication_required,
        audit=audit,
    )
    try:
        await broker.start()
        yield broker
    finally:
        await broker.stop()


def _is_member(node: Node) -> bool:
    """Tell whether a node knows who leads the catalog and finds itself in it."""
    return node.leader_of(CATALOG_GROUP) is not None and node.is_member
