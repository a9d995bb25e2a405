"""Consuming through one node, in process: the whole way from a publish to a committed ack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.service.groups.consuming import (
    consume,
    next_of,
    on_a_loop,
    one_topic,
    publish,
    said,
    settle,
    values,
)

from angarium.kinds import GroupKind

if TYPE_CHECKING:
    from pathlib import Path


@on_a_loop
async def test_what_is_published_is_handed_out_and_acknowledged(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        await publish(service, [b"a", b"b", b"c"])
        consumption = await consume(service)
        assert consumption.kind is GroupKind.QUEUE
        handed = await next_of(consumption)
        assert values(handed) == [b"a", b"b", b"c"]
        assert handed.attempt == 1
        (settled,) = await settle(consumption, said(handed))
        assert (settled.records, settled.code) == (3, "")
        info = await service.describe_group("workers")
        assert info.positions[0].floor == 3
        assert info.lag == 0
        await publish(service, [b"d"])
        assert values(await next_of(consumption)) == [b"d"]
        await consumption.close()
