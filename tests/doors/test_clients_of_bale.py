"""What else clients of bale are promised: ids, gaps, broadcasts, refusals and metrics."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from tests.doors.cluster_of_doors import run
from tests.doors.compat.bale_client import Bale, refusal
from tests.doors.speaking import http

from angarium.client import Client
from angarium.wire import Hello, Role, dial
from angarium.wire.operations import Operation, ReserveAnswer, ReserveHeader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.doors.compat.profiles_on import Profiles

INVALID = grpc.StatusCode.INVALID_ARGUMENT
PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION


def test_ids_count_up_through_every_node_and_are_offsets(profiles: Profiles) -> None:
    async def story() -> None:
        clients = [Bale(one.bale) for one in profiles.listeners]
        for number in range(9):
            assert await clients[number % 3].publish("numbered", b"%d" % number) == number
            # Whoever asks, and wherever: it is there as soon as it has an id.
            assert await clients[(number + 1) % 3].fetch("numbered", number) == b"%d" % number
        async with Client(*profiles.servers) as client:
            assert (await client.fetch_one("numbered", 0, 4, fresh=True)).value == b"4"
        for one in clients:
            await one.channel.close()

    run(story())


def test_a_reserved_id_is_a_gap_for_ever(profiles: Profiles) -> None:
    async def story() -> None:
        async with Bale(profiles.listeners[0].bale) as one, Bale(profiles.listeners[2].bale) as two:
            assert await one.inc_idx("gaps") == 0
            subscriber = await two.subscribe("gaps")
            assert await two.publish("gaps", b"one") == 1
            assert await two.inc_idx("gaps") == 2
            assert await one.inc_idx("gaps") == 3
            assert await one.publish("gaps", b"four") == 4
            assert await subscriber.next() == b"one"
            assert await subscriber.next() == b"four"
            code, text = await refusal(one.fetch("gaps", 2))
            assert (code, "none was published" in text) == (INVALID, True)
            assert await one.fetch("gaps", 4) == b"four"

    run(story())


def test_a_broadcast_reaches_the_live_subscribers_of_every_node_and_is_stored_nowhere(
    profiles: Profiles,
) -> None:
    async def story() -> None:
        clients = [Bale(one.bale) for one in profiles.listeners]
        subscribers = [await client.subscribe("loud") for client in clients]
        heard: list[bytes] = []
        async with asyncio.timeout(60):
            # Nodes tell each other who listens within a moment, and no answer says when.
            while len(heard) < 3:
                assert await clients[0].broadcast("loud", b"now")
                heard = []
                for one in subscribers:
                    try:
                        heard.append(await one.next(within_s=1.0))
                    except TimeoutError:
                        break
        assert heard == [b"now"] * 3
        assert await clients[1].publish("loud", b"first") == 0
        code, _ = await refusal(clients[1].fetch("loud", 1))
        assert code is INVALID
        for client in clients:
            await client.channel.close()

    run(story())


def test_a_topic_with_more_than_one_partition_is_a_failed_precondition(profiles: Profiles) -> None:
    async def story() -> None:
        async with Client(*profiles.servers) as client:
            await client.create_topic("wide", partitions=2)
        async with Bale(profiles.listeners[0].bale) as bale:
            for work in (
                bale.publish("wide", b"x"),
                bale.fetch("wide", 0),
                bale.broadcast("wide", b"x"),
                bale.inc_idx("wide"),
                bale.subscribe("wide"),
            ):
                code, text = await refusal(work)
                assert (code, "partition" in text) == (PRECONDITION, True)

    run(story())


def test_ids_end_at_two_to_the_thirty_first(profiles: Profiles) -> None:
    async def reserve(count: int) -> int:
        host, _, port = profiles.servers[0].rpartition(":")
        connection = await dial(
            host=host, port=int(port), hello=Hello(role=Role.CLIENT), timeout_s=30.0
        )
        header = ReserveHeader("long", 0, count)
        answer = await connection.request(Operation.RESERVE, header, timeout_s=30.0)
        await connection.close(timeout_s=1.0)
        return answer.read(ReserveAnswer).offset

    async def story() -> None:
        async with Bale(profiles.listeners[0].bale) as bale:
            assert await bale.publish("long", b"first") == 0
            assert await reserve((1 << 31) - 2) == 1
            last = (1 << 31) - 1
            assert await bale.publish("long", b"last") == last
            assert await bale.fetch("long", last) == b"last"
            assert await bale.fetch("long", 0) == b"first"
            for _ in range(2):
                code, text = await refusal(bale.publish("long", b"too many"))
                assert (code, "2,147,483,648 ids" in text) == (PRECONDITION, True)
            assert (await refusal(bale.inc_idx("long")))[0] is PRECONDITION
        async with Client(*profiles.servers) as client:
            # Nothing of what was refused is there; through other doors it goes on.
            assert (await client.publish("long", b"on")).offset == last + 1

    run(story())


def test_wrong_requests_are_told_in_a_sentence(profiles: Profiles) -> None:
    async def story() -> None:
        async with Bale(profiles.listeners[0].bale) as bale:
            await bale.publish("right", b"x")
            for work, said in (
                (bale.publish("", b"x"), "subject is required"),
                (bale.publish("right", b"x", -1), "expirationSeconds"),
                (bale.publish("no/name", b"x"), "single dots"),
                (bale.fetch("right", 99), "none was published"),
                (bale.fetch("right", -1), "none was published"),
                (bale.fetch("never-heard-of", 0), "none was published"),
            ):
                code, text = await refusal(work)
                assert code is INVALID, text
                assert said in text

    run(story())


def test_reflection_names_the_original_service(profiles: Profiles) -> None:
    async def story() -> None:
        async with Bale(profiles.listeners[0].bale) as bale:
            stub = reflection_pb2_grpc.ServerReflectionStub(bale.channel)

            async def wishes() -> AsyncIterator[reflection_pb2.ServerReflectionRequest]:
                yield reflection_pb2.ServerReflectionRequest(file_containing_symbol="broker.Broker")

            answers = [one async for one in stub.ServerReflectionInfo(wishes())]
            assert b"newIdx" in answers[0].file_descriptor_response.file_descriptor_proto[0]

    run(story())


@pytest.mark.parametrize("which", [0, 1])
def test_both_families_of_metrics_are_served_on_both_ports(profiles: Profiles, which: int) -> None:
    async def story() -> str:
        listeners = profiles.listeners[1]
        async with Bale(listeners.bale) as bale:
            subscriber = await bale.subscribe("counted")
            await bale.publish("counted", b"x")
            await refusal(bale.fetch("counted", 77))
            answer = await http(listeners.bale_metrics[which], "GET", "/metrics")
            subscriber.cancel()
        assert answer.status == 200
        assert answer.headers["content-type"].startswith("text/plain")
        return answer.body.decode()

    page = run(story())
    for line in (
        r'rpc_request_get_method_count\{method="publish",status="successful"\} [1-9]',
        r'rpc_request_get_method_count\{method="fetch",status="failed"\} [1-9]',
        r'rpc_request_get_method_duration\{rpc_duration="publish_duration",quantile="0.99"\} [0-9]',
        r'rpc_request_get_method_duration_count\{rpc_duration="publish_duration"\} [1-9]',
        r"active_subscribers [1-9]",
        r'broker_successful_rpc_calls\{method="Publish"\} [1-9]',
        r'broker_failed_rpc_calls\{method="Fetch"\} [1-9]',
        r'broker_server_method_duration_seconds_bucket\{method="Publish",le="0.05"\} [0-9]',
        r"broker_active_subscribers [1-9]",
    ):
        assert re.search(rf"^{line}", page, re.MULTILINE), line
