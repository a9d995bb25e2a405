"""A cluster of node processes in a folder of its own."""

from __future__ import annotations

import asyncio
import string
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final, Self

from angarium.client.login import Login, LoginOptions
from angarium.errors import AngariumError
from angarium.security import Secret
from angarium.security.tls import TlsOptions, client_tls
from angarium.testing.cluster.contact import ANSWER_SECONDS_MAX, Contact
from angarium.testing.cluster.network import Network
from angarium.testing.cluster.processes import ANGARIUM, NodeProcess
from angarium.testing.cluster.waiting import eventually
from angarium.testing.cluster.wan import WanNetwork
from angarium.testing.reserved_port import HOST

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from angarium.api import ClusterStatus, PartitionInfo, TopicConfig, TopicInfo
    from angarium.ids import NodeId
    from angarium.security.tls import ClientTls

READY_SECONDS_MAX: Final = 180.0
"""How long a node may take from its start to its first answer, on a busy machine."""

ADMIN: Final = LoginOptions(user="admin", password=Secret("a password of the tests"))
"""Who may do everything, where a cluster has users."""

CATALOG_VOTERS: Final = 3
"""How many nodes vote on the catalog, where there are as many."""


class ProcessCluster:
    """Nodes named a, b, c, …; the cluster gives them the ids by which they are found here.

    Use it as an async context manager: when it ends, however it ends, no process is left.
    """

    def __init__(
        self,
        folder: Path,
        *,
        nodes: int = 3,
        program: Sequence[str] = ANGARIUM,
        programs: Mapping[str, Sequence[str]] | None = None,
        settings: Mapping[str, int | str] | None = None,
        parted: bool = False,
        data: Mapping[str, Path] | None = None,
        tls: Path | None = None,
        doors: bool = False,
        users: bool = False,
        sections: Mapping[str, Mapping[str, int | str]] | None = None,
        regions: Sequence[str] = (),
        discovery: Callable[[NodeProcess], dict[str, int | str]] | None = None,
        network: WanNetwork | None = None,
        evens_out: bool = False,
    ) -> None:
        """Prepare `nodes` nodes; `parted` puts a network between them that can be cut.

        `data` may name, by a node's name, another folder for its data, `programs` another program.
        `tls` is a folder with ca.crt, node.crt and node.key, which all nodes show that have no such
        folder of their own name in it. `doors` opens those for gRPC and HTTP. With `users` everyone
        has to prove who they are: the administrator is `ADMIN`. `sections` are further settings, by
        their section; `discovery` returns the section `[discovery]` of each node. `regions` says
        where the nodes are, in their order; a `network` of regions puts delays between them.
        `evens_out` leaves it to the nodes when they even out by themselves; releases from before
        that do not know the setting.
        """
        self.nodes: dict[NodeId, NodeProcess] = {}
        """Every member that was started here, by its id."""
        self.network: Network | None = network or (Network() if parted else None)
        self._folder = folder
        self._count = nodes
        self._program = tuple(program)
        self._programs = dict(programs or {})
        # Tests say themselves where replicas go: nothing is to be evened out behind their backs.
        calm = {} if evens_out else {"rebalance_after_s": 86_400}
        self._settings = {**calm, **(settings or {})}
        self._data = dict(data or {})
        self._tls = tls
        self._doors = doors
        self._users = users
        self._sections = {name: dict(one) for name, one in (sections or {}).items()}
        self.client_certificate: tuple[Path, Path] | None = None
        """What clients show, where nodes ask for it: a certificate and its key."""
        self.login = ADMIN.login() if users else Login()
        """Who may do everything."""
        self._discovery = discovery
        self._regions = tuple(regions) or (() if network is None else network.regions)
        self._made: list[NodeProcess] = []
        self._contacts: dict[str, Contact] = {}
        self._running = AsyncExitStack()

    async def __aenter__(self) -> Self:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._prepare_users()
            first = await self._make()
            first.start(form=True)
            await self._know(first)
            await eventually(self._formed, within_s=READY_SECONDS_MAX, what="the cluster is formed")
            others = [await self._make() for _ in range(self._count - 1)]
            for node in others:
                await self.invite(node)
                node.start(join=[first.address])
            for node in others:
                await self._know(node)
            await self.settled()
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def _end(self) -> None:
        for node in self._made:
            node.end()
        for contact in self._contacts.values():
            contact.cut()
        if self.network is not None:
            await self.network.close()
        await self._running.aclose()

    @property
    def client_tls(self) -> ClientTls | None:
        """How clients dial its nodes."""
        if self._tls is None:
            return None
        cert, key = map(str, self.client_certificate or ("", ""))
        return client_tls(TlsOptions(ca=str(self._tls / "ca.crt"), cert=cert, key=key))

    # --- its nodes --------------------------------------------------------------------------

    @property
    def ids(self) -> list[NodeId]:
        """The ids of all nodes that were started here, running or not."""
        return sorted(self.nodes)

    @property
    def running(self) -> list[NodeId]:
        """The ids of those that run; a paused one does."""
        return [one for one in self.ids if self.nodes[one].is_running]

    def contact(self, node: NodeId) -> Contact:
        """Return the way to one node."""
        return self._contact_to(self.nodes[node])

    async def add(self, *, data: Path | None = None) -> NodeId:
        """Start one more node and wait until it is a member."""
        node = await self._make(data)
        await self.invite(node)
        node.start(join=self._addresses())
        return await self._know(node)

    async def invite(self, node: NodeProcess) -> None:
        """Give a node without data what it needs to be let in."""
        if self._users:
            node.join_token = await (await self.someone()).join_token()

    def _prepare_users(self) -> None:
        if not self._users:
            return
        password = self._folder / "password"
        password.write_text(ADMIN.password.reveal(), encoding="utf-8")
        security = self._sections.setdefault("security", {})
        security |= {"authentication": "required", "admin_password_file": str(password)}
        if self._tls is None:
            security["trust_peers"] = True

    def prepare(self) -> NodeProcess:
        """Return a node that has not been started and is no member."""
        return self._prepared(None, None)

    def restart(self, node: NodeId) -> None:
        """Start a node again that was killed or stopped."""
        process = self.nodes[node]
        process.start(join=[one for one in self._addresses() if one != process.address])

    async def move_all(self) -> None:
        """Stop every node and start all again, each at another port."""
        await self.stop_all()
        nodes = list(self.nodes.values())
        for node in nodes:
            self._move(node)
        for node in nodes:
            node.start(join=[one.address for one in nodes if one is not node])

    async def stop_all(self) -> None:
        """Stop every node in good order."""
        nodes = list(self.nodes.values())
        for node in nodes:
            node.terminate()
        for node in nodes:
            await asyncio.to_thread(node.wait)

    def rotate_ports(self) -> None:
        """Give every node the port that another one had; none of them runs."""
        nodes = list(self.nodes.values())
        ports = [node.port for node in nodes]
        for node, port in zip(nodes, [*ports[1:], ports[0]], strict=True):
            assert not node.is_running, f"{node.name} runs"
            self._contacts.pop(node.name).cut()
            node.port = port

    def move(self, node: NodeId) -> None:
        """Give a node that does not run another port."""
        self._move(self.nodes[node])

    def _move(self, node: NodeProcess) -> None:
        self._contacts.pop(node.name).cut()
        node.move()

    async def unready(self) -> list[str]:
        """Return what the nodes say against themselves, and who does not answer."""
        said = []
        for node in self.ids:
            try:
                status = await self.contact(node).status(timeout_s=ANSWER_SECONDS_MAX)
            except AngariumError as error:
                said.append(f"node {node}: {error}")
                continue
            mine = next((one for one in status.nodes if one.id == node), None)
            said += [f"node {node}: {one}" for one in (mine.unready if mine else ("not known",))]
            said += [
                f"node {node} does not hear node {one.id}" for one in status.nodes if not one.alive
            ]
            said += [f"node {node} knows no leader"] if status.catalog_leader is None else []
        return said

    async def back(self, node: NodeId, *, within_s: float = READY_SECONDS_MAX) -> None:
        """Wait until a restarted node answers and knows the catalog's leader."""

        async def answers() -> bool:
            self._check_alive(self.nodes[node])
            return (
                await self.contact(node).status(timeout_s=ANSWER_SECONDS_MAX)
            ).catalog_leader is not None

        await eventually(answers, within_s=within_s, what=f"node {node} is back")

    async def ready(self, node: NodeId, *, within_s: float = READY_SECONDS_MAX) -> None:
        """Wait until a node says of itself that it is ready."""

        async def says_so() -> bool:
            self._check_alive(self.nodes[node])
            status = await self.contact(node).status(timeout_s=ANSWER_SECONDS_MAX)
            return any(one.id == node and not one.unready for one in status.nodes)

        await eventually(says_so, within_s=within_s, what=f"node {node} is ready")

    def report(self) -> str:
        """Return the last words of every node, for a test that failed."""
        parts = [
            f"--- {node.name} (id {node.id}, status {node.exit_status})\n{node.last_words()}"
            for node in self._made
        ]
        return "\n".join(parts)

    # --- what it looks like -----------------------------------------------------------------

    async def someone(self) -> Contact:
        """Return a contact to a node that answers."""

        async def answering() -> Contact | None:
            for node in self.running:
                try:
                    await self.contact(node).status(timeout_s=ANSWER_SECONDS_MAX)
                except AngariumError:
                    continue
                return self.contact(node)
            return None

        contact = await eventually(answering, within_s=READY_SECONDS_MAX, what="a node answers")
        assert contact is not None
        return contact

    async def create_topic(
        self, name: str, *, partitions: int = 1, config: TopicConfig | None = None
    ) -> TopicInfo:
        """Make a topic and wait until all its replicas are in sync."""
        await (await self.someone()).create_topic(name, partitions=partitions, config=config)
        await self.settled(topics=[name])
        return await (await self.someone()).describe(name)

    async def leader(
        self, topic: str, partition: int = 0, *, within_s: float = READY_SECONDS_MAX
    ) -> NodeId:
        """Return who leads a partition and says so itself."""
        info = await eventually(
            lambda: self._led(topic, partition), within_s=within_s, what=f"{topic} has a leader"
        )
        assert info is not None
        assert info.leader is not None
        return info.leader

    async def catalog_leader(self) -> NodeId:
        """Return who leads the catalog and says so itself."""

        async def led() -> NodeId | None:
            for node in self.running:
                try:
                    status = await self.contact(node).status(timeout_s=ANSWER_SECONDS_MAX)
                except AngariumError:
                    continue
                if status.catalog_leader == node:
                    return node
            return None

        leader = await eventually(led, what="the catalog has a leader")
        assert leader is not None
        return leader

    async def heard(self) -> None:
        """Wait until every running node knows of what the catalog was told before."""
        known = max([(await self.contact(one).status()).catalog_index for one in self.running])

        async def all_know() -> bool:
            statuses = [await self.contact(one).status() for one in self.running]
            return all(status.catalog_index >= known for status in statuses)

        await eventually(all_know, within_s=READY_SECONDS_MAX, what="all nodes have heard of it")

    async def settled(
        self, *, topics: Sequence[str] | None = None, within_s: float = READY_SECONDS_MAX
    ) -> None:
        """Wait until every running node is a member that all see, and every replica is in sync.

        Only then may another node be taken down without taking a majority of some group.
        """
        try:
            await self._settled(topics, within_s)
        except TimeoutError as late:
            raise TimeoutError(f"{late}\n{await self._views()}") from late

    async def _settled(self, topics: Sequence[str] | None, within_s: float) -> None:
        await eventually(self._all_see_all, within_s=within_s, what="all nodes see all nodes")
        await eventually(
            self._catalog_in_sync, within_s=within_s, what="all voters of the catalog in sync"
        )
        if topics is None:
            known = await (await self.someone()).topics()
            topics = [topic.name for topic in known]
        for topic in topics:
            await self._topic_settled(topic, within_s)

    async def _views(self) -> str:
        """Return what every running node says about the cluster, for a person."""
        lines = []
        for node in self.running:
            try:
                status = await self.contact(node).status(timeout_s=ANSWER_SECONDS_MAX)
                topics = await self.contact(node).topics(timeout_s=ANSWER_SECONDS_MAX)
            except AngariumError as error:
                lines.append(f"node {node} does not answer: {error}")
                continue
            alive = [int(one.id) for one in status.nodes if one.alive]
            lines.append(
                f"node {node} sees {alive}, catalog led by {status.catalog_leader} at "
                f"{status.catalog_index}, in sync {status.catalog_in_sync}"
            )
            lines += [
                f"  {topic.name} {partition}" for topic in topics for partition in topic.partitions
            ]
        return "\n".join(lines)

    async def _topic_settled(self, topic: str, within_s: float) -> None:
        info = await (await self.someone()).describe(topic)
        for partition in info.partitions:

            async def in_sync(number: int = partition.number) -> bool:
                led = await self._led(topic, number)
                if led is None:
                    return False
                witness = () if led.witness is None else (led.witness,)
                return led.in_sync == tuple(sorted((*led.replicas, *witness)))

            what = f"every replica of {topic} partition {partition.number} in sync"
            await eventually(in_sync, within_s=within_s, what=what)

    async def _led(self, topic: str, partition: int) -> PartitionInfo | None:
        """Return a partition as its leader sees it; None while nobody leads it."""
        for node in self.running:
            try:
                seen = await self.contact(node).describe(topic, timeout_s=ANSWER_SECONDS_MAX)
            except AngariumError:
                continue
            info = seen.partitions[partition]
            if info.leader == node and info.in_sync is not None:
                return info
        return None

    async def _formed(self) -> bool:
        """Tell whether the first node counts itself: before that it lets nobody in."""
        (first,) = self.running
        status = await self.contact(first).status(timeout_s=ANSWER_SECONDS_MAX)
        return status.catalog_leader == first and bool(status.nodes)

    async def _all_see_all(self) -> bool:
        statuses = await asyncio.gather(
            *(self.contact(one).status(timeout_s=ANSWER_SECONDS_MAX) for one in self.running)
        )
        return all(self._sees_all(status) for status in statuses)

    def _sees_all(self, status: ClusterStatus) -> bool:
        alive = {one.id for one in status.nodes if one.alive}
        return alive >= set(self.running) and status.catalog_leader is not None

    async def _catalog_in_sync(self) -> bool:
        leader = await self.catalog_leader()
        status = await self.contact(leader).status(timeout_s=ANSWER_SECONDS_MAX)
        voters = min(CATALOG_VOTERS, len(status.nodes))
        voters -= 1 - voters % 2
        return len(status.catalog_in_sync or ()) >= voters

    # --- small parts ------------------------------------------------------------------------

    async def _make(self, data: Path | None = None) -> NodeProcess:
        if self.network is None:
            return self._prepared(data, None)
        gate = await self.network.open_gate()
        node = self._prepared(data, gate.port)
        gate.lead_to(node.port.number)
        return node

    def _prepared(self, data: Path | None, advertised_port: int | None) -> NodeProcess:
        turn, letter = divmod(len(self._made), len(string.ascii_lowercase))
        name = string.ascii_lowercase[letter] + (str(turn + 1) if turn else "")
        node = NodeProcess(
            name=name,
            folder=self._folder,
            data=data or self._data.get(name),
            program=self._programs.get(name, self._program),
            settings=self._settings,
            advertised_port=advertised_port,
            tls=self._tls_of(name),
            doors=self._doors,
            sections=self._sections,
        )
        if self._discovery is not None:
            node.discovery = self._discovery(node)
        if self._regions:
            node.region = self._regions[len(self._made) % len(self._regions)]
        self._made.append(node)
        return node

    def _tls_of(self, name: str) -> Path | None:
        if self._tls is not None and (self._tls / name).is_dir():
            return self._tls / name
        return self._tls

    async def _know(self, node: NodeProcess) -> NodeId:
        async def answers() -> NodeId:
            self._check_alive(node)
            return (await self._contact_to(node).status(timeout_s=ANSWER_SECONDS_MAX)).node

        node.id = await eventually(
            answers, within_s=READY_SECONDS_MAX, what=f"{node.name} is a member"
        )
        self.nodes[node.id] = node
        if self.network is not None and node.advertised_port is not None:
            self.network.name_gate(node.advertised_port, node.id)
            if isinstance(self.network, WanNetwork):
                self.network.locate(node.id, node.region)
        return node.id

    def _contact_to(self, node: NodeProcess) -> Contact:
        # Straight to the node, also where the network between the nodes is cut.
        contact = self._contacts.get(node.name)
        if contact is None:
            contact = self._contacts[node.name] = Contact(
                HOST, node.port.number, tls=self.client_tls, login=self.login
            )
        return contact

    def _check_alive(self, node: NodeProcess) -> None:
        if not node.is_running:
            raise RuntimeError(
                f"{node.name} ended with status {node.exit_status}\n{node.last_words()}"
            )

    def _addresses(self) -> list[str]:
        return [self.nodes[one].address for one in self.running]
