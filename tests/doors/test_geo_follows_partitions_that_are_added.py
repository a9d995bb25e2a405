"""A subscription of the profile `geo` to a topic that is given partitions under load."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from typing import TYPE_CHECKING

from tests.doors.cluster_of_doors import run
from tests.doors.compat.calls import geo_calls
from tests.doors.compat.speaking_profiles import PROOF

from angarium.client import Client

if TYPE_CHECKING:
    from tests.doors.compat.calls import Calls
    from tests.doors.compat.profiles_on import Profiles

KEYS = [f"key-{number}" for number in range(8)]
ADDITIONS = (3, 6)


async def _publish(client: Client, topic: str, stop: asyncio.Event) -> int:
    """Publish numbered records of each key; return how many."""
    number = 0
    while not stop.is_set():
        for key in KEYS:
            client.publish_nowait(topic, f"{key} {number}", key=key)
        number += 1
        await asyncio.sleep(0.02)
    await client.flush()
    return number * len(KEYS)


async def _read(geo: Calls, topic: str, seen: Counter[str], total: asyncio.Future[int]) -> None:
    call = geo.Subscribe(geo.message("SubscribeRequest", topics={topic: 0}), metadata=PROOF)
    reading = asyncio.ensure_future(call.read())
    # The last record may come before it is known how many there are.
    while not total.done() or seen.total() < total.result():
        waited = {reading} if total.done() else {reading, total}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            key, number = reading.result().body.decode().split()
            assert int(number) == seen[key], f"{key}: {number} came instead of {seen[key]}"
            seen[key] += 1
            reading = asyncio.ensure_future(call.read())
    reading.cancel()
    call.cancel()


def test_it_goes_on_with_them_and_keys_keep_their_order(profiles: Profiles) -> None:
    async def story() -> None:
        topic = f"geo-{uuid.uuid4().hex[:8]}"
        here, there = profiles.listeners[0], profiles.listeners[-1]
        total: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        stop = asyncio.Event()
        live: Counter[str] = Counter()
        async with Client(*profiles.servers) as client, geo_calls(here.geo) as geo:
            await client.create_topic(topic, partitions=2)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_read(geo, topic, live, total))
                publishing = tasks.create_task(_publish(client, topic, stop))
                for partitions in ADDITIONS:
                    await asyncio.sleep(0.4)
                    await client.alter_topic(topic, partitions=partitions)
                await asyncio.sleep(0.4)
                stop.set()
                total.set_result(await publishing)
            info = await client.describe_topic(topic)
            assert info.layouts == (2, *ADDITIONS)
            assert any(one.end_offset for one in info.partitions[ADDITIONS[0] :])
            # And so it does for who comes later, and gets all of it as history.
            async with geo_calls(there.geo) as later:
                await _read(later, topic, Counter(), total)

    run(story(), within_s=60)
