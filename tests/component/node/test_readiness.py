"""A node says in words why it should not be relied on, and hears it of the others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.testing.broker import InProcessBroker

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_nodes_hear_of_each_others_reasons(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        cluster = InProcessBroker(tmp_path, nodes=2)
        await cluster.start()
        try:
            one, two = cluster.nodes
            service = cluster.services[0]
            assert one is not None
            assert two is not None
            assert service is not None
            reasons = ["its disk rots"]
            two.readiness.sources.append(lambda: reasons)
            async with asyncio.timeout(60):
                while "not ready: its disk rots" not in caplog.text:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                while one.readiness.of(two.id) != ("its disk rots",):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            status = await service.cluster_status()
            assert {node.id: node.unready for node in status.nodes} == {
                one.id: (),
                two.id: ("its disk rots",),
            }
            reasons.clear()
            async with asyncio.timeout(60):
                while one.readiness.of(two.id) or "ready again" not in caplog.text:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        finally:
            await cluster.stop()

    with caplog.at_level("INFO"):
        asyncio.run(story())
