"""A number whose door still knows the layouts of a topic that was deleted and made anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.doors.cluster_of_doors import run

from angarium.api.transactions import SequencedPublish
from angarium.batch import encode
from angarium.bench.cluster import BenchCluster
from angarium.client import Client
from angarium.client.contract import RemoteBroker
from angarium.errors import LayoutChanged
from angarium.ids import Epoch

if TYPE_CHECKING:
    from pathlib import Path

TOPIC = "payments"


def request(*, layout: int, former: tuple[tuple[int, int], ...] = ()) -> SequencedPublish:
    return SequencedPublish(
        producer="importer",
        epoch=Epoch(1),
        sequence=7,
        topic=TOPIC,
        partition=0,
        batches=(bytes(encode([b"paid"])),),
        layout=layout,
        former=former,
    )


def test_a_number_that_is_asked_for_under_layouts_that_are_gone_is_refused_and_not_lost(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with BenchCluster(tmp_path) as cluster, Client(*cluster.servers.split(",")) as client:
            broker = RemoteBroker(client)
            await client.create_topic(TOPIC, partitions=1)
            await client.alter_topic(TOPIC, partitions=2)
            await client.delete_topic(TOPIC)
            await client.create_topic(TOPIC, partitions=1)
            with pytest.raises(LayoutChanged):
                await broker.publish_sequenced(request(layout=1, former=((0, 0),)))
            ack = await broker.publish_sequenced(request(layout=0))
            assert not ack.duplicate
            assert [record.value async for record in client.read(TOPIC)] == [b"paid"]
            assert (await broker.publish_sequenced(request(layout=0))).duplicate

    run(story())
