"""A whole node with authentication required: every door asks, and revoking ends what is open."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
import websockets
from joserfc import jwt
from joserfc.jwk import ECKey
from tests.component.doors.http.opened_http import LOCALHOST, Answered
from tests.component.doors.http.opened_http import Opened as Asked
from tests.on_a_loop import run

from angarium.addresses import Address
from angarium.app import composition
from angarium.app.gateway import GatewayPart
from angarium.app.security_settings import SecuritySettings
from angarium.app.serving import Signals
from angarium.app.settings import CompatSettings, ListenSettings, NodeSettings, Settings
from angarium.app.settings_problems import problems
from angarium.client import Client, ClientSettings
from angarium.errors import AngariumError, PermissionDenied, Unauthenticated
from angarium.ids import Incarnation, Micros
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub
from angarium.security.tls import UntrustedNode
from angarium.service.access.accounts import CatalogAccounts
from angarium.wire import Hello, Role, dial
from angarium.wire.operations import JoinHeader, Operation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ISSUER = "https://issuer.example.org"
KEY = ECKey.generate_key("P-256", {"kid": "one"})
REVOKED_S_MAX = 20.0
"""Two seconds are promised; a busy machine is slower than its promise."""


class Running:
    """A node with all its doors, and its administrator."""

    def __init__(self, settings: Settings) -> None:
        self.parts = composition.parts(settings, Signals(on_debug=lambda: ""))
        self.ports: dict[str, int] = {}
        self.admin: Client

    @property
    def wire(self) -> str:
        return f"{LOCALHOST}:{self.ports['NodePart']}"

    async def start(self) -> None:
        for part in self.parts:
            port: Any = await part.start()
            node = getattr(part, "node", None)
            self.ports[type(part).__name__] = node.wire_port if node is not None else port
        node = next(part for part in self.parts if isinstance(part, composition.NodePart))
        async with asyncio.timeout(60):
            # Not by logging in: who fails too often has to wait.
            while CatalogAccounts(node.node.catalog).find_user("admin") is None:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        # The machine of the tests may have ten others on it.
        settings = ClientSettings(request_timeout_s=60.0, attempt_timeout_s=20.0)
        self.admin = Client(self.wire, user="admin", password="a long password", settings=settings)

    async def stop(self) -> None:
        await self.admin.close()
        for part in reversed(self.parts):
            await part.stop()

    async def ask(self, method: str, target: str, body: object = None, **headers: str) -> Answered:
        asked = Asked(None, None, self.ports["HttpDoor"])  # type: ignore[arg-type]
        try:
            return await asked.ask(method, target, body, headers=headers)
        finally:
            for wire in asked.wires:
                wire.writer.close()


@asynccontextmanager
async def running(
    tmp_path: Path, *, open_health: bool = True, **compat: Any
) -> AsyncIterator[Running]:
    password = tmp_path / "password"
    password.write_text("a long password\n")
    password.chmod(0o600)
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"keys": [KEY.as_dict(private=False)]}))
    settings = Settings(
        node=NodeSettings(data=tmp_path / "data", form=True),
        listen=ListenSettings(wire_port=0, grpc_port=0, http_port=0),
        compat=CompatSettings(**compat),
        security=SecuritySettings(
            authentication="required",
            admin_password_file=str(password),
            open_health=open_health,
            jwt_issuer=ISSUER,
            jwt_audience="angarium",
            jwt_keys=str(keys),
        ),
    )
    assert not problems(settings)
    it = Running(settings)
    await it.start()
    try:
        yield it
    finally:
        await it.stop()


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def a_jwt(**changes: Any) -> str:
    claims = {"iss": ISSUER, "aud": "angarium", "sub": "carol", "roles": ["publisher"]}
    claims |= {"exp": int(time.time()) + 600} | changes
    return jwt.encode({"alg": "ES256", "kid": "one"}, claims, KEY, algorithms=["ES256"])


def test_every_door_asks_who_and_the_table_what(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as it:
            await it.admin.create_topic("orders")
            await it.admin.create_user("bob", password="bobs password", roles=["publisher"])
            token = (await it.admin.create_token("bob", "ci")).secret
            # The wire.
            with pytest.raises(Unauthenticated):
                async with Client(it.wire):
                    pass
            async with Client(it.wire, user="bob", password="bobs password") as bob:
                await bob.publish("orders", b"1")
                with pytest.raises(PermissionDenied):
                    await bob.create_user("eve", password="eves password")
            for proof in (token, a_jwt()):
                async with Client(it.wire, token=proof) as client:
                    await client.publish("orders", b"2")
            with pytest.raises(Unauthenticated, match="audience"):
                async with Client(it.wire, token=a_jwt(aud="others")):
                    pass
            # HTTP.
            record, path = {"value": "3"}, "/v1/topics/orders/records"
            assert (await it.ask("POST", path, record)).status == 401
            for header in (basic("bob", "bobs password"), f"Bearer {token}", f"Bearer {a_jwt()}"):
                done = await it.ask("POST", path, record, Authorization=header)
                assert done.status == 200, done.body
                read = await it.ask("GET", "/metrics", Authorization=header)
                assert read.status == 403, read.body
            admin = basic("admin", "a long password")
            assert (await it.ask("GET", "/metrics", Authorization=admin)).status == 200
            # gRPC.
            async with grpc.aio.insecure_channel(f"{LOCALHOST}:{it.ports['GrpcDoor']}") as channel:
                stub: Any = BrokerStub(channel)
                asked = pb.PublishRequest(topic="orders", record=pb.NewRecord(value=b"4"))
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await stub.Publish(asked)
                assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
                for header in (basic("bob", "bobs password"), f"Bearer {token}"):
                    await stub.Publish(asked, metadata=(("authorization", header),))

    run(check())


@pytest.mark.parametrize("is_open", [True, False])
def test_how_the_grpc_door_is_may_be_asked_by_anybody_or_not(
    tmp_path: Path, *, is_open: bool
) -> None:
    async def check() -> None:
        async with (
            running(tmp_path, open_health=is_open) as it,
            grpc.aio.insecure_channel(f"{LOCALHOST}:{it.ports['GrpcDoor']}") as channel,
        ):
            ask: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
            watch: Any = channel.unary_stream("/grpc.health.v1.Health/Watch")
            admin = (("authorization", basic("admin", "a long password")),)
            assert await ask(b"", metadata=admin)
            assert await watch(b"", metadata=admin).read()
            if is_open:
                assert await ask(b"")
                assert await watch(b"").read()
                return
            for refused in (ask(b""), watch(b"").read()):
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await refused
                assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED

    run(check())


def test_what_is_open_ends_when_its_user_is_locked_or_its_token_revoked(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as it:
            await it.admin.create_topic("orders")
            await it.admin.create_user("bob", password="bobs password", roles=["subscriber"])
            token = (await it.admin.create_token("bob", "ci")).secret
            brief = (
                await it.admin.create_token(
                    "bob", "brief", until=Micros(int((time.time() + 2) * 1_000_000))
                )
            ).secret

            async def socket_of(proof: str) -> Any:
                socket = await websockets.connect(
                    f"ws://{LOCALHOST}:{it.ports['HttpDoor']}/v1/socket",
                    additional_headers={"Authorization": f"Bearer {proof}"},
                )
                await socket.send(json.dumps({"type": "subscribe", "id": "1", "topic": "orders"}))
                assert json.loads(await socket.recv())["type"] == "subscribed"
                return socket

            async def ended(socket: Any) -> str:
                async with asyncio.timeout(REVOKED_S_MAX):
                    told = json.loads(await socket.recv())
                await socket.close()
                return str(told.get("code"))

            by_token, by_brief = await socket_of(token), await socket_of(brief)
            client = Client(it.wire, token=token)
            subscription = client.subscribe("orders")
            reading = asyncio.create_task(subscription.next_batch())
            await client.whoami()
            assert await ended(by_brief) == "UNAUTHENTICATED"
            await it.admin.delete_token("bob", "ci")
            assert await ended(by_token) == "UNAUTHENTICATED"
            async with asyncio.timeout(REVOKED_S_MAX):
                with pytest.raises(AngariumError):
                    await client.whoami()
                with pytest.raises(Unauthenticated):
                    await reading
            await client.close()
            header = basic("bob", "bobs password")
            assert (await it.ask("GET", "/v1/topics", Authorization=header)).status == 200
            await it.admin.alter_user("bob", is_locked=True)
            async with asyncio.timeout(REVOKED_S_MAX):
                while (await it.ask("GET", "/v1/topics", Authorization=header)).status != 401:
                    pass

    run(check())


def test_a_gateway_passes_its_callers_on_and_is_nobody_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check() -> None:
        async with running(tmp_path) as it:
            await it.admin.create_topic("orders")
            await it.admin.create_user("bob", password="bobs password", roles=["publisher"])
            token = (await it.admin.create_token("bob", "ci")).secret
            # What the gateway's own environment has is nobody's proof.
            monkeypatch.setenv("ANGARIUM_USER", "admin")
            monkeypatch.setenv("ANGARIUM_PASSWORD", "a long password")
            gateway = GatewayPart((it.wire,), host=LOCALHOST, port=0)
            it.ports["HttpDoor"] = await gateway.start()
            try:
                async with asyncio.timeout(30):
                    while (await it.ask("GET", "/readyz")).status != 200:
                        pass
                record, path = {"value": "3"}, "/v1/topics/orders/records"
                for header in (None, basic("bob", "wrong"), "Bearer angt_" + "A" * 43, "x"):
                    headers = {} if header is None else {"Authorization": header}
                    refused = await it.ask("POST", path, record, **headers)
                    assert refused.status == 401, refused.body
                    assert (await it.ask("GET", "/metrics", **headers)).status == 401
                for header in (basic("bob", "bobs password"), f"Bearer {token}"):
                    done = await it.ask("POST", path, record, Authorization=header)
                    assert done.status == 200, done.body
                    denied = await it.ask("DELETE", "/v1/topics/orders", Authorization=header)
                    assert denied.status == 403
                    read = await it.ask("GET", "/metrics", Authorization=header)
                    assert read.status == 403
                admin = basic("admin", "a long password")
                assert (await it.ask("GET", "/metrics", Authorization=admin)).status == 200
                url = f"ws://{LOCALHOST}:{it.ports['HttpDoor']}/v1/socket"
                async with websockets.connect(url) as socket:
                    await socket.send(json.dumps({"type": "authenticate", "token": token}))
                    assert json.loads(await socket.recv())["type"] == "authenticated"
                await it.admin.delete_token("bob", "ci")
                async with asyncio.timeout(REVOKED_S_MAX):
                    status = 200
                    while status != 401:
                        found = await it.ask("POST", path, record, Authorization=f"Bearer {token}")
                        status = found.status
            finally:
                await gateway.stop()

    run(check())


def test_nobody_gets_around_a_proof_by_saying_that_it_is_a_node(tmp_path: Path) -> None:
    """A reviewer joined as a node without certificates, and made itself an administrator."""

    async def check() -> None:
        async with running(tmp_path) as it:
            port = it.ports["NodePart"]
            stranger = await dial(host=LOCALHOST, port=port, hello=Hello(role=Role.CLIENT))
            wish = JoinHeader(
                None, Incarnation(4242), (("wire", "127.0.0.1:1"),), "", "", "mallory", 1, 9
            )
            with pytest.raises(UntrustedNode, match="trust_peers"):
                await stranger.request(Operation.JOIN, wish, timeout_s=10)
            cluster = stranger.peer.hello
            await stranger.close()
            as_node = Hello(
                role=Role.PEER,
                cluster=cluster.cluster,
                node=cluster.node,
                incarnation=4242,
                features=cluster.features,
            )
            with pytest.raises(AngariumError, match="trust_peers") as refused:
                await dial(host=LOCALHOST, port=port, hello=as_node)
            assert refused.value.code == "UNTRUSTED_NODE"

    run(check())


def test_a_node_that_joins_has_a_certificate_or_is_told_to_do_without(tmp_path: Path) -> None:
    def complaints(**security: Any) -> list[str]:
        node = NodeSettings(data=tmp_path, join=(Address("127.0.0.1", 1),))
        settings = Settings(node=node, security=SecuritySettings(**security))
        return [one.setting for one in problems(settings)]

    assert complaints() == []
    assert complaints(authentication="required") == ["security.trust_peers"]
    assert complaints(authentication="required", trust_peers=True) == []


def test_listeners_for_earlier_clients_have_users_or_do_not_open(tmp_path: Path) -> None:
    def complaints(**compat: Any) -> list[str]:
        settings = Settings(
            node=NodeSettings(data=tmp_path),
            compat=CompatSettings(**compat),
            security=SecuritySettings(authentication="required"),
        )
        return [one.setting for one in problems(settings)]

    assert complaints(hermes_grpc_port=1) == ["compat.hermes_user"]
    assert complaints(hermes_http_port=1, hermes_user="h") == []
    assert complaints(bale_grpc_port=1) == ["compat.bale_user"]
    assert complaints(bale_grpc_port=1, bale_user="b") == []
    assert complaints(bale_grpc_port=1, bale_user="b", bale_metrics_ports=(2,)) == [
        "compat.bale_metrics_ports"
    ]
    assert complaints(geo_grpc_port=1) == []


def test_earlier_clients_act_in_the_name_of_a_user(tmp_path: Path) -> None:
    async def check() -> None:
        compat: dict[str, Any] = {"geo_grpc_port": 0, "bale_grpc_port": 0, "hermes_http_port": 0}
        compat |= {"bale_user": "bale", "hermes_user": "hermes"}
        async with running(tmp_path, **compat) as it:
            await it.admin.create_user("geo", password="geos password", roles=["admin"])
            # hermes has a user that is not there yet: nothing is allowed, and nothing is open.
            status = await _hermes_status(it)
            assert status in {401, 403, 500, 503}
            await it.admin.create_user("hermes", roles=["admin"])
            async with asyncio.timeout(REVOKED_S_MAX):
                while await _hermes_status(it) != 200:
                    pass
            async with grpc.aio.insecure_channel(f"{LOCALHOST}:{it.ports['GeoDoor']}") as channel:
                publish: Any = channel.unary_unary("/broker.Broker/Publish")
                asked = b"\n\x05topic\x12\x01x"
                good = (("authorization", basic("geo", "geos password")),)
                await publish(asked, metadata=good)
                for header in (basic("geo", "wrong"), basic("nobody", "x"), "Bearer x"):
                    with pytest.raises(grpc.aio.AioRpcError) as caught:
                        await publish(asked, metadata=(("authorization", header),))
                    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED

    async def _hermes_status(it: Running) -> int:
        asked = Asked(None, None, it.ports["HermesHttpDoor"])  # type: ignore[arg-type]
        found = await asked.ask("GET", "/status")
        for wire in asked.wires:
            wire.writer.close()
        return found.status

    run(check())
