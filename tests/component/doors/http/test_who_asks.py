"""Who asks at the HTTP door: no request without a proof, each with a broker of its own."""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import websockets
from tests.accounts import AccountsInMemory, account, authenticator
from tests.component.doors.http.opened_http import LOCALHOST, Answered, request_bytes
from tests.component.doors.http.opened_http import Opened as Asked
from tests.on_a_loop import run
from tests.unit.doors.grpc.memory_broker import MemoryBroker

from angarium.api import TopicConfig
from angarium.doors.callers import Callers
from angarium.doors.http import HttpDoor
from angarium.doors.http import sockets as sockets_page
from angarium.doors.http.faces import Behind
from angarium.errors import PermissionDenied

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from angarium.api.access import Principal

GRAPHQL = ("graphql-transport-ws", "graphql-ws")
SUBSCRIBE = {"type": "subscribe", "id": "1", "topic": "orders"}


class Guarded:
    """A door that wants to know who asks; each principal has a broker that knows its name."""

    def __init__(self) -> None:
        self.accounts = AccountsInMemory(account("alice", "right"), account("bob", "b"))
        self.brokers: dict[str, MemoryBroker] = {}
        self.door = HttpDoor(
            Callers(authenticator(self.accounts), self.behind), host=LOCALHOST, port=0
        )
        self.port = 0

    def behind(self, principal: Principal) -> Behind:
        broker: Any = self.brokers[principal.name]

        async def measuring() -> None:
            if principal.name != "alice":
                raise PermissionDenied("may not read metrics")

        return Behind(broker, broker, measuring=measuring)

    async def ask(self, method: str, target: str, body: object = None, **headers: str) -> Answered:
        asked = Asked(None, self.door, self.port)  # type: ignore[arg-type]
        try:
            return await asked.ask(method, target, body, headers=headers)
        finally:
            for wire in asked.wires:
                wire.writer.close()

    def socket(self, path: str, **more: Any) -> Any:
        return websockets.connect(f"ws://{LOCALHOST}:{self.port}{path}", **more)


@asynccontextmanager
async def guarded() -> AsyncIterator[Guarded]:
    it = Guarded()
    for name in ("alice", "bob"):
        it.brokers[name] = MemoryBroker()
        await it.brokers[name].create_topic("orders", partitions=1, config=TopicConfig())
        await it.brokers[name].create_topic(f"of-{name}", partitions=1, config=TopicConfig())
    it.port = await it.door.start()
    try:
        yield it
    finally:
        await it.door.stop(grace_s=0)


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def test_each_principal_is_served_by_its_own_broker() -> None:
    async def check() -> None:
        async with guarded() as it:
            token = it.accounts.issue("bob")
            for _ in range(2):  # the second time from what is remembered
                for header, name in (
                    (basic("alice", "right"), "alice"),
                    (basic("bob", "b"), "bob"),
                    (f"Bearer {token}", "bob"),
                ):
                    listed = await it.ask("GET", "/v1/topics", Authorization=header)
                    assert listed.status == 200
                    assert f"of-{name}" in listed.body.decode()
                    query = {"query": "{ topics { name } }"}
                    found = await it.ask("POST", "/graphql", query, Authorization=header)
                    assert f"of-{name}" in found.body.decode()
            for header in (basic("alice", "right"), f"Bearer {token}"):
                record = {"value": "x"}
                done = await it.ask(
                    "POST", "/v1/topics/orders/records", record, Authorization=header
                )
                assert done.status == 200, done.body
            assert len(it.brokers["alice"].requests) == len(it.brokers["bob"].requests) == 1

    run(check())


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "garbage",
        basic("alice", "wrong"),
        basic("nobody", "right"),
        "Bearer angt_" + "A" * 43,
        "Bearer a.b.c",
        "Bearer tökén",
        "Bearer " + "A" * 6_000,
    ],
)
def test_without_a_proof_every_request_is_refused(header: str | None) -> None:
    async def check() -> None:
        async with guarded() as it:
            headers = {} if header is None else {"Authorization": header}
            asked = [
                (one.method, one.path.replace("{partition}", "0").replace("{", "").replace("}", ""))
                for one in it.door._guests.router.routes
                if one.path.encode() not in {b"/", b"/healthz", b"/readyz", b"/v1/openapi.json"}
                and one.path != "/graphql/schema"
            ]
            assert len(asked) > 20
            for method, path in asked:
                found = await it.ask(method, path, {} if method != "GET" else None, **headers)
                assert found.status in {401, 429}, (method, path, found.body)
                if found.status == 401:
                    assert found.headers["www-authenticate"].startswith("Bearer")
                    assert found.json["code"] == "UNAUTHENTICATED"
                assert "AAAA" not in found.body.decode()
            assert all(not one.requests for one in it.brokers.values())

    run(check())


def test_what_shows_nothing_of_anybody_is_open() -> None:
    async def check() -> None:
        async with guarded() as it:
            for path in ("/", "/healthz", "/readyz", "/v1/openapi.json", "/graphql/schema"):
                assert (await it.ask("GET", path)).status == 200
                assert (await it.ask("GET", path, Authorization="garbage")).status == 200

    run(check())


def test_metrics_have_a_permission_of_their_own() -> None:
    async def check() -> None:
        async with guarded() as it:
            assert (await it.ask("GET", "/metrics")).status == 401
            may = await it.ask("GET", "/metrics", Authorization=basic("alice", "right"))
            assert may.status == 200
            for path in ("/metrics", "/status"):
                may_not = await it.ask("GET", path, Authorization=basic("bob", "b"))
                assert may_not.status == 403

    run(check())


