"""Large records: bounded by bytes on loan, and never failed by waiting to be sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.component.service.groups.consuming import (
    WAIT_S,
    consume,
    next_of,
    offsets,
    one_topic,
    publish,
    said,
    settle,
)
from tests.on_a_loop import on_a_loop

from angarium.api import GroupConfig
from angarium.lending.lending_limits import LENT_BYTES_MAX
from angarium.testing.cluster.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.service.broker import Service
    from angarium.service.groups.consumption import LocalConsumption

LARGE = 900_000


async def publish_large(service: Service, count: int) -> None:
    for number in range(count):
        await publish(service, [b"%d" % number + bytes(LARGE)])


async def everything(consumption: LocalConsumption, count: int) -> dict[int, int]:
    """Return the attempts of all records, each of which is acknowledged."""
    found: dict[int, int] = {}
    while len(found) < count:
        handed = await next_of(consumption)
        found |= dict.fromkeys(offsets(handed), handed.attempt)
        await settle(consumption, said(handed))
    return found


@on_a_loop
async def test_a_member_has_no_more_bytes_on_loan_than_the_bound(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        await publish_large(service, 40)
        first = await consume(service, credit=1_000, member="first")
        await next_of(first)
        second = await consume(service, credit=1_000, member="second")
        handed = await next_of(second)
        info = await service.describe_group("workers")
        pending = {one.name: one.pending for one in info.members}
        bound = LENT_BYTES_MAX // LARGE
        assert 1 <= pending["first"] <= bound
        assert 1 <= pending["second"] <= bound
        await first.close()
        await settle(second, said(handed))
        assert len(await everything(second, 40 - len(offsets(handed)))) + len(offsets(handed)) == 40
        await second.close()


@on_a_loop
async def test_what_a_member_leaves_at_its_leader_goes_to_others_untried(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        await publish_large(service, 12)
        config = GroupConfig(ack_timeout_ms=6_000, max_attempts=2)
        idle = await consume(service, credit=1_000, member="idle", config=config)

        async def all_is_lent() -> bool:
            return (await service.describe_group("workers")).positions[0].pending == 12

        await eventually(all_is_lent, within_s=WAIT_S)
        # It takes nothing, so nothing of this is an attempt, however long it has it.
        busy = await consume(service, credit=1_000, member="busy")
        attempts = await everything(busy, 12)
        assert set(attempts.values()) == {1}
        info = await service.describe_group("workers")
        assert info.lag == 0
        assert info.positions[0].retrying == 0
        await idle.close()
        await busy.close()
