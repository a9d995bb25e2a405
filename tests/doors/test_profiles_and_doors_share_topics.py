"""Whatever is published through a profile comes out of every door, and the other way round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.doors import speaking
from tests.doors.cluster_of_doors import Doors, run
from tests.doors.compat import speaking_profiles
from tests.doors.speaking import Item

from angarium.client import Client

if TYPE_CHECKING:
    from tests.doors.compat.profiles_on import Profiles

VALUES = [bytes(range(256)), b"", *(f"{number}".encode() for number in range(8))]
DOORS = ("wire", "grpc", "rest", "sse", "websocket", "graphql")
PROFILES = ("hermes", "bale", "geo")


async def publish(profiles: Profiles, by: str, topic: str) -> None:
    """Publish through a node that does not lead."""
    async with Client(*profiles.servers) as client:
        await client.create_topic(topic)
    follower = (await Doors(profiles.cluster).followers(topic))[0]
    if by in PROFILES:
        listeners = profiles.listeners[profiles.cluster.nodes.index(follower)]
        await speaking_profiles.WRITERS[by](listeners, topic, VALUES)
    else:
        await speaking.WRITERS[by](follower, topic, [Item(one) for one in VALUES])


async def read(profiles: Profiles, by: str, topic: str) -> list[bytes]:
    """Read through another node that does not lead."""
    follower = (await Doors(profiles.cluster).followers(topic))[1]
    if by in PROFILES:
        listeners = profiles.listeners[profiles.cluster.nodes.index(follower)]
        return await speaking_profiles.READERS[by](listeners, topic, len(VALUES))
    return [one.value for one in await speaking.READERS[by](follower, topic, len(VALUES))]


@pytest.mark.parametrize("writer", PROFILES)
def test_every_door_and_profile_reads_what_a_profile_published(
    profiles: Profiles, writer: str
) -> None:
    async def story() -> None:
        topic = f"shared-from-{writer}"
        await publish(profiles, writer, topic)
        for reader in (*DOORS, *PROFILES):
            assert await read(profiles, reader, topic) == VALUES, reader

    run(story(), within_s=100)


@pytest.mark.parametrize("writer", ["wire", "grpc", "rest", "rest-batch", "websocket", "graphql"])
def test_every_profile_reads_what_a_door_published(profiles: Profiles, writer: str) -> None:
    async def story() -> None:
        topic = f"shared-from-{writer}"
        await publish(profiles, writer, topic)
        for reader in PROFILES:
            assert await read(profiles, reader, topic) == VALUES, reader

    run(story(), within_s=100)
