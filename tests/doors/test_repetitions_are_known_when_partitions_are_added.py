"""Requests sent again after their topic was given partitions: stored once all the same."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any

from tests.doors.cluster_of_doors import run
from tests.doors.speaking import Answer, http

from angarium.bench.cluster import BenchCluster
from angarium.client import Client

if TYPE_CHECKING:
    from pathlib import Path

REQUESTS = 24
TOPIC = "payments"
TARGET = f"/v1/topics/{TOPIC}/records"


async def until_answered(addresses: list[str], target: str, body: Any, **headers: str) -> Answer:
    """Send a request again and again, to one node after the other, as a careful client does."""
    async with asyncio.timeout(60):
        while True:
            for address in addresses:
                answer = await http(address, "POST", target, body, **headers)
                if answer.status not in (409, 503, 504):
                    return answer
                assert answer.json["retriable"], answer.json
            await asyncio.sleep(0.05)


def name(number: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, str(number)))


async def single(addresses: list[str], number: int) -> tuple[int, int, bool]:
    """Publish a record with a key of its own under an idempotency key."""
    body = {"value": f"single {number}", "key": f"customer {number}"}
    answer = await until_answered(addresses, TARGET, body, **{"Idempotency-Key": name(number)})
    return placed(answer)


async def keyless(addresses: list[str], number: int) -> tuple[int, int, bool]:
    """The same without a record's key: the idempotency key decides where it goes."""
    body = {"value": f"keyless {number}"}
    key = {"Idempotency-Key": f"keyless-{number}"}
    return placed(await until_answered(addresses, TARGET, body, **key))


async def numbered(addresses: list[str], number: int) -> tuple[int, None, bool]:
    """Publish a record with a key under a number of the client's own."""
    body = {"value": f"numbered {number}", "key": f"customer {number}"}
    sequence = {"Angarium-Sequence": f"importer:{number}"}
    answer = await until_answered(addresses, TARGET, body, **sequence)
    # Where it is is not remembered of an older number.
    partition, _, is_duplicate = placed(answer)
    return partition, None, is_duplicate


def placed(answer: Answer) -> tuple[int, int, bool]:
    assert answer.status == 200, answer.json
    said = answer.json
    return said["partition"], said.get("offset"), said.get("duplicate", False)


async def batched(addresses: list[str]) -> dict[str, Any]:
    """Publish many records in one request, which is cut by partition."""
    records = [{"value": f"batched {n}", "key": f"customer {n}"} for n in range(REQUESTS)]
    key = {"Idempotency-Key": "batch"}
    answer = await until_answered(addresses, f"{TARGET}/batch", {"records": records}, **key)
    assert answer.status == 200, answer.json
    return answer.json  # type: ignore[no-any-return]


async def stored(client: Client) -> list[str]:
    """Return all values of the topic, from all partitions, in order of their kinds."""
    values = [(record.value or b"").decode() async for record in client.read(TOPIC)]
    return sorted(values)


def test_a_request_that_comes_again_after_partitions_were_added_is_stored_once(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with BenchCluster(tmp_path) as cluster, Client(*cluster.servers.split(",")) as client:
            addresses = [node.http for node in cluster.nodes]
            await client.create_topic(TOPIC, partitions=3)
            ways = (single, keyless, numbered)
            first = [[await way(addresses, n) for n in range(REQUESTS)] for way in ways]
            whole = await batched(addresses)
            await client.alter_topic(TOPIC, partitions=4)
            await client.alter_topic(TOPIC, partitions=7)
            # What is new goes by the new layout, also while what is old comes again.
            for way, before in zip(ways, first, strict=True):
                new = await way(addresses, REQUESTS)
                assert not new[2]
                for number, (partition, offset, _) in enumerate(before):
                    again = await way(addresses, number)
                    assert again == (partition, offset, True)
            repeated = await batched(addresses)
            assert repeated["partitions"] == whole["partitions"]
            assert all(ack["duplicate"] for ack in repeated["acks"])
            other = {"value": "something else", "key": "customer 0"}
            answer = await until_answered(addresses, TARGET, other, **{"Idempotency-Key": name(0)})
            assert (answer.status, answer.json["code"]) == (422, "KEY_REUSED")
            kinds = [("single", 1), ("keyless", 1), ("numbered", 1), ("batched", 0)]
            expected = [f"{kind} {n}" for kind, more in kinds for n in range(REQUESTS + more)]
            assert await stored(client) == sorted(expected)

    run(story())


def test_requests_that_come_twice_at_once_while_partitions_are_added_are_stored_once(
    tmp_path: Path,
) -> None:
    """Each request goes to two nodes side by side, of which one may know the older layout."""

    async def story() -> None:
        async with BenchCluster(tmp_path) as cluster, Client(*cluster.servers.split(",")) as client:
            addresses = [node.http for node in cluster.nodes]
            await client.create_topic(TOPIC, partitions=2)
            is_over = False

            async def publish(way: Any, start: int) -> int:
                number = start
                while not is_over:
                    twice = (way([addresses[at]], number) for at in (number % 3, (number + 1) % 3))
                    one, other = await asyncio.gather(*twice)
                    assert one[0] == other[0]
                    assert {one[2], other[2]} == {False, True}
                    number += 8
                return number

            work = [
                asyncio.create_task(publish(way, start))
                for way in (single, keyless)
                for start in range(8)
            ]
            for partitions in (3, 5, 8):
                await asyncio.sleep(0.5)
                await client.alter_topic(TOPIC, partitions=partitions)
            await asyncio.sleep(0.5)
            is_over = True
            ends = await asyncio.gather(*work)
            expected = [
                f"{kind} {number}"
                for kind, some in (("single", ends[:8]), ("keyless", ends[8:]))
                for start, end in enumerate(some)
                for number in range(start, end, 8)
            ]
            assert await stored(client) == sorted(expected)

    run(story())
