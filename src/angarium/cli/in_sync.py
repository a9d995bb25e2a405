"""Who is in sync, asked of those who know: each partition's leader.

Whichever node answers the command has replicas of most partitions, and leads only some of them. It
does not ask the others itself, for the same question is asked by every client that looks for a
leader, not least while one is lost.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from angarium.addresses import Address
from angarium.cli.probe import Probe
from angarium.errors import AngariumError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.api import PartitionInfo, TopicInfo
    from angarium.client import Client
    from angarium.ids import NodeId


async def as_leaders_see(client: Client, topic: TopicInfo) -> TopicInfo:
    """Return `topic` with what the leaders of its partitions know; None stays where none answers.

    A node that has come to lead in the meantime is believed; one that leads no more says nothing.
    """
    unknown = [one for one in topic.partitions if one.in_sync is None]
    leaders = {one.leader for one in unknown if one.leader is not None}
    if not leaders:
        return topic
    nodes = (await client.cluster_status()).nodes
    addresses = [one.addresses["wire"] for one in nodes if one.id in leaders and one.alive]
    views = await asyncio.gather(*(_ask(address, topic.name) for address in addresses))
    told: dict[int, tuple[NodeId, ...]] = {
        one.number: one.in_sync for view in views for one in view if one.in_sync is not None
    }
    return msgspec.structs.replace(
        topic,
        partitions=tuple(
            msgspec.structs.replace(one, in_sync=told.get(one.number, one.in_sync))
            for one in topic.partitions
        ),
    )


async def _ask(address: str, name: str) -> Iterable[PartitionInfo]:
    probe = Probe(Address.parse(address))
    try:
        return (await probe.topic(name)).partitions
    except AngariumError:
        return ()
    finally:
        await probe.close()