def test_a_giant_of_a_header_is_refused() -> None:
    async def check() -> None:
        async with guarded() as it:
            asked = Asked(None, it.door, it.port)  # type: ignore[arg-type]
            wire = await asked.connect()
            giant = "Bearer " + "A" * 1_000_000
            wire.writer.write(request_bytes("GET", "/v1/topics", headers={"Authorization": giant}))
            found = await wire.hear()
            assert found.status in {400, 401, 431}
            wire.writer.close()
            good = await it.ask("GET", "/v1/topics", Authorization=basic("alice", "right"))
            assert good.status == 200

    run(check())


def test_an_expired_token_opens_nothing_more() -> None:
    async def check() -> None:
        async with guarded() as it:
            token = it.accounts.issue("alice", seconds=0.3)
            status = 200
            async with asyncio.timeout(10):
                while status == 200:
                    found = await it.ask("GET", "/v1/topics", Authorization=f"Bearer {token}")
                    status = found.status
            assert status == 401

    run(check())


def test_a_socket_says_who_it_is_by_a_header_or_by_its_first_message() -> None:
    async def check() -> None:
        async with guarded() as it:
            header = {"Authorization": basic("alice", "right")}
            async with it.socket("/v1/socket", additional_headers=header) as socket:
                await socket.send(json.dumps(SUBSCRIBE))
                assert json.loads(await socket.recv())["type"] == "subscribed"
            for said in (
                {"type": "authenticate", "token": it.accounts.issue("alice")},
                {"type": "authenticate", "id": "7", "user": "alice", "password": "right"},
            ):
                async with it.socket("/v1/socket") as socket:
                    await socket.send(json.dumps(said))
                    told = json.loads(await socket.recv())
                    assert told == {"type": "authenticated", "id": said.get("id", "")}
                    await socket.send(json.dumps(SUBSCRIBE))
                    assert json.loads(await socket.recv())["type"] == "subscribed"
                    await socket.send(json.dumps(said))
                    assert json.loads(await socket.recv())["code"] == "INVALID_ARGUMENT"

    run(check())


@pytest.mark.parametrize(
    "said",
    [
        SUBSCRIBE,
        {"type": "authenticate"},
        {"type": "authenticate", "user": "alice"},
        {"type": "authenticate", "user": "alice", "password": "wrong"},
        {"type": "authenticate", "token": "tökén"},
        {"type": "publish", "id": "1", "topic": "orders", "record": {"value": "x"}},
    ],
)
def test_a_socket_that_says_anything_else_first_is_closed(said: dict[str, str]) -> None:
    async def check() -> None:
        async with guarded() as it, it.socket("/v1/socket") as socket:
            await socket.send(json.dumps(said))
            assert json.loads(await socket.recv())["code"] == "UNAUTHENTICATED"
            with pytest.raises(websockets.ConnectionClosed) as caught:
                await socket.recv()
            assert caught.value.rcvd is not None
            assert caught.value.rcvd.code == 4401
            assert all(not one.requests for one in it.brokers.values())

    run(check())


def test_a_socket_that_says_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets_page, "LOGIN_S_MAX", 0.2)

    async def check() -> None:
        async with guarded() as it, it.socket("/v1/socket") as socket:
            with pytest.raises(websockets.ConnectionClosed) as caught:
                async with asyncio.timeout(10):
                    await socket.recv()
            assert caught.value.rcvd is not None
            assert caught.value.rcvd.code == 4408

    run(check())


@pytest.mark.parametrize("protocol", GRAPHQL)
def test_graphql_says_who_it_is_when_it_introduces_itself(protocol: str) -> None:
    async def check() -> None:
        async with guarded() as it:
            for payload in (
                {"Authorization": basic("alice", "right")},
                {"authorization": basic("alice", "right")},
                {"token": it.accounts.issue("alice")},
                {"user": "alice", "password": "right"},
            ):
                async with it.socket("/graphql", subprotocols=[protocol]) as socket:
                    init = {"type": "connection_init", "payload": payload}
                    await socket.send(json.dumps(init))
                    assert json.loads(await socket.recv())["type"] == "connection_ack"
                    begin = "subscribe" if protocol == GRAPHQL[0] else "start"
                    query = {"query": "{ topics { name } }"}
                    await socket.send(json.dumps({"type": begin, "id": "1", "payload": query}))
                    assert "of-alice" in await socket.recv()

    run(check())


@pytest.mark.parametrize("protocol", GRAPHQL)
@pytest.mark.parametrize(
    "payload", [None, {}, {"Authorization": "Bearer x"}, {"user": "alice", "password": "wrong"}, 7]
)
def test_graphql_without_a_proof_is_closed(protocol: str, payload: object) -> None:
    async def check() -> None:
        async with (
            guarded() as it,
            it.socket("/graphql", subprotocols=[protocol]) as socket,
        ):
            init = {"type": "connection_init"} | ({} if payload is None else {"payload": payload})
            await socket.send(json.dumps(init))
            if protocol == GRAPHQL[1]:
                assert json.loads(await socket.recv())["type"] == "connection_error"
            with pytest.raises(websockets.ConnectionClosed) as caught:
                await socket.recv()
            assert caught.value.rcvd is not None
            assert caught.value.rcvd.code == 4403

    run(check())


def test_a_wrong_header_is_not_made_good_by_a_message() -> None:
    async def check() -> None:
        async with guarded() as it:
            header = {"Authorization": basic("alice", "wrong")}
            for path in ("/v1/socket", "/graphql"):
                with pytest.raises(websockets.InvalidStatus) as caught:
                    await it.socket(path, additional_headers=header)
                assert caught.value.response.status_code == 401

    run(check())
