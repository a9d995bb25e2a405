"""Clients of the broker hermes, unchanged: generated from its schema, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin

import pytest
from tests.doors.cluster_of_doors import run
from tests.doors.compat.calls import hermes_calls
from tests.doors.compat.generated_client import told
from tests.doors.compat.profiles_on import TOKEN, Profiles
from tests.doors.speaking import http
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from angarium.client import Client
from angarium.testing.cluster.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path


class Hermes(NamedTuple):
    """Where the listeners of the profile are, on a node of three."""

    grpc: str
    http: str


@pytest.fixture
def hermes(profiles: Profiles) -> Hermes:
    one = profiles.listeners[0]
    return Hermes(one.hermes, one.hermes_http)


def test_a_client_generated_from_its_schema_works_unchanged(
    profiles: Profiles, tmp_path: Path
) -> None:
    """Through every node of a cluster; one of them leads, and the others say who."""
    addresses = [one.hermes for one in profiles.listeners]
    member = profiles.cluster.nodes[0].wire
    told(
        tmp_path,
        schema="hermes.proto",
        story="hermes_story.py",
        arguments=[",".join(addresses), TOKEN, member],
    )


def test_its_http_routes_publish_and_stream(hermes: Hermes) -> None:
    async def story() -> None:
        one = {"topic": "bulletin", "payload": "first", "mode": 0}
        answer = await http(hermes.http, "POST", "/publish", one)
        assert (answer.status, answer.json) == (200, {"success": True})
        many = {"topic": "bulletin", "payloads": ["second", "third"], "mode": 1}
        answer = await http(hermes.http, "POST", "/publish/batch", many)
        assert answer.json == {"count": 2, "success": True}
        host, _, port = hermes.http.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        target = "/subscribe?topic=bulletin&group=readers"
        writer.write(f"GET {target} HTTP/1.1\r\nHost: {hermes.http}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"text/event-stream" in head
        text = b""
        while text.count(b"\n\n") < 4:
            size = int((await reader.readline()).strip(), 16)
            text += (await reader.readexactly(size + 2))[:-2]

        async def are_counted() -> bool:
            stats = (await http(hermes.http, "GET", "/status")).json["stats"]
            counted = stats["topics"]["bulletin"]
            return (counted["active_subscribers"], counted["consumed_total"]) == (1, 3)

        await eventually(are_counted, what="one subscriber and three messages")
        writer.close()
        blocks = text.decode().split("\n\n")
        assert blocks[0].startswith('event: connected\ndata: {"sub_id":')
        shown = [json.loads(one.removeprefix("data: ")) for one in blocks[1:4]]
        assert [one["payload"] for one in shown] == ["first", "second", "third"]
        assert shown[0].keys() == {"id", "payload", "timestamp", "topic"}

    run(story())


@pytest.mark.parametrize(
    ("method", "target", "body", "status"),
    [
        ("POST", "/publish", b"{", 400),
        ("POST", "/publish", {"payload": "x"}, 400),
        ("POST", "/publish", {"topic": "", "payload": "x"}, 400),
        ("POST", "/publish", {"topic": "a"}, 400),
        ("POST", "/publish", {"topic": "a", "payload": ""}, 400),
        ("GET", "/nowhere", None, 404),
        ("POST", "/publish", {"topic": "a", "payload": 5}, 400),
        ("POST", "/publish", b"[]", 400),
        ("POST", "/publish", b"null", 400),
        ("POST", "/publish/batch", {"topic": "a", "payloads": []}, 400),
        ("GET", "/publish", None, 405),
        ("GET", "/subscribe", None, 400),
        ("POST", "/join", {"node_id": "x", "raft_addr": "y"}, 403),
    ],
)
def test_bad_input_is_told_in_a_plain_sentence(
    hermes: Hermes, method: str, target: str, body: object, status: int
) -> None:
    answer = run(http(hermes.http, method, target, body))
    assert answer.status == status
    assert answer.headers["content-type"].startswith("text/plain")
    assert len(answer.body.splitlines()) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"Topic": "as-there", "PAYLOAD": "x", "Mode": 1},
        {"topic": "as-there", "payload": "x", "mode": 9},
        {"topic": "as-there", "payload": "x", "mode": None, "colour": "red"},
        b'{"topic": "b", "payload": "x", "topic": "as-there"}',
        b'{"topic": "as-there", "payload": "x"} and more',
        b'\n {"topic": "as-there", "payload": "\xff"}',
        b'{"topic": "as-there", "payload": "\\ud800"}',
    ],
)
def test_bodies_are_read_as_they_were_there(hermes: Hermes, body: object) -> None:
    """Its JSON was Go's: names in any case, modes that are none mean the default."""
    answer = run(http(hermes.http, "POST", "/publish", body))
    assert (answer.status, answer.json) == (200, {"success": True})


