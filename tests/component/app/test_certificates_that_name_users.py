"""A client's certificate says who it is, on every door; whatever else is brought goes before it."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
import time
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
import websockets
from cryptography import x509
from tests.certificates import CLUSTER, HOSTS, Folder, Pair, authority
from tests.component.app.test_doors_that_ask_who import Running, basic
from tests.component.doors.http.opened_http import LOCALHOST
from tests.on_a_loop import run
from websockets import Subprotocol

from angarium.api.access import Action, Grant, Match, ResourceKind, SubjectKind
from angarium.app.gateway import GatewayPart
from angarium.app.security_settings import SecuritySettings, TlsSettings
from angarium.app.settings import ListenSettings, NodeSettings, Settings
from angarium.app.settings_problems import problems
from angarium.client import Client, ClientSettings
from angarium.errors import AngariumError, Unauthenticated
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub
from angarium.security.tls import ClientTls
from angarium.wire import Hello, Role, dial
from angarium.wire.operations import Operation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

PREFIX = f"angarium://{CLUSTER}/client/"
USERS = ("alice", "bob")
NOBODY = "nobody"
CUT = "no connection"
"""TLS itself has refused it."""

LASTS_S_MIN, LASTS_S_MAX = 6.0, 30.0
LASTS_TIMES = 8
"""How long the certificate lasts that expires while streams are open: so many times as long as it
took to start a node, so that a busy machine opens them in time and another one does not wait."""

REFUSED_WITHIN_S = 5.0
"""For how long a client tries that TLS itself refuses, for which nothing else makes it give up."""

ENDS_S_MAX = 120.0
WITHIN_S = 280.0


class Secured(Running):
    """A node with TLS, where certificates name users."""

    folder: Folder
    patience_s = 30.0
    """For how long its clients try."""

    def context(self, own: Pair | None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.folder.ca))
        if own is not None:
            context.load_cert_chain(*own)
        return context

    def client(self, own: Pair | None, **login: Any) -> Client:
        options = ClientSettings(
            tls=self.folder.options(own),
            request_timeout_s=self.patience_s,
            attempt_timeout_s=self.patience_s * 2 / 3,
        )
        return Client(self.wire, settings=options, **login)

    def channel(self, own: Pair | None) -> Any:
        key, chain = (None, None) if own is None else (own.key, own.certificate)
        credentials = grpc.ssl_channel_credentials(
            self.folder.ca.read_bytes(),
            None if key is None else key.read_bytes(),
            None if chain is None else chain.read_bytes(),
        )
        return grpc.aio.secure_channel(f"{LOCALHOST}:{self.ports['GrpcDoor']}", credentials)

    def socket(self, path: str, own: Pair | None, **more: Any) -> Any:
        url = f"wss://{LOCALHOST}:{self.ports['HttpDoor']}{path}"
        return websockets.connect(url, ssl=self.context(own), open_timeout=60, proxy=None, **more)

    async def get(
        self, own: Pair | None, method: str, path: str, body: str = "", bearer: str = ""
    ) -> tuple[int, str]:
        """Ask over HTTP; 0 if TLS refuses."""
        headers = {"Authorization": bearer} if bearer else {}
        if body:
            headers["Content-Type"] = "application/json"

        def asked() -> tuple[int, str]:
            port, context = self.ports["HttpDoor"], self.context(own)
            connection = http.client.HTTPSConnection(LOCALHOST, port, context=context, timeout=60)
            try:
                connection.request(method, path, body or None, headers)
                answer = connection.getresponse()
                return answer.status, answer.read().decode()
            except OSError:
                return 0, ""
            finally:
                connection.close()

        return await asyncio.to_thread(asked)


@asynccontextmanager
async def secured(tmp_path: Path, **security: Any) -> AsyncIterator[Secured]:
    password = tmp_path / "password"
    password.write_text("a long password\n")
    certificates = tmp_path / "certificates"
    certificates.mkdir()
    folder = Folder(certificates)
    shown = folder.node("one")
    settings = Settings(
        node=NodeSettings(data=tmp_path / "data", form=True),
        listen=ListenSettings(wire_port=0, grpc_port=0, http_port=0),
        tls=TlsSettings(
            certificate=shown.certificate,
            private_key=shown.key,
            authorities=folder.ca,
            client_certificates="optional",
        ),
        security=SecuritySettings(
            authentication="required",
            admin_password_file=str(password),
            **({"certificate_user": "uri", "certificate_prefix": PREFIX} | security),
        ),
    )
    assert not problems(settings)
    it = Secured(settings)
    it.folder = folder
    await it.start()
    await it.admin.close()
    it.admin = it.client(None, user="admin", password="a long password")
    for name in USERS:
        await it.admin.create_topic(f"of-{name}")
        await it.admin.create_user(name)  # a password takes seconds on a busy machine
        grant = Grant(
            actions=(Action.TOPIC_DESCRIBE, Action.TOPIC_READ, Action.TOPIC_PUBLISH),
            kind=ResourceKind.TOPIC,
            name=f"of-{name}",
            match=Match.EXACT,
        )
        await it.admin.create_grant(SubjectKind.USER, name, grant)
    try:
        yield it
    finally:
        await it.stop()


# --- who somebody is, as each door sees it --------------------------------------------------------


def named(text: str) -> str:
    """Return whose topic is shown."""
    seen = [name for name in USERS if f"of-{name}" in text]
    assert len(seen) <= 1, text
    return seen[0] if seen else f"somebody else: {text}"


async def by_wire(it: Secured, own: Pair | None, token: str) -> str:
    login = {"token": token} if token else {}
    try:
        async with it.client(own, **login) as client:
            who = (await client.whoami()).principal.name
            assert named(str(await client.list_topics())) == who
            return who
    except Unauthenticated:
        return NOBODY
    except AngariumError:
        return CUT


REFUSALS = {grpc.StatusCode.UNAUTHENTICATED: NOBODY, grpc.StatusCode.UNAVAILABLE: CUT}


async def by_grpc(it: Secured, own: Pair | None, token: str) -> str:
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    async with it.channel(own) as channel:
        stub: Any = BrokerStub(channel)
        try:
            asked = pb.ListTopicsRequest()
            return named(str(await stub.ListTopics(asked, metadata=metadata, timeout=60)))
        except grpc.aio.AioRpcError as error:
            return REFUSALS[error.code()]


async def by_rest(it: Secured, own: Pair | None, token: str) -> str:
    status, body = await it.get(own, "GET", "/v1/topics", bearer=f"Bearer {token}" if token else "")
    return {401: NOBODY, 0: CUT}.get(status) or named(body)


async def by_graphql(it: Secured, own: Pair | None, token: str) -> str:
    query = json.dumps({"query": "{ topics { name } }"})
    bearer = f"Bearer {token}" if token else ""
    status, body = await it.get(own, "POST", "/graphql", query, bearer=bearer)
    return {401: NOBODY, 0: CUT}.get(status) or named(body)


async def by_socket(it: Secured, own: Pair | None, token: str) -> str:
    """The proof comes in the first message, which goes before the certificate."""
    try:
        async with it.socket("/v1/socket", own) as socket:
            if token:
                await socket.send(json.dumps({"type": "authenticate", "token": token}))
                if json.loads(await socket.recv())["type"] != "authenticated":
                    return NOBODY
            for name in USERS:
                wish = {"type": "subscribe", "id": name, "topic": f"of-{name}"}
                await socket.send(json.dumps(wish))
                told = json.loads(await socket.recv())
                if told["type"] == "subscribed":
                    return name
                if told.get("code") == "UNAUTHENTICATED":
                    return NOBODY
            return "somebody else"
    except (OSError, websockets.WebSocketException):
        return CUT


async def by_graphql_socket(it: Secured, own: Pair | None, token: str) -> str:
    init: dict[str, Any] = {"type": "connection_init"}
    if token:
        init["payload"] = {"Authorization": f"Bearer {token}"}
    protocol = Subprotocol("graphql-transport-ws")
    try:
        async with it.socket("/graphql", own, subprotocols=[protocol]) as socket:
            await socket.send(json.dumps(init))
            try:
                await socket.recv()
            except websockets.ConnectionClosed:
                return NOBODY
            query = {"query": "{ topics { name } }"}
            await socket.send(json.dumps({"type": "subscribe", "id": "1", "payload": query}))
            return named(str(await socket.recv()))
    except (OSError, websockets.WebSocketException):
        return CUT


DOORS: dict[str, Callable[[Secured, Pair | None, str], Awaitable[str]]] = {
    "wire": by_wire,
    "grpc": by_grpc,
    "rest": by_rest,
    "graphql": by_graphql,
    "socket": by_socket,
    "graphql socket": by_graphql_socket,
}


async def everywhere(it: Secured, own: Pair | None, token: str = "") -> dict[str, str]:
    return {door: await ask(it, own, token) for door, ask in DOORS.items()}


def on_all(who: str) -> dict[str, str]:
    return dict.fromkeys(DOORS, who)


def uri(text: str) -> x509.GeneralName:
    return x509.UniformResourceIdentifier(text)


def raw_uri(octets: bytes) -> bytes:
    """Return a subject alternative name of kind URI with any bytes in it, in DER."""
    name = bytes([0x86, len(octets)]) + octets
    return bytes([0x30, len(name)]) + name


def test_every_door_takes_a_client_for_whom_its_certificate_names(tmp_path: Path) -> None:
    async def check() -> None:
        async with secured(tmp_path) as it:
            alice = it.folder.client("alice")
            assert await everywhere(it, None) == on_all(NOBODY)
            assert await everywhere(it, alice) == on_all("alice")
            # Whoever says more is who that says, or nobody.
            token = (await it.admin.create_token("bob", "ci")).secret
            assert await everywhere(it, alice, token) == on_all("bob")
            wrong = "angt_" + "A" * 43
            assert await everywhere(it, alice, wrong) == on_all(NOBODY)
            with pytest.raises(Unauthenticated):
                async with it.client(alice, user="alice", password="not hers"):
                    pass
            status, _ = await it.get(alice, "GET", "/v1/topics", bearer=basic("alice", "no"))
            assert status == 401
            async with it.client(alice) as client:
                caller = await client.whoami()
                assert caller.principal.proof == "certificate"
                assert caller.principal.until is not None
            await it.admin.alter_user("alice", is_locked=True)
            assert await everywhere(it, alice) == on_all(NOBODY)

    run(check(), within_s=WITHIN_S)


def test_certificates_that_leave_a_doubt_are_nobodys(tmp_path: Path) -> None:
    async def check() -> None:
        async with secured(tmp_path) as it:
            folder, octets = it.folder, PREFIX.encode()
            odd = {
                "no account": folder.client("carol"),
                "two": folder.named("two", uri(f"{PREFIX}alice"), uri(f"{PREFIX}bob")),
                "twice": folder.named("twice", uri(f"{PREFIX}alice"), uri(f"{PREFIX}alice")),
                "common name": folder.named("cn", common_name="alice"),
                "dns": folder.named("dns", x509.DNSName("alice"), common_name="alice"),
                "email": folder.named("mail", x509.RFC822Name("alice@example.org")),
                "other cluster": folder.named("oc", uri("angarium://other/client/alice")),
                "case": folder.named("case", uri(f"{PREFIX}Alice")),
                "node": folder.node("alice"),
                "node and client": folder.named(
                    "both", uri(f"angarium://{CLUSTER}/node/x"), uri(f"{PREFIX}alice")
                ),
                "nul": folder.named("nul", raw_names=raw_uri(octets + b"alice\0.evil.org")),
                "nul at the end": folder.named("nul2", raw_names=raw_uri(octets + b"alice\0")),
                "look-alike": folder.named(
                    "like", raw_names=raw_uri(octets + "\u0430lice".encode())
                ),
            }
            for why, pair in odd.items():
                assert await everywhere(it, pair) == on_all(NOBODY), why
            refused = {
                "no text": folder.named("bytes", raw_names=raw_uri(octets + b"alice\xff\xfe")),
                "another authority": folder.client("alice", whose=authority("another authority")),
                "expired": folder.named("old", uri(f"{PREFIX}alice"), seconds=-60),
            }
            it.patience_s = REFUSED_WITHIN_S
            for why, pair in refused.items():
                found = await everywhere(it, pair)
                assert set(found.values()) <= {NOBODY, CUT}, (why, found)
            it.patience_s = Secured.patience_s
            assert await by_wire(it, folder.client("alice"), "") == "alice"

    run(check(), within_s=WITHIN_S)


def test_another_field_may_name_users(tmp_path: Path) -> None:
    async def check() -> None:
        settings = {"certificate_user": "email", "certificate_prefix": ""}
        async with secured(tmp_path, **settings) as it:
            mail = "dora@example.org"
            await it.admin.create_user(mail)
            grant = Grant(actions=("*",), kind=ResourceKind.TOPIC, name="of-bob", match=Match.EXACT)
            await it.admin.create_grant(SubjectKind.USER, mail, grant)
            dora = it.folder.named("dora", x509.RFC822Name(mail), uri(f"{PREFIX}alice"))
            for door in ("rest", "grpc", "socket"):
                assert await DOORS[door](it, dora, "") == "bob", "it sees that topic alone"
            assert await by_rest(it, it.folder.client("alice"), "") == NOBODY

    run(check(), within_s=WITHIN_S)


def test_streams_end_when_their_certificate_expires(tmp_path: Path) -> None:
    async def check() -> None:
        began_at = time.time()
        async with secured(tmp_path) as it, AsyncExitStack() as opened:
            took_s = time.time() - began_at
            lasts_s = min(max(LASTS_S_MIN, LASTS_TIMES * took_s), LASTS_S_MAX)
            brief = it.folder.named("brief", uri(f"{PREFIX}alice"), seconds=lasts_s)
            ends_at = time.time() + lasts_s

            # As a client would, which then dials again for as long as it takes.
            wire = await dial(
                host=LOCALHOST,
                port=it.ports["NodePart"],
                hello=Hello(role=Role.CLIENT),
                tls=ClientTls(it.folder.options(brief)),
                timeout_s=lasts_s,
            )
            await wire.request(Operation.LIST_TOPICS, timeout_s=lasts_s)

            stub: Any = BrokerStub(await opened.enter_async_context(it.channel(brief)))
            interest = pb.Interest(topic="of-alice", partition=0)
            wanted = pb.SubscribeRequest(open=pb.SubscribeRequest.Open(interests=[interest]))

            async def wishes() -> AsyncIterator[Any]:
                yield wanted
                await asyncio.Event().wait()

            async def read_grpc() -> object:
                try:
                    async for _ in stub.Subscribe(wishes()):
                        pass
                except grpc.aio.AioRpcError as error:
                    return error.code()
                return None

            by_call = asyncio.create_task(read_grpc())
            events = asyncio.create_task(
                it.get(brief, "GET", "/v1/topics/of-alice/stream?start=live")
            )
            socket = await opened.enter_async_context(it.socket("/v1/socket", brief))
            wish = {"type": "subscribe", "id": "1", "topic": "of-alice"}
            await socket.send(json.dumps(wish))
            assert json.loads(await socket.recv())["type"] == "subscribed"
            protocol = Subprotocol("graphql-transport-ws")
            graphql = await opened.enter_async_context(
                it.socket("/graphql", brief, subprotocols=[protocol])
            )
            await graphql.send('{"type": "connection_init"}')
            await graphql.recv()
            query = {"query": 'subscription { subscribe(topic: "of-alice") { id } }'}
            await graphql.send(json.dumps({"type": "subscribe", "id": "1", "payload": query}))
            assert time.time() < ends_at, "this machine is too slow for this test"

            async with asyncio.timeout(lasts_s + ENDS_S_MAX):
                while wire.is_open:  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
                assert isinstance(wire.error, Unauthenticated), wire.error
                assert await by_call is grpc.StatusCode.UNAUTHENTICATED
                status, told = await events
                assert status == 200
                assert "UNAUTHENTICATED" in told
                assert json.loads(await socket.recv())["code"] == "UNAUTHENTICATED"
                assert "UNAUTHENTICATED" in str(await graphql.recv())
            assert time.time() >= ends_at - 1, "they ended before it did"
            it.patience_s = REFUSED_WITHIN_S
            assert set((await everywhere(it, brief)).values()) <= {NOBODY, CUT}

    run(check(), within_s=WITHIN_S)


def test_a_gateway_is_let_in_by_its_certificate_and_its_callers_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check() -> None:
        async with secured(tmp_path) as it:
            alice = it.folder.client("alice")
            token = (await it.admin.create_token("bob", "ci")).secret
            monkeypatch.setenv("ANGARIUM_TLS_CA", str(it.folder.ca))
            monkeypatch.setenv("ANGARIUM_TLS_CERT", str(alice.certificate))
            monkeypatch.setenv("ANGARIUM_TLS_KEY", str(alice.key))
            gateway = GatewayPart((it.wire,), host=LOCALHOST, port=0, must_ask=True)
            it.ports["HttpDoor"] = await gateway.start()
            try:
                async with asyncio.timeout(60):
                    while (await it.ask("GET", "/readyz")).status != 200:
                        pass
                assert (await it.ask("GET", "/v1/topics")).status == 401
                wrong = await it.ask("GET", "/v1/topics", Authorization=basic("bob", "no"))
                assert wrong.status == 401
                bob = await it.ask("GET", "/v1/topics", Authorization=f"Bearer {token}")
                assert named(bob.body.decode()) == "bob"
            finally:
                await gateway.stop()

    run(check(), within_s=WITHIN_S)


def test_the_settings_say_what_is_missing(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    shown = folder.node("one")

    def complaints(clients: str, **security: Any) -> list[str]:
        tls = TlsSettings(
            certificate=shown.certificate,
            private_key=shown.key,
            authorities=folder.ca,
            client_certificates=clients,  # type: ignore[arg-type]
        )
        settings = Settings(
            node=NodeSettings(data=tmp_path),
            tls=tls,
            security=SecuritySettings(authentication="required", **security),
        )
        return [one.setting for one in problems(settings)]

    assert complaints("none") == []
    assert complaints("none", certificate_user="uri") == ["security.certificate_user"]
    assert complaints("optional", certificate_user="uri", certificate_prefix=PREFIX) == []
    with pytest.raises(ValueError, match=r"^certificate_prefix: "):
        SecuritySettings(certificate_user="uri", certificate_prefix="angarium://shop")
    assert HOSTS
