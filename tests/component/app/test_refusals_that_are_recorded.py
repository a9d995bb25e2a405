"""Whoever is turned away before anything is looked at leaves an audit record, on every door."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest
import websockets
from tests.component.app.test_doors_that_ask_who import Running, running
from tests.component.doors.http.opened_http import LOCALHOST
from tests.on_a_loop import run

from angarium.api import FetchRequest
from angarium.api.access import Proof
from angarium.api.audit import AUDIT_TOPIC, AuditEvent, AuditOutcome, AuditRecord, decoded
from angarium.api.stored_records import fetched_records
from angarium.app.composition import NodePart
from angarium.errors import AngariumError, Unauthenticated
from angarium.ids import Incarnation, Offset
from angarium.security.tls import UntrustedNode
from angarium.wire import Hello, Role, dial
from angarium.wire.operations import JoinHeader, Operation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SOON_S = 60.0

ASKED = {"type": "publish", "id": "1", "topic": "orders", "record": {"value": "x"}}


async def until(it: Running, is_there: Callable[[list[AuditRecord]], bool]) -> list[AuditRecord]:
    """Return the audit records as soon as they say so."""
    (part,) = [one for one in it.parts if isinstance(one, NodePart)]
    request = FetchRequest(topic=AUDIT_TOPIC, partition=0, offset=Offset(0), bytes_max=1 << 20)
    found: list[AuditRecord] = []
    async with asyncio.timeout(SOON_S):
        while not is_there(found):
            await asyncio.sleep(0.05)
            result = await part.service.fetch(request)
            records, _ = fetched_records(result, request, limit=10_000)
            told = [decoded(one.value or b"") for one in records]
            found = [one for one in told if one is not None]
    return found


def test_who_brings_no_proof_at_all_is_recorded_on_every_door(tmp_path: Path) -> None:
    def from_nobody(records: list[AuditRecord], door: str) -> int:
        return sum(
            one.count
            for one in records
            if (one.event, one.proof, one.door) == (AuditEvent.LOGIN, Proof.NONE, door)
        )

    async def check() -> None:
        async with running(tmp_path) as it:
            # With a body it is refused before that is read.
            answer = await it.ask("POST", "/v1/topics/orders/records", {"value": "x"})
            assert answer.status == 401
            await until(it, lambda found: from_nobody(found, "http") == 1)

            where = f"ws://{LOCALHOST}:{it.ports['HttpDoor']}"
            async with websockets.connect(f"{where}/v1/socket") as socket:
                await socket.send(json.dumps(ASKED))
                assert "UNAUTHENTICATED" in str(await socket.recv())
            protocols = [websockets.Subprotocol("graphql-transport-ws")]
            async with websockets.connect(f"{where}/graphql", subprotocols=protocols) as socket:
                await socket.send(json.dumps({"type": "connection_init"}))
                with pytest.raises(websockets.ConnectionClosed):
                    await socket.recv()
            await until(it, lambda found: from_nobody(found, "http") == 3)

            stranger = await dial(
                host=LOCALHOST, port=it.ports["NodePart"], hello=Hello(role=Role.CLIENT)
            )
            with pytest.raises(Unauthenticated):
                await stranger.request(Operation.LIST_TOPICS, timeout_s=SOON_S)
            await stranger.close()
            await until(it, lambda found: from_nobody(found, "wire") == 1)

    run(check())


def test_listeners_for_earlier_clients_say_where_a_refusal_came_from(tmp_path: Path) -> None:
    async def refused(channel: Any, method: str, asked: bytes) -> None:
        with pytest.raises(grpc.aio.AioRpcError):
            await channel.unary_unary(method)(asked, timeout=SOON_S)

    async def check() -> None:
        compat: dict[str, Any] = {"geo_grpc_port": 0, "bale_grpc_port": 0, "hermes_grpc_port": 0}
        compat |= {"bale_user": "bale", "hermes_user": "hermes", "hermes_http_port": 0}
        async with running(tmp_path, **compat) as it:
            for name in ("bale", "hermes"):
                await it.admin.create_user(name)
            await it.admin.create_topic("orders")
            for door, method, asked in (
                ("GeoDoor", "/broker.Broker/Publish", b"\n\x06orders\x12\x01x"),
                ("BaleDoor", "/broker.Broker/Publish", b"\n\x06orders\x12\x01x"),
                ("HermesDoor", "/broker.BrokerService/Publish", b"\n\x06orders\x12\x01x"),
            ):
                where = f"{LOCALHOST}:{it.ports[door]}"
                async with grpc.aio.insecure_channel(where) as channel:
                    await refused(channel, method, asked)
            wanted = {
                (AuditEvent.LOGIN, "", "geo"),
                (AuditEvent.DENIAL, "bale", "bale"),
                (AuditEvent.DENIAL, "hermes", "hermes"),
            }
            await until(
                it,
                lambda found: (
                    wanted
                    <= {(one.event, one.who, one.door) for one in found if one.address == LOCALHOST}
                ),
            )

    run(check())


def test_who_is_not_taken_for_a_node_is_recorded(tmp_path: Path) -> None:
    def turned_away(records: list[AuditRecord]) -> set[str]:
        return {
            one.what
            for one in records
            if (one.event, one.outcome) == (AuditEvent.NODE, AuditOutcome.DENIED)
            and (one.door, one.address) == ("wire", LOCALHOST)
            and "no node certificate" in one.rule
        }

    async def check() -> None:
        async with running(tmp_path) as it:
            port = it.ports["NodePart"]
            stranger = await dial(host=LOCALHOST, port=port, hello=Hello(role=Role.CLIENT))
            wish = JoinHeader(
                None, Incarnation(4242), (("wire", "127.0.0.1:1"),), "", "", "mallory", 1, 9
            )
            with pytest.raises(UntrustedNode):
                await stranger.request(Operation.JOIN, wish, timeout_s=SOON_S)
            theirs = stranger.peer.hello
            await stranger.close()
            as_node = Hello(
                role=Role.PEER, cluster=theirs.cluster, node=7, features=theirs.features
            )
            with pytest.raises(AngariumError, match="trust_peers"):
                await dial(host=LOCALHOST, port=port, hello=as_node)
            await until(
                it, lambda found: turned_away(found) == {"a wish to join", "a greeting as node 7"}
            )

    run(check())
