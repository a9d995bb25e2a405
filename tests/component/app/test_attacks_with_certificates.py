"""What somebody would try who has a certificate, and wants to be somebody else with it."""

from __future__ import annotations

import asyncio
import http.client
import json
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
from tests.component.app.test_certificates_that_name_users import (
    ENDS_S_MAX,
    NOBODY,
    REFUSALS,
    WITHIN_S,
    Secured,
    by_graphql_socket,
    by_grpc,
    by_socket,
    named,
    secured,
)
from tests.component.doors.http.opened_http import LOCALHOST
from tests.on_a_loop import run
from websockets import Subprotocol

from angarium.api.quotas import QuotaKind, QuotaSubject
from angarium.errors import AngariumError, Unauthenticated
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub
from angarium.security.tls import ClientTls, NodeTls
from angarium.wire import Hello, Role, dial
from angarium.wire.operations import Operation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.certificates import Pair

ANSWER_S = 60.0


class ToNodes(ClientTls):
    """Asks for the name that nodes ask for, so that the nodes' authorities are what counts."""

    def server_name(self, host: str) -> str:
        return "node.angarium.internal"


async def asks_as_nobody(it: Secured, tls: Any, role: Role = Role.CLIENT) -> bool:
    """Tell whether who dials so is refused what every user may ask."""
    try:
        wire = await dial(
            host=LOCALHOST, port=it.ports["NodePart"], hello=Hello(role=role), tls=tls
        )
        try:
            await wire.request(Operation.WHOAMI, timeout_s=ANSWER_S)
        finally:
            await wire.close(timeout_s=1.0)
    except AngariumError:
        return True
    return False


class KeptOpen:
    """One connection of HTTP/1.1, and what is asked on it."""

    def __init__(self, it: Secured, own: Pair) -> None:
        port, context = it.ports["HttpDoor"], it.context(own)
        self.wire = http.client.HTTPSConnection(
            LOCALHOST, port, context=context, timeout=int(ANSWER_S)
        )
        self.socket: Any = None

    async def seen(self, bearer: str = "") -> str:
        def asked() -> str:
            headers = {"Authorization": bearer} if bearer else {}
            self.wire.request("GET", "/v1/topics", headers=headers)
            assert self.socket in {None, self.wire.sock}, "it is another connection"
            self.socket = self.wire.sock
            answer = self.wire.getresponse()
            body = answer.read().decode()
            return NOBODY if answer.status == 401 else named(body)

        return await asyncio.to_thread(asked)


def test_callers_who_share_a_connection_are_each_who_they_are(tmp_path: Path) -> None:
    async def check() -> None:
        async with secured(tmp_path) as it, it.channel(it.folder.client("alice")) as channel:
            alice = it.folder.client("alice")
            bob = f"Bearer {(await it.admin.create_token('bob', 'ci')).secret}"
            wrong = f"Bearer angt_{'A' * 43}"
            kept, stub = KeptOpen(it, alice), BrokerStub(channel)

            async def by_call(bearer: str) -> str:
                metadata = (("authorization", bearer),) if bearer else ()
                asking: Any = stub.ListTopics
                try:
                    answer = await asking(
                        pb.ListTopicsRequest(), metadata=metadata, timeout=ANSWER_S
                    )
                except grpc.aio.AioRpcError as error:
                    return REFUSALS[error.code()]
                return named(str(answer))

            for bearer, who in (("", "alice"), (bob, "bob"), ("", "alice"), (wrong, NOBODY)) * 2:
                assert await kept.seen(bearer) == who
                assert await by_call(bearer) == who
            await it.admin.alter_user("alice", is_locked=True)
            for bearer, who in (("", NOBODY), (bob, "bob"), ("", NOBODY)):
                assert await kept.seen(bearer) == who
                assert await by_call(bearer) == who
            # Who gets her name is her, to the certificate; what was hers is gone with her.
            await it.admin.delete_user("alice")
            assert (await kept.seen(), await by_call("")) == (NOBODY, NOBODY)
            await it.admin.create_user("alice")
            assert "of-alice" not in await kept.seen()
            kept.wire.close()

    run(check(), within_s=WITHIN_S)


def test_a_certificate_for_one_thing_is_good_for_nothing_else(tmp_path: Path) -> None:
    async def check() -> None:
        async with secured(tmp_path) as it:
            folder = it.folder
            alice, node = folder.client("alice"), folder.node("another")
            assert not await asks_as_nobody(it, ClientTls(folder.options(alice)))
            # Those of users where nodes are asked for theirs, those of nodes as users', and both
            # as what they are not.
            for tls in (
                ToNodes(folder.options(alice)),
                ToNodes(folder.options(node)),
                ClientTls(folder.options(node)),
                NodeTls(folder.files(node)),
            ):
                assert await asks_as_nobody(it, tls)
            for tls in (ClientTls(folder.options(alice)), ToNodes(folder.options(alice))):
                for role in (Role.PEER, Role.PEER_BULK):
                    assert await asks_as_nobody(it, tls, role)

    run(check(), within_s=WITHIN_S)


