"""A disk that is full: its node keeps what it has, the others go on, and it comes back."""

from __future__ import annotations

import asyncio
import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.busy_machine import slowness

from angarium.batch import encode
from angarium.testing.cluster import Load, eventually
from angarium.testing.cluster.processes import SMALL
from angarium.testing.cluster.waiting import now_micros

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.running import ClusterOf, Run

    from angarium.testing.cluster import ProcessCluster

DISK_MEGABYTES = 40


@contextmanager
def small_disk(path: Path) -> Iterator[Path]:
    """Mount a small disk in memory; only root may."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    path.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_MEGABYTES}m", "tmpfs", str(path)],
        check=False,
        capture_output=True,
        text=True,
    )
    if mounted.returncode != 0:
        pytest.skip(f"this machine mounts no tmpfs: {mounted.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def fill(folder: Path) -> Path:
    """Take all the room that is left."""
    ballast = folder / "ballast"
    with ballast.open("wb") as file:
        try:
            while True:
                file.write(bytes(64 << 10))
                file.flush()
        except OSError:
            pass
    return ballast


async def publish_heavily(cluster: ProcessCluster, *, megabytes: int) -> None:
    """Store so much in the topic "heavy", through whichever node takes it."""
    batch = bytes(encode([bytes(1_000)] * 100))
    for number in range(megabytes * 10):

        async def is_stored(number: int = number) -> bool:
            node = cluster.ids[number % len(cluster.ids)]
            await cluster.contact(node).publish("heavy", 0, [batch], timeout_s=5.0)
            return True

        await eventually(is_stored, within_s=60.0, what="a heavy batch is stored")


def test_a_full_disk_stops_one_node_and_nobody_else(
    run: Run, cluster_of: ClusterOf, tmp_path: Path
) -> None:
    async def scenario(disk: Path) -> None:
        async with cluster_of(3, program=SMALL, data={"a": disk / "data"}) as cluster:
            full = next(node for node in cluster.ids if cluster.nodes[node].name == "a")
            await cluster.create_topic("orders")
            await cluster.create_topic("heavy")
            for topic in ("orders", "heavy"):
                await cluster.contact(full).transfer(topic, 0, full)
            async with Load(cluster, topic="orders", producers=6, pause_s=0.005) as load:
                ballast = fill(disk)
                # The log has room left in the files it prepared in advance: use that up, too.
                await publish_heavily(cluster, megabytes=12)
                leader = await cluster.leader("heavy")
                assert leader != full, "a full leader hands leadership over"
                ends = [
                    (await cluster.contact(node).describe("heavy")).partitions[0].end_offset
                    for node in (full, leader)
                ]
                assert (ends[0] or 0) < (ends[1] or 0), "it was not full"
                moment = now_micros()
                await load.acknowledged_after(moment, within_s=60.0)
                await asyncio.sleep(2.0)
                assert load.availability(moment, now_micros(), partition=0) >= 0.5 / slowness()
                assert cluster.nodes[full].is_running, "a full disk is no reason to end"
                ballast.unlink()
                await cluster.settled(topics=["orders"], within_s=60.0)
                verdict = await load.conclude()
            assert verdict.violations == []

    with small_disk(tmp_path / "disk") as disk:
        run(scenario(disk))
