"""Strangers at a secure cluster of real processes: each is refused, and nothing else happens.

What is looked at afterwards is the same for all: the cluster has the nodes, topics, users and
leader that it had, its memory is what it was, and each line of its logs is one line.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.certificates import CLUSTER, Folder, authority

from angarium.client import Client, ClientSettings
from angarium.errors import AngariumError
from angarium.ids import CATALOG_GROUP, Incarnation, Term, replica_id
from angarium.node.joining import cluster_name
from angarium.raft.messages import Message, MessageKind
from angarium.security.tls import ClientTls, NodeTls
from angarium.testing.cluster import eventually
from angarium.testing.cluster.forgery import who_is
from angarium.testing.reserved_port import HOST
from angarium.wire import Handlers, Hello, Role, Server, dial
from angarium.wire.handshake import SuccessorHello
from angarium.wire.operations import JoinHeader, Operation
from angarium.wire.raft_codec import RAFT_OPERATION, packed_messages

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.cluster.running import ClusterOf, Run

    from angarium.log.folder_identity import FolderIdentity
    from angarium.security.tls import Dialling
    from angarium.testing.cluster import NodeProcess, ProcessCluster

REFUSED_S_MAX = 30.0
"""A second is promised; a busy machine is slower than its promise."""

HALF_HANDSHAKES = 700
"""More than a listener has under way at a time."""

SETTLED_S_MAX = 60.0
"""How long a cluster may take until nothing changes any more, on a busy machine."""
UNCHANGED = 3
"""Looks in a row that show the same: then nothing is under way."""
MEMORY_MAX = 48 << 20
"""How much more memory a node may have after all of it."""

NASTY = 'x\n{"level":"critical"}\x1b[31m\u202e\0'
"""What would be a line of its own in a log that escapes nothing."""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.pair("node", uri=f"angarium://{CLUSTER}/node/any")
    return made


class Scene:
    """A cluster, and how it was before anybody came."""

    def __init__(self, cluster: ProcessCluster, folder: Folder) -> None:
        self.cluster = cluster
        self.folder = folder
        self.slowest_s = 0.0
        self.before: object = None
        self.memory: dict[str, int] = {}
        self.lines: dict[str, int] = {}

    @property
    def node(self) -> NodeProcess:
        return self.cluster.nodes[self.cluster.ids[0]]

    def client(self) -> Client:
        settings = ClientSettings(tls=self.folder.options(), request_timeout_s=60.0)
        addresses = [one.address for one in self.cluster.nodes.values()]
        return Client(*addresses, settings=settings, login=self.cluster.login)

    async def state(self) -> object:
        async with self.client() as client:
            status = await client.cluster_status()
            return (
                [(one.id, one.addresses, one.alive) for one in status.nodes],
                status.catalog_leader,
                status.catalog_index,
                [one.name for one in await client.list_topics()],
                await client.list_users(),
                await client.list_grants(),
                await client.list_join_tokens(),
            )

    async def begin(self) -> None:
        async with self.client() as client:
            await client.create_topic("orders")
        await self.cluster.settled()
        # What somebody's coming and the first topic bring about comes a moment later.
        looks = [await self.state()]
        async with asyncio.timeout(SETTLED_S_MAX):
            while len(looks) < UNCHANGED or any(one != looks[-1] for one in looks[-UNCHANGED:]):
                await asyncio.sleep(0.3)
                looks.append(await self.state())
        self.before = looks[-1]
        for node in self.cluster.nodes.values():
            self.memory[node.name] = node.resident_bytes()
            self.lines[node.name] = len(node.log.read_bytes().splitlines())

    async def end(self, *, lines_max: int) -> None:
        """See that nothing has happened but lines in the log, and few of those."""

        async def is_as_it_was() -> bool:
            return await self.state() == self.before

        # A node that follows may hear last of what was there: but what has changed stays changed.
        await eventually(is_as_it_was, within_s=SETTLED_S_MAX, what=f"it is {self.before}")
        async with self.client() as client:
            await client.publish("orders", b"as ever")
        for node in self.cluster.nodes.values():
            assert node.is_running
            assert node.resident_bytes() < self.memory[node.name] + MEMORY_MAX
            said = node.log.read_text(encoding="utf-8").split("\n")[self.lines[node.name] :]
            new = [json.loads(line) for line in said if line]  # each is a line of our own
            assert not [one for one in new if one["level"] == "critical"], new
            assert len(new) <= lines_max, new

    async def refused(self, work: Any, *codes: str) -> None:
        """See that something is refused in time, and by which code."""
        began = time.monotonic()
        async with asyncio.timeout(REFUSED_S_MAX):
            with pytest.raises(AngariumError) as caught:
                await work
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        assert caught.value.code in codes, caught.value


@asynccontextmanager
async def scene(cluster_of: ClusterOf, folder: Folder, nodes: int = 2) -> AsyncIterator[Scene]:
    sections = {"tls": {"client_certificates": "optional"}}
    async with cluster_of(
        nodes, tls=folder.path, users=True, doors=True, sections=sections
    ) as cluster:
        made = Scene(cluster, folder)
        await made.begin()
        yield made
        print(f"the slowest refusal took {made.slowest_s * 1_000:.0f} ms")


# --- TLS --------------------------------------------------------------------------------------


def ports_of(node: NodeProcess) -> dict[str, int]:
    assert node.grpc_port is not None
    assert node.http_port is not None
    return {
        "wire": node.port.number,
        "grpc": node.grpc_port.number,
        "http": node.http_port.number,
    }


async def is_cut(port: int, begins: bytes, context: ssl.SSLContext | None = None) -> float:
    """Return how long it took until somebody who begins like that was hung up on."""
    began = time.monotonic()
    async with asyncio.timeout(REFUSED_S_MAX):
        with suppress(OSError):  # an SSLError is one
            reader, writer = await asyncio.open_connection(
                HOST, port, ssl=context, server_hostname=None if context is None else "localhost"
            )
            try:
                writer.write(begins)
                assert len(await reader.read()) < 512
            finally:
                writer.close()
    return time.monotonic() - began


def context_of(folder: Folder, own: tuple[Path, Path] | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder.ca))
    if own is not None:
        context.load_cert_chain(*own)
    return context


def old_version(folder: Folder) -> ssl.SSLContext:
    context = context_of(folder)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    return context


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_whatever_is_wrong_with_the_tls_of_a_stranger_nothing_else_happens(
    run: Run, cluster_of: ClusterOf, folder: Folder
) -> None:
    async def scenario() -> None:
        async with scene(cluster_of, folder, nodes=1) as it:
            eve = folder.client("eve", whose=authority("another authority"))
            expired = folder.expired("expired")
            request = b"GET /v1/topics HTTP/1.1\r\nHost: localhost\r\n\r\n"
            for port in ports_of(it.node).values():
                cut = [
                    await is_cut(port, request),
                    await is_cut(port, b"\xff" * 200_000),
                    await is_cut(port, b"\0" * 100),
                    await is_cut(port, NASTY.encode(), old_version(folder)),
                    await is_cut(port, request, context_of(folder, eve)),
                    await is_cut(port, request, context_of(folder, expired)),
                ]
                it.slowest_s = max(it.slowest_s, *cut)
            # Who speaks TLS, and not to whom: a client believes neither another name, nor another
            # authority, nor a common name; and says so in its own words.
            for options in (
                folder.options(server_name="elsewhere.example.org"),
                Folder(_beside(folder), authority("another authority")).options(),
            ):
                hello = Hello(role=Role.CLIENT)
                port = it.node.port.number
                tls = ClientTls(options)
                await it.refused(
                    dial(host=HOST, port=port, hello=hello, tls=tls), "CERTIFICATE_REFUSED"
                )
            plain = dial(host=HOST, port=it.node.port.number, hello=Hello(role=Role.CLIENT))
            await it.refused(plain, "TLS_MISMATCH")
            await it.end(lines_max=20)

    run(scenario())


def _beside(folder: Folder) -> Path:
    made = folder.path / "beside"
    made.mkdir()
    return made


def test_half_handshakes_by_the_hundred_keep_nobody_out_for_long(
    run: Run, cluster_of: ClusterOf, folder: Folder
) -> None:
    async def scenario() -> None:
        async with scene(cluster_of, folder, nodes=1) as it:
            # The second time costs no more: what a listener has under way at a time is bounded.
            memory = []
            for _ in range(2):
                for port in ports_of(it.node).values():
                    await _besieged(port, folder)
                memory.append(it.node.resident_bytes())
            print(
                f"memory in MB: {it.memory[it.node.name] >> 20}, then",
                [one >> 20 for one in memory],
            )
            assert memory[1] < memory[0] + MEMORY_MAX
            it.memory[it.node.name] = memory[0]
            await it.end(lines_max=40)

    run(scenario())


async def _besieged(port: int, folder: Folder) -> None:
    """Begin more handshakes than a listener takes, end none, and see somebody else come in."""
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    half: list[socket.socket] = []
    try:
        for number in range(HALF_HANDSHAKES):
            half.append(socket.create_connection((HOST, port), timeout=30))
            with suppress(OSError):
                half[-1].sendall(hello[: number % (len(hello) + 1)])
        began = time.monotonic()
        while True:
            try:
                async with asyncio.timeout(REFUSED_S_MAX):
                    _, writer = await asyncio.open_connection(
                        HOST, port, ssl=context_of(folder), server_hostname="localhost"
                    )
                writer.close()
                return
            except OSError:  # the listener has its hands full, until they are cut
                assert time.monotonic() < began + 60.0
                await asyncio.sleep(0.2)
    finally:
        for one in half:
            one.close()


# --- those who say that they are nodes --------------------------------------------------------


def test_a_client_that_says_it_is_a_node_is_refused_and_changes_nothing(
    run: Run, cluster_of: ClusterOf, folder: Folder
) -> None:
    async def scenario() -> None:
        async with scene(cluster_of, folder) as it:
            first, second = (it.cluster.nodes[one] for one in it.cluster.ids)
            known = who_is(second)
            port = first.port.number
            alice = ClientTls(folder.options(folder.client("alice")))
            nobody = ClientTls(folder.options())
            stolen = NodeTls(folder.files(folder.node("stolen")))
            another = folder.node("another", cluster="another")
            for tls in (nobody, alice, NodeTls(folder.files(another))):
                for role in (Role.PEER, Role.PEER_BULK):
                    forged = _greeting(known.node_id, known.incarnation, cluster_name(known), role)
                    await it.refused(
                        dial(host=HOST, port=port, hello=forged, tls=tls),
                        "UNTRUSTED_NODE",
                        "CERTIFICATE_REFUSED",
                    )
            # With a node's own certificate, and not of a node that there is.
            for node, incarnation in ((77, 5), (int(known.node_id), 5), (0, 0), (1 << 40, 1 << 60)):
                forged = _greeting(node, incarnation, cluster_name(known), Role.PEER)
                await it.refused(
                    dial(host=HOST, port=port, hello=forged, tls=stolen),
                    *("NOT_REGISTERED", "NODE_REMOVED", "HANDSHAKE_REFUSED", "NODE_IS_ALIVE"),
                )
            elsewhere = _greeting(1, 5, "f" * 32, Role.PEER)
            await it.refused(
                dial(host=HOST, port=port, hello=elsewhere, tls=stolen),
                *("WRONG_CLUSTER", "NOT_REGISTERED", "HANDSHAKE_REFUSED"),
            )
            await _says_that_the_cluster_went_on(it, alice, known)
            # As a client, which then sends what nodes send, and asks for a place.
            for tls in (nobody, alice, stolen):
                await it.refused(_joins(port, tls, None), "UNTRUSTED_NODE", "JOIN_REFUSED")
                taken = int(known.node_id)
                await it.refused(_joins(port, tls, taken), "UNTRUSTED_NODE", "JOIN_REFUSED")
                began = time.monotonic()
                await _forges(port, tls, first)
                it.slowest_s = max(it.slowest_s, time.monotonic() - began)
            await it.end(lines_max=20)

    run(scenario())


def _greeting(node: int, incarnation: int, cluster: str, role: Role) -> Hello:
    return Hello(
        role=role,
        cluster=cluster,
        node=node,
        incarnation=incarnation,
        process=1,
        software=NASTY,
        address=f"{HOST}:1",
        features={"machine": 99},
    )


async def _says_that_the_cluster_went_on(it: Scene, tls: Dialling, known: FolderIdentity) -> None:
    """Have a node look where somebody listens who has a client's certificate, and says so again."""
    dialled = asyncio.Event()

    def context() -> ssl.SSLContext:
        dialled.set()
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        shown = it.folder.client("alice")
        made.load_cert_chain(shown.certificate, shown.key)
        return made

    def forged(address: str = "") -> SuccessorHello:
        return SuccessorHello(
            role=Role.PEER,
            cluster="e" * 32,
            node=9,
            incarnation=9,
            address=address or msgspec.UNSET,
            predecessors={cluster_name(known): ""},
        )

    server = await Server.listen(
        host=HOST, port=0, greeting=forged, welcome=lambda _: Handlers(), tls=context
    )
    try:
        hello = forged(f"{HOST}:{server.port}")
        port = it.node.port.number
        await it.refused(dial(host=HOST, port=port, hello=hello, tls=tls), "CLUSTER_SUCCEEDED")
        async with asyncio.timeout(REFUSED_S_MAX):
            await dialled.wait()
    finally:
        await server.drain(timeout_s=2.0)
    assert it.node.is_running
    assert not (it.node.data / "succeeded").exists()


