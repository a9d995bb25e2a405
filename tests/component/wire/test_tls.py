"""The wire over TLS: who is believed, who is refused and how they are told."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.certificates import CLUSTER, Folder, authority
from tests.component.wire.running import CLIENT, LOCALHOST, NODE
from tests.on_a_loop import eventually

from angarium.errors import WireError
from angarium.security.tls import ClientCertificates, ClientTls, Door, UntrustedNode
from angarium.security.tls.contexts import listener_context
from angarium.wire import Handlers, Role, Server, WireLimits, dial
from angarium.wire.errors import CertificateRefused, ClusterSucceeded, TlsMismatch
from angarium.wire.handshake import SuccessorHello
from angarium.wire.listening import TlsListener

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.component.wire.running import Runner

    from angarium.security.tls import Certificate, Dialling, NodeTls
    from angarium.wire import Connection, Hello, Request

OPERATION = 7


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


class Listened:
    """A wire port, and what it saw."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.seen: list[tuple[Certificate | None, bool]] = []
        """What each who came in has shown, and whether it is a node's."""


@asynccontextmanager
async def listening(
    tls: NodeTls | None,
    *,
    context: Callable[[], ssl.SSLContext] | None = None,
    limits: WireLimits | None = None,
) -> AsyncIterator[Listened]:
    """A wire port that answers with what it is sent."""
    listened: Listened

    def answer(request: Request) -> None:
        request.answer(b"", [bytes(request.payload)])

    def welcome(connection: Connection) -> Handlers:
        shown = connection.peer_certificate
        is_node = tls is not None and tls.is_node(shown, connection.tls_context)
        listened.seen.append((shown, is_node))
        return Handlers(requests={OPERATION: answer})

    if tls is not None and context is None:
        context = tls.listener(Door.WIRE)
    server = await Server.listen(
        host=LOCALHOST,
        port=0,
        greeting=lambda: NODE,
        welcome=welcome,
        limits=limits,
        tls=context,
        certificate_required=tls is not None and tls.requires_certificates,
    )
    listened = Listened(server)
    try:
        yield listened
    finally:
        await server.drain(timeout_s=2.0)


async def ask(listened: Listened, tls: Dialling | None, *, size: int = 10) -> None:
    """Dial, send something there and back, and leave."""
    connection = await dial(host=LOCALHOST, port=listened.server.port, hello=CLIENT, tls=tls)
    try:
        content = bytes(size)
        answer = await connection.request(OPERATION, b"", [content], timeout_s=30.0)
        assert bytes(answer.payload) == content
    finally:
        await connection.close()


def test_a_client_that_believes_the_authority_is_served(run: Runner, folder: Folder) -> None:
    async def check() -> None:
        async with listening(folder.node_tls()) as listened:
            await ask(listened, ClientTls(folder.options()))
            await ask(listened, ClientTls(folder.options()), size=3_000_000)
            assert listened.seen == [(None, False)] * 2

    run(check())


def test_a_client_is_known_by_the_uri_in_its_certificate(run: Runner, folder: Folder) -> None:
    async def check() -> None:
        own = folder.client("alice")
        for clients in ClientCertificates:
            async with listening(folder.node_tls(clients=clients)) as listened:
                await ask(listened, ClientTls(folder.options(own)))
                [(shown, is_node)] = listened.seen
                assert shown is not None
                assert shown.uris == (f"angarium://{CLUSTER}/client/alice",)
                assert 19 < (shown.expires_at - shown.begins_at) / 86_400 < 21
                assert not is_node

    run(check())


def test_nodes_know_each_other_whatever_host_is_dialled(run: Runner, folder: Folder) -> None:
    async def check() -> None:
        for clients in ClientCertificates:
            async with listening(folder.node_tls("one", clients=clients)) as listened:
                await ask(listened, folder.node_tls("two"))
                [(shown, is_node)] = listened.seen
                assert shown is not None
                assert str(shown.node_name) == f"angarium://{CLUSTER}/node/two"
                assert is_node

    run(check())


def test_a_node_of_another_cluster_is_none_of_this_one(run: Runner, folder: Folder) -> None:
    async def check() -> None:
        other = folder.node("other", cluster="another")
        from angarium.security.tls import NodeTls

        stranger = NodeTls(folder.files(other))
        async with listening(folder.node_tls("one")) as listened:
            with pytest.raises(UntrustedNode, match="angarium://testing/node/one"):
                await ask(listened, stranger)

    run(check())


