"""The guide to several data centres as printed: on two regions of three nodes."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cluster.command_line import angarium

from angarium.client import Client, ClientSettings
from angarium.testing.cluster import eventually

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

pytestmark = pytest.mark.timeout(600)

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "regions.md"
WAIT_S = 180.0


def test_what_the_guide_prints_stays_in_its_region(
    run: Run, cluster_of: ClusterOf, tmp_path: Path
) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    create, near, far, follow, stay, drawn, document = re.findall(
        r"^    \$ angarium (.+)$", text, re.MULTILINE
    )
    (example,) = re.findall(r"^```python\n(.+?)^```$", text, re.MULTILINE | re.DOTALL)

    async def scenario() -> None:
        async with cluster_of(6, regions=("eu", "us") * 3) as cluster:
            servers = next(iter(cluster.nodes.values())).address

            async def said(command: str) -> str:
                words = ["--servers", servers, "--timeout", "60", *shlex.split(command)]
                return (await asyncio.to_thread(angarium, tmp_path, *words)).stdout

            await said(create)

            async def is_led() -> bool:
                info = await (await cluster.someone()).describe("orders")
                return all(one.leader is not None and one.readers for one in info.partitions)

            await eventually(
                is_led, within_s=WAIT_S, what="all partitions have leaders and readers"
            )
            await said(near)
            await said(far)
            await said(follow)
            assert (await (await cluster.someone()).describe("ledger")).config.leaders_follow
            await said(stay)
            settings = ClientSettings(request_timeout_s=60.0)
            async with Client(servers, settings=settings) as client:
                info = await client.describe_topic("orders")
                homes = {
                    info.partitions[record.partition].home async for record in client.read("orders")
                }
                assert homes == {"eu", "us"}
            told = json.loads(await said(document))
            assert [one["region"] for one in told["regions"]] == ["eu", "us"]
            assert all(len(one["nodes"]) == 3 for one in told["regions"])
            shown = await said(drawn)
            assert "round trips between regions" in shown
            assert "orders/3" in shown
            await asyncio.to_thread(_run_example, example.replace("127.0.0.1:7400", servers))

    run(scenario())


def _run_example(example: str) -> None:
    exec(compile(example, str(GUIDE), "exec"), {"__name__": "example"})
