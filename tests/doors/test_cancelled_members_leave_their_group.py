"""A member whose call is cancelled, at whatever moment, leaves its group: one that stayed without
anybody behind it would be lent records that nobody gets."""

from __future__ import annotations

import asyncio
import random
import uuid
from typing import TYPE_CHECKING, TypeAlias

import pytest
from tests.doors.cluster_of_doors import Doors, run
from tests.doors.members import OF_DOORS, OF_PROFILES, with_client
from tests.doors.test_a_gateway_in_front_of_a_cluster import gateway

from angarium.client import Client

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tests.doors.compat.profiles_on import Profiles

CANCELS = 120
TOGETHER = 6
"""Members at a time, so that they also meet each other's comings and goings."""

AFTER_S_MAX = 0.12
"""By when a member is cancelled: before it is in, while it is lent something, as it says so."""

RECORDS = 200
WITHIN_S = 120.0
"""On a machine that does much else; it takes a second or two on one that does not."""

Member: TypeAlias = "Callable[[int], Awaitable[None]]"


async def cancelled_often(servers: Sequence[str], topic: str, member: Member, seed: str) -> None:
    """Let members come and be cut off; meanwhile there is always something to lend them."""
    dice = random.Random(seed)

    async def one(number: int) -> None:
        taking = asyncio.ensure_future(member(number))
        await asyncio.sleep(dice.uniform(0, AFTER_S_MAX))
        while not taking.done():  # once more each time, to meet it while it closes
            taking.cancel()
            await asyncio.wait((taking,), timeout=dice.uniform(0, 0.01))

    async with Client(*servers) as client:

        async def publish() -> None:
            while True:
                await client.publish(topic, b"before")
                await asyncio.sleep(0.002)

        publishing = asyncio.create_task(publish())
        for first in range(0, CANCELS, TOGETHER):
            await asyncio.gather(*map(one, range(first, first + TOGETHER)))
        publishing.cancel()
        await asyncio.wait((publishing,))


async def all_come(servers: Sequence[str], topic: str, group: str) -> None:
    """See everybody gone; then have all that is published come to the one member there is."""
    async with Client(*servers) as client, asyncio.timeout(WITHIN_S):
        # Who was lost without a goodbye may come back for a second. A ghost stays for ever.
        while (await client.group(group).describe()).members:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        wanted = {b"after %d" % number for number in range(RECORDS)}
        await client.publish_batch(topic, sorted(wanted))
        async with client.group(group).consume(topic) as records:
            async for record in records:
                record.ack_nowait()
                wanted.discard(record.value or b"")
                if not wanted:
                    break


async def nobody_stays(
    servers: Sequence[str], topic: str, group: str, member: Member, *, partitions: int = 1
) -> None:
    async with Client(*servers) as client:
        await client.create_topic(topic, partitions=partitions)
    await cancelled_often(servers, topic, member, topic.partition(".")[0])
    await all_come(servers, topic, group)


@pytest.mark.parametrize("listener", OF_PROFILES)
def test_members_of_the_profiles(profiles: Profiles, listener: str) -> None:
    topic = f"cut-{listener}.{uuid.uuid4().hex[:8]}"
    take_part, listeners = OF_PROFILES[listener], profiles.listeners

    def member(number: int) -> Awaitable[None]:
        return take_part(listeners[number % len(listeners)], topic, "cut")

    run(nobody_stays(profiles.servers, topic, "cut", member), within_s=280)


@pytest.mark.parametrize("door", OF_DOORS)
def test_members_of_our_own_doors(doors: Doors, door: str) -> None:
    topic = f"cut-{door}.{uuid.uuid4().hex[:8]}"

    def member(number: int) -> Awaitable[None]:
        return OF_DOORS[door](doors.nodes[number % len(doors.nodes)], topic, f"cut-{door}")

    run(nobody_stays(doors.servers, topic, f"cut-{door}", member, partitions=3), within_s=280)


def test_consumers_of_a_client_that_lives_on(doors: Doors) -> None:
    topic = f"cut-client.{uuid.uuid4().hex[:8]}"

    async def story() -> None:
        async with Client(*doors.servers) as client:

            def member(_: int) -> Awaitable[None]:
                return with_client(client, topic, "cut-client")

            await nobody_stays(doors.servers, topic, "cut-client", member)

    run(story(), within_s=280)


@pytest.mark.parametrize("door", ["events", "websocket", "graphql"])
def test_members_behind_a_gateway(doors: Doors, door: str) -> None:
    topic = f"cut-gateway-{door}.{uuid.uuid4().hex[:8]}"
    group = f"cut-gateway-{door}"

    async def story() -> None:
        async with gateway(doors) as node:
            await nobody_stays(
                doors.servers, topic, group, lambda _: OF_DOORS[door](node, topic, group)
            )

    run(story(), within_s=280)
