"""Clients of the broker geo, unchanged: generated from its schema, in a process of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.doors.cluster_of_doors import run
from tests.doors.compat.generated_client import told
from tests.doors.compat.profiles_on import PASSWORD, USER

from angarium.client import Client

if TYPE_CHECKING:
    from pathlib import Path

    from tests.doors.compat.profiles_on import Profiles


def test_a_client_generated_from_its_schema_works_unchanged(
    profiles: Profiles, tmp_path: Path
) -> None:
    addresses = ",".join(one.geo for one in profiles.listeners)
    told(
        tmp_path,
        schema="geo.proto",
        story="geo_story.py",
        arguments=[addresses, USER, PASSWORD],
    )


def test_records_of_other_doors_are_resumed_after_without_a_loss(
    profiles: Profiles, tmp_path: Path
) -> None:
    """They come in batches that share a time, and over several partitions."""

    async def prepare() -> None:
        async with Client(*profiles.servers) as client:
            await client.create_topic("batched", partitions=3)
            for start in range(0, 600, 50):
                values = [b"%d" % number for number in range(start, start + 50)]
                await client.publish_batch("batched", values, partition=start // 50 % 3)

    run(prepare())
    addresses = ",".join(one.geo for one in profiles.listeners)
    told(
        tmp_path,
        schema="geo.proto",
        story="geo_batches.py",
        arguments=[addresses, USER, PASSWORD],
    )
