"""The guide to upgrades as printed: from a release of this project's past, under load."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cluster.command_line import angarium

from angarium.api import TopicConfig
from angarium.client import Client
from angarium.errors import PreconditionFailed
from angarium.node.release import LEVEL_MAX, WITNESS_LEVEL
from angarium.testing.cluster import Load
from angarium.testing.cluster.faults import Recovery, restart_gracefully

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

    from angarium.ids import NodeId
    from angarium.testing.cluster import ProcessCluster

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guides" / "upgrade.md"
RELEASE = "src/angarium/node/release.py"
NOBODY_MAY = 4

WITNESSED = TopicConfig(replication=2, regions=("eu", "us"), witness=("tie",))
"""What no release before feature level 7 knows."""

RUN = (
    "import sys; sys.path.insert(0, {path!r}); "
    "from angarium.testing.cluster.small_node import main; sys.exit(main())"
)
"""A node of whatever source lies at a path."""


def _git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True).stdout


def _earlier(folder: Path, *, below: int = WITNESS_LEVEL) -> tuple[str, ...]:
    """Return the program of the last release that knew no level from `below` on, by the history."""
    if not (ROOT / ".git").exists():
        pytest.skip("there is no history here to take an earlier release from")
    for commit in _git("log", "--format=%H", "--", RELEASE).decode().split():
        known = re.search(
            rb"^LEVEL_MAX: Final = (\d+)", _git("show", f"{commit}:{RELEASE}"), re.MULTILINE
        )
        if known is not None and int(known[1]) < below:
            break
    else:
        pytest.skip("the history here is too short to take an earlier release from")
    with tarfile.open(fileobj=BytesIO(_git("archive", commit, "src"))) as archive:
        archive.extractall(folder, filter="data")
    return (sys.executable, "-c", RUN.format(path=str(folder / "src")))


def _printed() -> list[list[str]]:
    text = GUIDE.read_text(encoding="utf-8")
    return [one.split() for one in re.findall(r"^ +\$ angarium (.+)$", text, re.MULTILINE)]


def test_what_the_guide_prints_upgrades_a_cluster_under_load(
    run: Run, cluster_of: ClusterOf, tmp_path: Path
) -> None:
    check, wait, raise_level = _printed()
    old = _earlier(tmp_path / "old")

    async def asked(cluster: ProcessCluster, node: NodeId, words: list[str], status: int) -> str:
        """Run a printed command against one node; return what it says."""
        server = ("--servers", cluster.nodes[node].address)
        done = await asyncio.to_thread(angarium, tmp_path, *words, *server, status=status)
        return done.stdout

    async def scenario() -> None:
        regions = ("eu", "us", "tie")
        async with cluster_of(3, program=old, evens_out=True, regions=regions) as cluster:
            new = (sys.executable, "-m", "angarium.testing.cluster.small_node")
            await cluster.create_topic("orders", partitions=2)
            recovery = Recovery()
            async with Load(cluster, topic="orders", partitions=2) as load:
                # The nodes of the old release do not know the question yet.
                first = cluster.ids[0]
                async with Client(cluster.nodes[first].address) as client:
                    # It would make the topic without one, and not say so.
                    with pytest.raises(PreconditionFailed, match="knows only 6"):
                        await client.create_topic("slips", config=WITNESSED)
                cluster.nodes[first].program = new
                await restart_gracefully(cluster, load, recovery, first)
                taken = [first]
                for _ in range(2):
                    said = await asked(cluster, first, [*wait, "--format", "json"], 0)
                    node = json.loads(said)["next_node"]
                    assert node not in taken
                    cluster.nodes[node].program = new
                    cluster.nodes[node].terminate()
                    await asyncio.to_thread(cluster.nodes[node].wait)
                    refused = await asked(cluster, first, check, NOBODY_MAY)
                    assert f"node {node} cannot be reached" in refused
                    cluster.restart(node)
                    taken.append(node)
                said = await asked(cluster, first, wait, 0)
                assert "every node knows feature level" in said
                async with Client(cluster.nodes[first].address) as client:
                    for refusal in (
                        client.create_topic("slips", config=WITNESSED),
                        client.restore_topic("slips", partitions=1, config=WITNESSED),
                        client.alter_topic("orders", config=WITNESSED),
                    ):
                        with pytest.raises(PreconditionFailed, match="the cluster works at 6"):
                            await refusal
                    raised = await asked(cluster, first, raise_level, 0)
                    assert str(LEVEL_MAX) in raised
                    await client.alter_topic("orders", config=WITNESSED)
                    (made,) = (await client.create_topic("slips", config=WITNESSED)).partitions
                    assert cluster.nodes[made.witness or first].region == "tie"
                    assert (await client.publish("slips", b"one")).offset == 0
                verdict = await load.conclude()
            assert verdict.violations == []
            assert verdict.acknowledged > 50

    run(scenario())