async def _joins(port: int, tls: Dialling, node: int | None) -> None:
    connection = await dial(host=HOST, port=port, hello=Hello(role=Role.CLIENT), tls=tls)
    try:
        named: Any = node
        wish = JoinHeader(
            named, Incarnation(7), (("wire", f"{HOST}:1"),), NASTY, NASTY, NASTY, 1, 99, NASTY
        )
        await connection.request(Operation.JOIN, wish, timeout_s=REFUSED_S_MAX)
    finally:
        await connection.close(timeout_s=1.0)


async def _forges(port: int, tls: Dialling, there: NodeProcess) -> None:
    """Send Raft messages of the last term there is over a client's connection, until it is cut."""
    connection = await dial(host=HOST, port=port, hello=Hello(role=Role.CLIENT), tls=tls)
    known = who_is(there)
    to = replica_id(known.node_id, known.incarnation)
    sender = replica_id(known.node_id, Incarnation(9))
    lie = Message(kind=MessageKind.HEARTBEAT, to=to, sender=sender, term=Term((1 << 64) - 1))
    async with asyncio.timeout(REFUSED_S_MAX):
        for frame in packed_messages([(CATALOG_GROUP, lie)], frame_bytes_max=1 << 20):
            connection.send(RAFT_OPERATION, frame.header, frame.payload)
        while connection.is_open:  # noqa: ASYNC110  (it is cut from the other side)
            await asyncio.sleep(0.005)
