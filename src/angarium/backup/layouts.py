"""Where the layouts of a topic begin, as far as a backup of it goes (docs/decisions/0025).

A fence that lies above a partition's mark, or that nobody has set yet, counts as standing at the
mark: nothing in the backup lies behind it. So whatever happens to a topic while it is copied, in
the backup each layout that it has got has its fences.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from angarium.backup.manifest import KeptPartition
from angarium.errors import NotFound, PreconditionFailed
from angarium.ids import Offset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from angarium.api import TopicInfo
    from angarium.client import Client

WAIT_S: Final = 30.0
"""How long a node that answers may be behind what was copied from the leader."""

LOOK_S: Final = 0.1


async def laid_out(
    client: Client,
    info: TopicInfo,
    partitions: Mapping[int, KeptPartition],
    *,
    told: TopicInfo | None,
) -> tuple[tuple[int, ...], dict[int, KeptPartition]]:
    """Return a topic's layouts, and its partitions with their fences.

    `partitions` are copied up to their marks; `told` is the topic as it was described since, if it
    was. Raises `NotFound` if it is gone.
    """
    deadline = asyncio.get_running_loop().time() + WAIT_S
    while True:
        found = told or await client.describe_topic(info.name)
        told = None
        if found.id != info.id:
            raise NotFound(f"{info.name} was deleted, and made anew")
        if _is_told_of_all(found, partitions):
            return _laid_out(found, partitions)
        if asyncio.get_running_loop().time() > deadline:
            raise PreconditionFailed(
                f"nobody tells for certain where the layouts of {info.name} begin: a partition has"
                " no leader, or the node that answers is far behind"
            )
        await asyncio.sleep(LOOK_S)


def _is_told_of_all(info: TopicInfo, partitions: Mapping[int, KeptPartition]) -> bool:
    """Tell whether a node knows each fence that lies below a mark.

    A fence is committed before what lies behind it: who has everything up to the mark has heard of
    it. The catalog's word of a layout comes before its fences, but not to every node.
    """
    if len(info.partitions) < len(partitions):
        return False
    layouts = info.layouts or (len(info.partitions),)
    for number, kept in partitions.items():
        told = info.partitions[number]
        if told.end_offset is None or told.end_offset < kept.end:
            return False
        if len(told.fences) > len(layouts) - 1 - bisect_right(layouts, number):
            return False
    return True


def _laid_out(
    info: TopicInfo, partitions: Mapping[int, KeptPartition]
) -> tuple[tuple[int, ...], dict[int, KeptPartition]]:
    found: dict[int, KeptPartition] = {}
    for told in info.partitions:
        # One that was added since the last copy began is there as it was then: empty.
        kept = partitions.get(told.number) or KeptPartition(
            number=told.number, start=Offset(0), end=Offset(0)
        )
        count = max(len(info.layouts) - 1 - bisect_right(info.layouts, told.number), 0)
        known = [min(one, kept.end) for one in told.fences]
        fences = (*known, *[kept.end] * (count - len(known)))
        found[told.number] = replace(kept, fences=fences)
    return info.layouts, found
