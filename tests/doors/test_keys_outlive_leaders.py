"""A request that is sent again after its leader was killed: known by its key all the same."""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from typing import TYPE_CHECKING

from tests.doors.cluster_of_doors import run
from tests.doors.speaking import Answer, http

from angarium.bench.cluster import BenchCluster
from angarium.client import Client

if TYPE_CHECKING:
    from pathlib import Path

REQUESTS = 40
TARGET = "/v1/topics/payments/records"


async def until_answered(addresses: list[str], value: str, key: str) -> Answer:
    """Send a request again and again, to one node after the other, as a careful client does."""
    while True:
        for address in addresses:
            try:
                answer = await http(
                    address, "POST", TARGET, {"value": value}, **{"Idempotency-Key": key}
                )
            except (OSError, IndexError, ValueError):
                continue  # the node is gone, or went away while it answered
            if answer.status not in (503, 504):
                return answer
        await asyncio.sleep(0.05)


async def leader_of(client: Client) -> int:
    while True:
        leader = (await client.describe_topic("payments")).partitions[0].leader
        if leader is not None:
            return leader
        await asyncio.sleep(0.05)


def test_requests_under_keys_are_stored_once_although_their_leader_is_killed(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with BenchCluster(tmp_path) as cluster:
            addresses = [node.http for node in cluster.nodes]
            async with Client(*cluster.servers.split(",")) as client:
                await client.create_topic("payments")
                leader = await leader_of(client)
            keys = [str(uuid.uuid4()) for _ in range(REQUESTS)]
            work = [
                asyncio.create_task(until_answered(addresses, f"{n}", key))
                for n, key in enumerate(keys)
            ]
            await asyncio.sleep(0)
            os.kill(cluster.nodes[leader - 1].pid, signal.SIGKILL)
            first = await asyncio.gather(*work)
            assert {one.status for one in first} == {200}
            # Everything again, through those who are left: nothing is new any more.
            left = [one for at, one in enumerate(addresses, 1) if at != leader]
            for number, key in enumerate(keys):
                again = await until_answered(left, f"{number}", key)
                assert again.json["duplicate"] is True
                assert again.json["offset"] == first[number].json["offset"]
            other = await until_answered(left, "something else", keys[0])
            assert (other.status, other.json["code"]) == (422, "KEY_REUSED")
            # The node may follow, and hear a moment later than the client that all is committed.
            kept = "/v1/topics/payments/partitions/0/records?limit=1000&fresh=true"
            page = await http(left[0], "GET", kept)
            values = [one["value"] for one in page.json["records"]]
            assert sorted(values, key=int) == [f"{n}" for n in range(REQUESTS)]

    run(story())