def test_who_says_more_than_its_certificate_takes_no_place_of_its_user(tmp_path: Path) -> None:
    async def check() -> None:
        async with secured(tmp_path) as it:
            alice = it.folder.client("alice")
            await it.admin.set_quota(QuotaSubject.USER, "alice", {QuotaKind.CONNECTIONS: 1})
            token = (await it.admin.create_token("bob", "ci")).secret
            hers = (await it.admin.create_token("alice", "too")).secret
            async with asyncio.timeout(ENDS_S_MAX):
                for brought, who in (
                    (token, "bob"),
                    (hers, "alice"),
                    (token, "bob"),
                    ("", "alice"),
                ):
                    for ask in (by_socket, by_graphql_socket):
                        # A socket that was closed is gone a moment later.
                        while await ask(it, alice, brought) != who:  # noqa: ASYNC110
                            await asyncio.sleep(0.1)

    run(check(), within_s=WITHIN_S)


def test_what_a_certificate_has_opened_ends_with_its_user(tmp_path: Path) -> None:
    async def check() -> None:
        async with secured(tmp_path) as it, AsyncExitStack() as opened:
            alice = it.folder.client("alice")
            wire = await dial(
                host=LOCALHOST,
                port=it.ports["NodePart"],
                hello=Hello(role=Role.CLIENT),
                tls=ClientTls(it.folder.options(alice)),
                timeout_s=ANSWER_S,
            )
            await wire.request(Operation.LIST_TOPICS, timeout_s=ANSWER_S)
            stub: Any = BrokerStub(await opened.enter_async_context(it.channel(alice)))
            interest = pb.Interest(topic="of-alice", partition=0)
            wanted = pb.SubscribeRequest(open=pb.SubscribeRequest.Open(interests=[interest]))

            async def wishes() -> AsyncIterator[Any]:
                yield wanted
                await asyncio.Event().wait()

            call = stub.Subscribe(wishes())
            await call.initial_metadata()
            publishing = stub.PublishStream()
            record = pb.PublishStreamRequest(
                publish=pb.PublishRequest(topic="of-alice", record=pb.NewRecord(value=b"x"))
            )
            await publishing.write(record)
            await publishing.read()
            events = asyncio.create_task(
                it.get(alice, "GET", "/v1/topics/of-alice/stream?start=live")
            )
            socket = await opened.enter_async_context(it.socket("/v1/socket", alice))
            await socket.send(json.dumps({"type": "subscribe", "id": "1", "topic": "of-alice"}))
            assert json.loads(await socket.recv())["type"] == "subscribed"
            protocol = Subprotocol("graphql-transport-ws")
            graphql = await opened.enter_async_context(
                it.socket("/graphql", alice, subprotocols=[protocol])
            )
            await graphql.send('{"type": "connection_init"}')
            await graphql.recv()
            query = {"query": 'subscription { subscribe(topic: "of-alice") { id } }'}
            await graphql.send(json.dumps({"type": "subscribe", "id": "1", "payload": query}))
            await asyncio.sleep(1.0)  # two of them say nothing when they are open

            await it.admin.alter_user("alice", is_locked=True)
            async with asyncio.timeout(ENDS_S_MAX):
                while wire.is_open:  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
                assert isinstance(wire.error, Unauthenticated), wire.error
                with pytest.raises(grpc.aio.AioRpcError) as ended:
                    async for _ in call:
                        pass
                assert ended.value.code() is grpc.StatusCode.UNAUTHENTICATED
                status, told = await events
                assert status in {200, 401}
                assert "UNAUTHENTICATED" in told
                assert json.loads(await socket.recv())["code"] == "UNAUTHENTICATED"
                assert "UNAUTHENTICATED" in str(await graphql.recv())
                # Nor can anything be begun on what is left open.
                await socket.send(
                    json.dumps({"type": "publish", "id": "2", "topic": "of-alice", "record": {}})
                )
                assert json.loads(await socket.recv())["code"] == "UNAUTHENTICATED"
                await publishing.write(record)
                refusal = await publishing.read()
                assert "UNAUTHENTICATED" in str(refusal) or refusal == grpc.aio.EOF
            assert await by_grpc(it, alice, "") == NOBODY

    run(check(), within_s=WITHIN_S)