def _same(greeting: Hello) -> Hello:
    return greeting


def test_who_proves_nothing_cannot_tell_a_node_that_it_must_end(
    run: Runner, folder: Folder
) -> None:
    """Of whoever answers, neither a greeting nor a goodbye is believed before its certificate."""

    async def check() -> None:
        alice = folder.client("alice")

        def context() -> ssl.SSLContext:
            made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            made.load_cert_chain(alice.certificate, alice.key)
            return made

        later = SuccessorHello(
            role=Role.PEER, cluster="later", node=2, predecessors={NODE.cluster: ""}
        )
        goodbye = ClusterSucceeded("it went on", former=NODE.cluster)

        def refusing(_: Connection) -> Handlers:
            raise goodbye

        def greeted(_: Connection) -> Handlers:
            return Handlers()

        for greeting, welcome in ((later, greeted), (NODE, refusing)):
            server = await Server.listen(
                host=LOCALHOST,
                port=0,
                greeting=partial(_same, greeting),
                welcome=welcome,
                tls=context,
            )
            try:
                with pytest.raises(UntrustedNode, match="no node"):
                    await dial(
                        host=LOCALHOST, port=server.port, hello=NODE, tls=folder.node_tls("one")
                    )
            finally:
                await server.drain(timeout_s=2.0)

    run(check())


def test_a_certificate_of_the_clients_authority_makes_no_node(
    run: Runner, folder: Folder, tmp_path: Path
) -> None:
    """Two authorities: whoever is signed by the clients' one is no node, whatever it is named."""

    async def check() -> None:
        from angarium.security.tls import NodeTls

        beside = tmp_path / "clients"
        beside.mkdir()
        public = Folder(beside, authority("another authority"))
        tls = NodeTls(
            public.files(public.pair("door")),
            cluster=folder.files(folder.node("one")),
            clients=ClientCertificates.OPTIONAL,
        )
        forged = public.node("two")
        async with listening(tls) as listened:
            await ask(listened, ClientTls(public.options(forged)))
            assert [is_node for _, is_node in listened.seen] == [False]
            with pytest.raises(CertificateRefused):
                await ask(listened, NodeTls(public.files(forged)))
            await ask(listened, folder.node_tls("three"))
            assert [is_node for _, is_node in listened.seen] == [False, True]

    run(check())


def refused_listener(folder: Folder, kind: str) -> Callable[[], ssl.SSLContext]:
    """Return the context of a listener that no client should believe."""
    if kind == "wrong authority":
        pair = folder.pair("bad", whose=authority("another authority"))
    elif kind == "wrong name":
        pair = folder.pair("bad", hosts=("elsewhere.example.org",))
    elif kind == "common name only":
        pair = folder.with_common_name_only("bad")
    else:
        pair = folder.expired("bad")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    return lambda: context


@pytest.mark.parametrize("kind", ["wrong authority", "wrong name", "common name only", "expired"])
def test_a_listener_that_is_not_believed(run: Runner, folder: Folder, kind: str) -> None:
    async def check() -> None:
        async with listening(None, context=refused_listener(folder, kind)) as listened:
            with pytest.raises(CertificateRefused, match=r"is not believed: .+tls\.ca"):
                await ask(listened, ClientTls(folder.options()))
            await eventually(lambda: not listened.server.connections)

    run(check())


def test_the_name_may_be_another_than_the_one_dialled(run: Runner, folder: Folder) -> None:
    async def check() -> None:
        pair = folder.pair("one", hosts=("node-1.example.org",))
        files = folder.files(pair)
        context = listener_context(files, clients=ClientCertificates.NONE, door=Door.WIRE)
        async with listening(None, context=lambda: context) as listened:
            await ask(listened, ClientTls(folder.options(server_name="node-1.example.org")))

    run(check())


def test_a_client_without_the_certificate_that_is_required(run: Runner, folder: Folder) -> None:
    async def check() -> None:
        tls = folder.node_tls(clients=ClientCertificates.REQUIRED)
        async with listening(tls) as listened:
            with pytest.raises(CertificateRefused, match=r"tls\.cert"):
                await ask(listened, ClientTls(folder.options()))
            stranger = folder.client("eve", whose=authority("another authority"))
            with pytest.raises(WireError, match=r"not believe .* our certificate|after the TLS"):
                await ask(listened, ClientTls(folder.options(stranger)))
            assert listened.seen == []
            await eventually(lambda: not listened.server.connections)

    run(check())