def test_what_the_original_takes_is_taken(hermes: Hermes) -> None:
    async def story() -> None:
        assert (await http(hermes.http, "POST", "/status")).json["stats"]
        async with hermes_calls(hermes.grpc) as client:
            nothing = client.message("PublishBatchRequest", topic="as-there")
            assert (await client.PublishBatch(nothing)).success
            odd = client.message("PublishRequest", topic="as-there", payload=b"x", mode=7)
            assert (await client.Publish(odd)).success
        query = 'mutation { publishBatch(topic: "as-there", payloads: []) { success } }'
        answer = await http(hermes.http, "POST", "/query", {"query": query})
        assert answer.json == {"data": {"publishBatch": {"success": True}}}
        async with connect(f"ws://{hermes.http}/query", proxy=None) as ws:
            # Whoever names no protocol speaks the older one, as its library has it.
            await ws.send('{"type": "connection_init"}')
            assert json.loads(await ws.recv()) == {"type": "connection_ack"}
            await ws.send('{"type": "start", "id": "1", "payload": {"query": "{ health }"}}')
            assert json.loads(await ws.recv())["type"] == "data"

    run(story())


def test_leaders_are_named_where_that_helps(profiles: Profiles) -> None:
    """Of a topic with one partition, over HTTP as over gRPC; not of one whose leaders are many:
    a client that follows the hint of every record would go from node to node."""

    async def hints(topic: str) -> list[str | None]:
        told = []
        for one in profiles.listeners:
            body = {"topic": topic, "payload": "x"}
            answer = await http(one.hermes_http, "POST", "/publish", body)
            assert answer.status == 200
            told.append(answer.headers.get("x-leader-hint"))
            query = f'mutation {{ publish(topic: "{topic}", payload: "x") {{ success }} }}'
            for _ in range(2):  # the first one may have to ask what the topic is
                answer = await http(one.hermes_http, "POST", "/query", {"query": query})
            assert answer.headers.get("x-leader-hint") == told[-1]
        return told

    async def grpc_hints(topic: str) -> list[str | bytes | None]:
        told = []
        for one in profiles.listeners:
            async with hermes_calls(one.hermes) as client:
                for _ in range(3):
                    call = client.Publish(
                        client.message("PublishRequest", topic=topic, payload=b"x")
                    )
                    assert (await call).success
                    told.append(dict(await call.initial_metadata()).get("x-leader-hint"))
        return told

    async def story() -> None:
        async with Client(*profiles.servers) as client:
            await client.create_topic("led-by-one", partitions=1)
            await client.create_topic("led-by-many", partitions=3)
        assert set(await hints("led-by-many")) == {None}
        assert set(await grpc_hints("led-by-many")) == {None}

        async def agree() -> bool:
            """A partition may get another leader soon after its topic was made."""
            told = await hints("led-by-one")
            if told.count(None) != 1:
                return False
            leader = profiles.listeners[told.index(None)]
            return {one for one in told if one} == {leader.hermes_http} and set(
                await grpc_hints("led-by-one")
            ) == {None, leader.hermes}

        await eventually(agree, what="all but the leader name the leader")

    run(story())


