"""Two of three nodes are dead: whoever asks the third one hears what is missing, by every door.

Each door says the same sentence: which partition has how many of its replicas, and which nodes have
to come back. None speaks of an election, none names a group of Raft by its number.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc.aio
import pytest
from tests.doors.cluster_of_doors import run
from tests.doors.compat.calls import bale_calls, geo_calls, hermes_calls
from tests.doors.compat.profiles_on import Listeners, profiles_on
from tests.doors.compat.speaking_profiles import PROOF
from tests.doors.speaking import http
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from angarium.app.gateway import GatewayPart
from angarium.client import Client, ClientSettings
from angarium.errors import AngariumError, NotLeader
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.bench.cluster import BenchNode

TOPIC = "orders"
GROUP = "workers"


class Last(NamedTuple):
    """The node that is left, and who is missing."""

    node: BenchNode
    listeners: Listeners
    missing: str

    @property
    def partition(self) -> str:
        return (
            f"partition 0 of {TOPIC} has 1 of 3 replicas: it cannot take records until 2 are "
            f"there; missing: {self.missing}"
        )

    @property
    def catalog(self) -> str:
        return (
            "the catalog has 1 of 3 voters: topics, groups and nodes cannot be changed, nor new "
            f"producers let in, until 2 are there; missing: {self.missing}"
        )


@pytest.fixture(scope="module")
def last(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Last]:
    async def lose_two() -> list[tuple[int, str]]:
        async with Client(*found.servers) as client:
            await client.create_topic(TOPIC)
            await client.publish_batch(TOPIC, [b"one", b"two"])
            nodes = (await client.cluster_status()).nodes
        for node in others:
            os.kill(node.pid, signal.SIGKILL)
        async with asyncio.timeout(60):
            ready = b""
            while b"partition 0 of orders has 1 of 3" not in ready:
                await asyncio.sleep(0.1)
                ready = (await http(one.http, "GET", "/readyz")).body
        known = [(member.id, member.addresses["wire"]) for member in nodes]
        return [(id_, address) for id_, address in known if address != one.wire]

    with profiles_on(tmp_path_factory.mktemp("majority"), nodes=3) as found:
        one, *others = found.cluster.nodes
        lost = asyncio.run(lose_two())
        missing = ", ".join(f"node {id_} ({address})" for id_, address in lost)
        yield Last(one, found.listeners[0], missing)


# --- asking, door by door ------------------------------------------------------------------------

Ask = Callable[[Last], Awaitable[str]]
"""Asks through one door, and returns what was said."""


async def refusal(work: Awaitable[object]) -> str:
    try:
        answer = await work
    except (AngariumError, grpc.aio.AioRpcError) as error:
        details = error.details() if isinstance(error, grpc.aio.AioRpcError) else str(error)
        return str(details)
    return f"not refused: {answer!r}"


def wire(ask: Callable[[Client], Awaitable[object]]) -> Ask:
    async def asked(last: Last) -> str:
        # A timeout of its own for whoever has not learned of the loss yet.
        settings = ClientSettings(publish_timeout_s=20, request_timeout_s=20)
        async with Client(last.node.wire, settings=settings) as client:
            return await refusal(ask(client))

    return asked


async def first_record(records: Any) -> object:
    async with records:
        async for record in records:
            return record
    return None


def grpc_call(ask: Callable[[Any], Awaitable[object]]) -> Ask:
    async def asked(last: Last) -> str:
        async with grpc.aio.insecure_channel(last.node.grpc) as channel:
            return await refusal(ask(BrokerStub(channel)))

    return asked


async def grpc_subscribed(stub: Any, **opening: Any) -> object:
    call = stub.Subscribe()
    await call.write(pb.SubscribeRequest(open=pb.SubscribeRequest.Open(**opening)))
    return await call.read()


def rest(method: str, target: str, body: object = None, *, status: int = 503) -> Ask:
    async def asked(last: Last) -> str:
        return await told(last.node.http, method, target, body, status=status)

    return asked


async def told(address: str, method: str, target: str, body: object, *, status: int) -> str:
    answer = await http(address, method, target, body)
    assert answer.status == status, answer
    return answer.body.decode()


async def gateway_publish(last: Last) -> str:
    part = GatewayPart((last.node.wire,), host="127.0.0.1", port=0)
    try:
        address = f"127.0.0.1:{await part.start()}"
        target = f"/v1/topics/{TOPIC}/records"
        return await told(address, "POST", target, {"value": "x"}, status=503)
    finally:
        await part.stop()


def socket(**message: Any) -> Ask:
    async def asked(last: Last) -> str:
        async with connect(f"ws://{last.node.http}/v1/socket", proxy=None) as ws:
            await ws.send(json.dumps({"id": "x", **message}))
            answer = json.loads(await ws.recv())
            assert answer["type"] == "error", answer
            return str(answer["detail"])

    return asked


def graphql(query: str) -> Ask:
    return rest("POST", "/graphql", {"query": query}, status=200)


async def graphql_subscribe(last: Last) -> str:
    query = f'subscription {{ subscribe(topic: "{TOPIC}") {{ id }} }}'
    async with connect(
        f"ws://{last.node.http}/graphql",
        subprotocols=[Subprotocol("graphql-transport-ws")],
        proxy=None,
    ) as ws:
        await ws.send('{"type": "connection_init"}')
        await ws.recv()
        await ws.send(json.dumps({"type": "subscribe", "id": "1", "payload": {"query": query}}))
        return str(await ws.recv())


def profile(opened: Any, listener: str, ask: Callable[[Any], Awaitable[object]]) -> Ask:
    async def asked(last: Last) -> str:
        async with opened(getattr(last.listeners, listener)) as calls:
            return await refusal(ask(calls))

    return asked


async def hermes_page(last: Last) -> str:
    body = {"topic": TOPIC, "payload": "x"}
    return await told(last.listeners.hermes_http, "POST", "/publish", body, status=503)


async def hermes_read(calls: Any, group: str) -> object:
    return await (await calls.subscribe(TOPIC, group)).read()


RECORDS = f"/v1/topics/{TOPIC}/records"
PARTITIONS = f'{{ topic(name: "{TOPIC}") {{ partitions {{ number trouble }} }} }}'

OF_THE_PARTITION: dict[str, Ask] = {
    "wire publish": wire(lambda client: client.publish(TOPIC, b"x", partition=0)),
    "wire batch": wire(lambda client: client.publish_batch(TOPIC, [b"x"], partition=0)),
    "wire subscribe": wire(lambda client: first_record(client.subscribe(TOPIC))),
    "wire consume": wire(lambda client: first_record(client.group(GROUP).consume(TOPIC))),
    "wire describe": wire(lambda client: client.describe_topic(TOPIC)),
    "wire list": wire(lambda client: client.list_topics()),
    "grpc publish": grpc_call(
        lambda stub: stub.Publish(pb.PublishRequest(topic=TOPIC, record=pb.NewRecord(value=b"x")))
    ),
    "grpc subscribe": grpc_call(
        lambda stub: grpc_subscribed(stub, interests=[pb.Interest(topic=TOPIC)])
    ),
    "grpc consume": grpc_call(
        lambda stub: grpc_subscribed(stub, group=pb.Membership(group=GROUP, topics=[TOPIC]))
    ),
    "grpc describe": grpc_call(
        lambda stub: stub.DescribeTopic(pb.DescribeTopicRequest(name=TOPIC))
    ),
    "rest publish": rest("POST", RECORDS, {"value": "x"}),
    "rest batch": rest("POST", f"{RECORDS}/batch", {"records": [{"value": "x"}]}),
    "rest fresh": rest("GET", f"/v1/topics/{TOPIC}/partitions/0/records?offset=0&fresh=true"),
    "rest describe": rest("GET", f"/v1/topics/{TOPIC}", status=200),
    "rest list": rest("GET", "/v1/topics", status=200),
    "ready": rest("GET", "/readyz"),
    "events": rest("GET", f"/v1/topics/{TOPIC}/stream"),
    "events of a group": rest("GET", f"/v1/topics/{TOPIC}/stream?group={GROUP}"),
    "gateway": gateway_publish,
    "socket publish": socket(type="publish", topic=TOPIC, record={"value": "x"}),
    "socket subscribe": socket(type="subscribe", topic=TOPIC),
    "socket consume": socket(type="consume", group=GROUP, topics=[TOPIC]),
    "graphql publish": graphql(
        f'mutation {{ publish(topic: "{TOPIC}", payload: "x") {{ success }} }}'
    ),
    "graphql describe": graphql(PARTITIONS),
    "graphql subscribe": graphql_subscribe,
    "hermes publish": profile(hermes_calls, "hermes", lambda calls: calls.publish(TOPIC, b"x")),
    "hermes subscribe": profile(hermes_calls, "hermes", lambda calls: hermes_read(calls, "")),
    "hermes consume": profile(hermes_calls, "hermes", lambda calls: hermes_read(calls, GROUP)),
    "hermes page": hermes_page,
    "bale publish": profile(
        bale_calls,
        "bale",
        lambda calls: calls.Publish(calls.message("PublishRequest", subject=TOPIC, body=b"x")),
    ),
    "bale number": profile(
        bale_calls,
        "bale",
        lambda calls: calls.IncIdx(calls.message("IncIdxRequest", subject=TOPIC)),
    ),
    "geo publish": profile(
        geo_calls,
        "geo",
        lambda calls: calls.Publish(
            calls.message("PublishRequest", topic=TOPIC, body=b"x"), metadata=PROOF
        ),
    ),
}

OF_THE_CATALOG: dict[str, Ask] = {
    "wire create": wire(lambda client: client.create_topic("more")),
    "grpc create": grpc_call(lambda stub: stub.CreateTopic(pb.CreateTopicRequest(name="more"))),
    "rest create": rest("POST", "/v1/topics", {"name": "more"}),
    "ready": rest("GET", "/readyz"),
}


def test_every_door_says_what_is_missing(last: Last) -> None:
    async def story() -> None:
        asked = [(name, last.partition, ask) for name, ask in OF_THE_PARTITION.items()]
        asked += [(name, last.catalog, ask) for name, ask in OF_THE_CATALOG.items()]
        answers = await asyncio.gather(
            *(asyncio.wait_for(ask(last), 60) for _, _, ask in asked), return_exceptions=True
        )
        wrong = {
            name: answer
            for (name, sentence, _), answer in zip(asked, answers, strict=True)
            if sentence not in str(answer)
        }
        assert not wrong, wrong

    run(story(), within_s=100)


def test_what_a_client_waits_for_is_told_while_it_waits(last: Last) -> None:
    async def story() -> None:
        told: list[tuple[float, str]] = []
        began = time.monotonic()
        settings = ClientSettings(publish_timeout_s=20)
        async with Client(
            last.node.wire,
            settings=settings,
            on_wait=lambda why: told.append((time.monotonic() - began, str(why))),
        ) as client:
            publishing = asyncio.ensure_future(client.publish(TOPIC, b"x", partition=0))
            async with asyncio.timeout(19):
                while not told:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            assert not publishing.done(), "the nodes may be back any moment"
            with pytest.raises(NotLeader, match="has 1 of 3 replicas"):
                await publishing
        assert told[0][0] >= 2, "an election is nobody's business"
        assert [why for _, why in told if why == last.partition]

    run(story())


# --- the command line ----------------------------------------------------------------------------


def command(last: Last, *words: str) -> tuple[int, str, list[tuple[float, str]]]:
    """Run a command; return its status, its output, and when each line of complaint came."""
    began = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "angarium", *words, "--servers", last.node.wire],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said = [(time.monotonic() - began, line.rstrip()) for line in process.stderr]
        return process.wait(), process.stdout.read(), said


ADVICE = "nodes that are missing have to come back: `angarium cluster status` shows them"


WAITING: list[tuple[bool, tuple[str, ...]]] = [
    (False, ("pub", TOPIC, "x")),
    (False, ("sub", TOPIC)),
    (False, ("sub", TOPIC, "--group", GROUP)),
    (True, ("topic", "create", "more")),
    (True, ("cluster", "remove", "2")),
    (True, ("cluster", "drain", "2")),
]
"""Commands that wait, and whether it is the catalog that they wait for."""


def when(said: list[tuple[float, str]], sentence: str) -> float:
    """Return when a sentence was said; after a minute the last resort may be named behind it."""
    return next(at for at, line in said if line.startswith(sentence))


def test_commands_say_what_they_wait_for_then_end_with_it(last: Last) -> None:
    def run_one(words: tuple[str, ...]) -> tuple[int, str, list[tuple[float, str]]]:
        return command(last, *words, "--timeout", "12")

    with ThreadPoolExecutor(len(WAITING)) as at_once:
        ended = list(at_once.map(run_one, [words for _, words in WAITING]))
    for (of_catalog, words), (status, printed, said) in zip(WAITING, ended, strict=True):
        sentence = last.catalog if of_catalog else last.partition
        assert (status, printed) == (5, ""), (words, said)
        assert ADVICE in said[-1][1], words
        waited = when(said, f"angarium: {sentence}") - when(said, f"angarium: waiting: {sentence}")
        assert waited > 4, f"{words} is told early, not at the end: {said}"


def test_describe_says_why_a_partition_has_no_leader(last: Last) -> None:
    status, printed, said = command(last, "topic", "describe", TOPIC)
    assert (status, said) == (0, [])
    assert printed.splitlines()[-1] == last.partition
    status, printed, _ = command(last, "topic", "describe", TOPIC, "--format", "json")
    (partition,) = json.loads(printed)["partitions"]
    assert (partition["leader"], partition["trouble"]) == (None, last.partition)
    status, printed, _ = command(last, "cluster", "status")
    assert last.partition in printed
    assert last.catalog in printed
