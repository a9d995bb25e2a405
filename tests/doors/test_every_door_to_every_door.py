"""Whatever is published through one door comes out of every other: same bytes, same order."""

from __future__ import annotations

import pytest
from tests.doors.cluster_of_doors import Doors, run
from tests.doors.speaking import READERS, WRITERS, Item

from angarium.client import Client

ITEMS = [
    Item(b"plain"),
    Item(bytes(range(256)), b"key"),
    Item(b""),
    Item("grüße, 世界".encode(), b"key"),
    *(Item(f"number {n}".encode()) for n in range(20)),
]


@pytest.fixture(scope="module", params=WRITERS)
def written(doors: Doors, request: pytest.FixtureRequest) -> str:
    """Publish through a door of a node that does not lead; return the topic."""
    topic = f"through-{request.param}"

    async def publish() -> None:
        async with Client(*doors.servers) as client:
            await client.create_topic(topic)
        node = (await doors.followers(topic))[0]
        await WRITERS[request.param](node, topic, ITEMS)

    run(publish())
    return topic


@pytest.mark.parametrize("reader", READERS)
def test_what_went_in_through_one_door_comes_out_of_another(
    doors: Doors, written: str, reader: str
) -> None:
    async def read() -> list[Item]:
        node = (await doors.followers(written))[1]
        return await READERS[reader](node, written, len(ITEMS))

    assert run(read()) == ITEMS