def test_join_over_http_is_answered_with_the_token_only(hermes: Hermes, profiles: Profiles) -> None:
    async def story() -> None:
        body = {"node_id": "1", "raft_addr": profiles.cluster.nodes[1].wire}
        stranger = await http(hermes.http, "POST", "/join", body, Authorization="Bearer guess")
        assert stranger.status == 403
        known = await http(hermes.http, "POST", "/join", body, Authorization=f"Bearer {TOKEN}")
        assert (known.status, known.json) == (200, {"success": True})

    run(story())


def test_its_status_and_graphql_answer_as_they_did(hermes: Hermes) -> None:
    async def story() -> None:
        status = (await http(hermes.http, "GET", "/status")).json
        assert {"published_total", "uptime"} <= status["stats"]["global"].keys()
        query = 'mutation { publish(topic: "g", payload: "x", mode: CONSISTENT) { success } }'
        answer = await http(hermes.http, "POST", "/query", {"query": query})
        assert answer.json == {"data": {"publish": {"success": True}}}
        assert b"<html" in (await http(hermes.http, "GET", "/")).body
        async with connect(
            f"ws://{hermes.http}/query", subprotocols=[Subprotocol("graphql-ws")], proxy=None
        ) as ws:
            await ws.send('{"type": "connection_init"}')
            await ws.recv()
            wish = 'subscription { subscribe(topic: "g", groupId: "__REPLAY__") { payload } }'
            await ws.send(json.dumps({"type": "start", "id": "1", "payload": {"query": wish}}))
            message = json.loads(await ws.recv())
            assert message["payload"]["data"] == {"subscribe": {"payload": "x"}}

    run(story())


def test_the_page_asks_where_it_is_answered(hermes: Hermes) -> None:
    """It is served at / and at /query, and what it asks goes to /query either way."""

    async def story() -> None:
        for path in ("/", "/query"):
            page = (await http(hermes.http, "GET", path)).body.decode()
            (name,) = re.findall(r'new URL\("([^"]+)", location.href\)', page)
            endpoint = urljoin(f"http://{hermes.http}{path}", name).removeprefix(
                f"http://{hermes.http}"
            )
            answer = await http(hermes.http, "POST", endpoint, {"query": "{ health }"})
            assert answer.json == {"data": {"health": "ok"}}
            assert b"type Message" in (await http(hermes.http, "GET", f"{endpoint}/schema")).body

    run(story())


@pytest.mark.parametrize("group", ["", "readers-of-new-ones", None])
def test_a_subscription_over_graphql_makes_the_topic(
    hermes: Hermes, profiles: Profiles, group: str | None
) -> None:
    """As over gRPC; and a group that begins here sends its dead letters where theirs go."""

    async def story() -> None:
        topic = f"made-by-{group or type(group).__name__}"
        wish = """subscription($t: String!, $g: String) {
          subscribe(topic: $t, groupId: $g) { payload } }"""
        async with (
            connect(
                f"ws://{hermes.http}/query",
                subprotocols=[Subprotocol("graphql-transport-ws")],
                proxy=None,
            ) as ws,
            Client(*profiles.servers) as client,
        ):
            await ws.send('{"type": "connection_init"}')
            await ws.recv()
            payload = {"query": wish, "variables": {"t": topic, "g": group}}
            await ws.send(json.dumps({"type": "subscribe", "id": "1", "payload": payload}))
            receiving = asyncio.create_task(ws.recv())
            async with asyncio.timeout(60):
                while not receiving.done():
                    # What comes before the subscription has begun is nobody's.
                    await http(hermes.http, "POST", "/publish", {"topic": topic, "payload": "x"})
                    await asyncio.wait((receiving,), timeout=0.2)
            assert json.loads(await receiving)["payload"] == {
                "data": {"subscribe": {"payload": "x"}}
            }
            if group:
                config = (await client.group(group).describe()).config
                assert config.dead_letter_topic == "hermes.dlq"

    run(story())
