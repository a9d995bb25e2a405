"""A record that failed while the clock was an hour ahead comes again when the clock is right.

Real processes whose clocks the test sets. Every node's clock is ahead at once, so the cluster
believes them, as it would after a wrong answer of its NTP server.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from angarium import Client
from angarium.api import GroupConfig
from angarium.kinds import LENT_KINDS, GroupKind
from angarium.testing.cluster import ProcessCluster, eventually
from angarium.testing.cluster.odd_clock import OddClock

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.running import Run

    from angarium.client.groups.consumer import Consumer

HOUR_S = 3_600.0
RECORDS = 10
GOES_ON_S = 90.0
"""How long a group may take to deliver everything on a busy machine: far less than an hour."""

DELAY_S = 15.0
"""How long the record is to wait: longer than nodes take to notice that their clocks are right."""

CONFIG = GroupConfig(ack_timeout_ms=600_000)
"""Leases are longer than the test, so nothing is delivered again because one has ended."""


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
def test_a_group_delivers_everything_once_the_clock_is_right(
    run: Run, tmp_path: Path, restarted: bool
) -> None:
    async def scenario() -> None:
        clocks = {name: OddClock(tmp_path / f"{name}.clock") for name in "abc"}
        programs = {name: clock.program for name, clock in clocks.items()}
        for clock in clocks.values():
            clock.set(HOUR_S)
        async with ProcessCluster(tmp_path / "cluster", programs=programs) as cluster:
            await cluster.create_topic("orders")
            servers = [node.address for node in cluster.nodes.values()]
            async with Client(*servers) as client:
                # All of one key: in a key group, too, all others wait for the one that fails.
                await client.publish_batch(
                    "orders", [b"%d" % one for one in range(RECORDS)], keys=[b"key"] * RECORDS
                )
                for kind in LENT_KINDS:
                    async with _join(client, kind) as consumer:
                        await _nack_first(consumer)
                for name, clock in clocks.items():
                    clock.set(0.0)
                    if restarted:
                        (node,) = (id_ for id_, one in cluster.nodes.items() if one.name == name)
                        cluster.nodes[node].kill()
                if restarted:
                    for node in cluster.ids:
                        cluster.restart(node)
                await cluster.settled()
                for kind in LENT_KINDS:
                    await _waits_for_no_hour(client, kind)
                for kind in LENT_KINDS:
                    async with asyncio.timeout(GOES_ON_S), _join(client, kind) as consumer:
                        assert await _take(consumer) == set(range(RECORDS)), kind
                    assert (await client.describe_group(kind.name.lower())).lag == 0

    run(scenario())


def test_a_group_goes_on_while_the_clock_is_set_right(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = OddClock(tmp_path / "a.clock")
        clock.set(HOUR_S)
        cluster = ProcessCluster(tmp_path / "cluster", nodes=1, programs={"a": clock.program})
        async with cluster, Client(*(one.address for one in cluster.nodes.values())) as client:
            await cluster.create_topic("orders")
            await client.publish_batch("orders", [b"%d" % one for one in range(RECORDS)])
            async with _join(client, GroupKind.STREAM) as consumer:
                await _nack_first(consumer)
                clock.set(0.0)
                await _waits_for_no_hour(client, GroupKind.STREAM)
                async with asyncio.timeout(GOES_ON_S):
                    assert await _take(consumer) == set(range(RECORDS))

    run(scenario())


def _join(client: Client, kind: GroupKind) -> Consumer:
    return client.group(kind.name.lower(), kind=kind, config=CONFIG).consume("orders", credit=1)


async def _nack_first(consumer: Consumer) -> None:
    batch = await consumer.next_batch()
    assert batch is not None
    assert list(batch.offsets()) == [0]
    await batch.nack(delay=DELAY_S)


async def _waits_for_no_hour(client: Client, kind: GroupKind) -> None:
    """Wait until the description of a group says that it waits for seconds, or for nothing."""

    async def says_so() -> bool:
        (position,) = (await client.describe_group(kind.name.lower())).positions
        until = position.waits_until
        return until is None or until / 1e6 < time.time() + HOUR_S / 2

    await eventually(says_so, within_s=GOES_ON_S, what=f"{kind.name} waits for no hour any more")


async def _take(consumer: Consumer) -> set[int]:
    """Return the offsets of as many records as there are, all acknowledged."""
    found: set[int] = set()
    while len(found) < RECORDS:
        batch = await consumer.next_batch()
        assert batch is not None
        found |= set(batch.offsets())
        await batch.ack()
    return found