def test_plaintext_to_a_port_with_tls(run: Runner, folder: Folder) -> None:
    async def check() -> None:
        async with listening(folder.node_tls()) as listened:
            with pytest.raises(TlsMismatch, match=r"speaks TLS.+tls\.ca"):
                await ask(listened, None)
            await eventually(lambda: not listened.server.connections)

    run(check())


def test_tls_to_a_port_without(run: Runner, folder: Folder) -> None:
    async def check() -> None:
        async with listening(None) as listened:
            with pytest.raises(TlsMismatch, match="does not speak TLS"):
                await ask(listened, ClientTls(folder.options()))
            await eventually(lambda: not listened.server.connections)

    run(check())


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_old_versions_of_tls_are_refused(run: Runner, folder: Folder) -> None:
    class Old(ClientTls):
        def context(self) -> ssl.SSLContext:
            context = super().context()
            context.set_ciphers("DEFAULT:@SECLEVEL=0")
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
            return context

    async def check() -> None:
        async with listening(folder.node_tls()) as listened:
            with pytest.raises(WireError, match=r"version|TLS"):
                await ask(listened, Old(folder.options()))
            assert listened.seen == []

    run(check())


def test_half_a_handshake_is_cut_in_time(run: Runner, folder: Folder) -> None:
    async def check() -> None:
        limits = WireLimits(handshake_timeout_s=0.2)
        async with listening(folder.node_tls(), limits=limits) as listened:
            for begins in (b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"):
                reader, writer = await asyncio.open_connection(LOCALHOST, listened.server.port)
                writer.write(begins)
                with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                    await reader.readexactly(1)
                writer.close()
            await eventually(lambda: not listened.server.connections)
            await ask(listened, ClientTls(folder.options()))

    run(check())


def test_handshakes_under_way_are_bounded(run: Runner, folder: Folder) -> None:
    async def check() -> None:
        async with listening(folder.node_tls()) as listened:
            listener = listened.server._listener
            assert isinstance(listener, TlsListener)
            object.__setattr__(listener._limits, "handshakes_max", 3)
            idle = [socket.create_connection((LOCALHOST, listened.server.port)) for _ in range(3)]
            await eventually(lambda: listener.under_way == 3)
            one_more = socket.create_connection((LOCALHOST, listened.server.port))
            one_more.setblocking(False)
            assert await asyncio.get_running_loop().sock_recv(one_more, 1) == b""
            assert listener.refused == 1
            for one in (*idle, one_more):
                one.close()
            await eventually(lambda: listener.under_way == 0)
            assert listener.failed == 3
            await ask(listened, ClientTls(folder.options()))

    run(check())


def test_garbage_on_a_port_with_tls_is_cut_at_once(run: Runner, folder: Folder) -> None:
    async def check() -> None:
        async with listening(folder.node_tls()) as listened:
            for garbage in (b"GET / HTTP/1.1\r\n\r\n", bytes(100_000), b"\xff" * 100):
                reader, writer = await asyncio.open_connection(LOCALHOST, listened.server.port)
                writer.write(garbage)
                with suppress(ConnectionError):
                    assert len(await reader.read()) < 100
                writer.close()
            await eventually(lambda: not listened.server.connections)

    run(check())


def test_new_files_serve_new_connections_and_old_ones_stay(run: Runner, folder: Folder) -> None:
    async def check() -> None:
        tls = folder.node_tls("one")
        client = ClientTls(folder.options())
        async with listening(tls) as listened:
            before = await dial(host=LOCALHOST, port=listened.server.port, hello=CLIENT, tls=client)
            first = before.peer_certificate
            folder.node("one")
            tls.made.look()
            after = await dial(host=LOCALHOST, port=listened.server.port, hello=CLIENT, tls=client)
            assert after.peer_certificate is not None
            assert first is not None
            answer = await before.request(OPERATION, b"", [b"still here"], timeout_s=30.0)
            assert bytes(answer.payload) == b"still here"
            await before.close()
            await after.close()

    run(check())
