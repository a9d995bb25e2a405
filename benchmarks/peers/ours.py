"""Our side of the rounds: the same loads on three nodes of ours, by `angarium bench`'s own code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from benchmarks.peers.shapes import BATCH, BATCH_WORKERS, SIZE

from angarium.bench.measuring import measure
from angarium.bench.plan import Plan, Protocol, Route, Scenario
from angarium.bench.resources import Watched, usage
from angarium.errors import AngariumError
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from angarium.bench.cluster import BenchCluster
    from angarium.bench.report import Report

BATCHED: Final = {"workers": BATCH_WORKERS, "batch": BATCH, "scenario": Scenario.PUBLISH}
LOADED_RECORDS: Final = 10_000_000


class Ours:
    """The loads on a cluster. Every record is read back and checked."""

    def __init__(self, cluster: BenchCluster, *, seconds: float) -> None:
        self._cluster = cluster
        self._seconds = seconds

    async def batched(self) -> float:
        """CONSISTENT, many at a time: acknowledged per second."""
        return (await self._measured(**BATCHED)).records_per_s

    async def eventual(self) -> float:
        """EVENTUAL, the same: committed per second."""
        report = await self._measured(mode=DeliveryMode.EVENTUAL, **BATCHED)
        assert report.committed_per_s is not None
        return report.committed_per_s

    async def catch_up(self) -> tuple[float, float]:
        """Reading what is stored: records per second as batches, and as Python records."""
        report = await self._measured(workers=8, batch=500, scenario=Scenario.CATCH_UP)
        assert report.as_records_per_s is not None
        return report.records_per_s, report.as_records_per_s

    async def awaiting(self, workers: int, *, connections: int) -> float:
        """CONSISTENT, each worker waiting for its acknowledgement."""
        report = await self._measured(
            workers=workers, connections=connections, scenario=Scenario.PUBLISH
        )
        return report.records_per_s

    async def one_by_one_p50_ms(self) -> float:
        """CONSISTENT, one at a time."""
        report = await self._measured(workers=1, scenario=Scenario.PUBLISH)
        assert report.publish is not None
        return report.publish.p50_ms

    async def grpc(self, route: Route) -> float:
        """CONSISTENT, a gRPC call a record, 60 workers."""
        report = await self._measured(
            workers=60, protocol=Protocol.GRPC, route=route, scenario=Scenario.PUBLISH
        )
        return report.records_per_s

    async def pub_sub(self) -> float:
        """PERFORMANCE: received per second."""
        report = await self._measured(mode=DeliveryMode.PERFORMANCE, workers=8, batch=500)
        assert report.received_per_s is not None
        return report.received_per_s

    async def end_to_end(
        self, *, topics: int, rate: float, workers: int = 0
    ) -> tuple[float, float]:
        """CONSISTENT at a rate: p50 and p99 from due to delivered, in ms."""
        report = await self._measured(workers=max(workers, topics), topics=topics, rate=rate)
        assert report.end_to_end is not None
        return report.end_to_end.p50_ms, report.end_to_end.p99_ms

    async def load(self) -> None:
        """Publish a great many."""
        left = LOADED_RECORDS
        while left > 0:
            left -= (await self._measured(duration_s=10.0, **BATCHED)).verdict.acknowledged

    def memory_mb(self) -> float:
        """Return what the largest node uses."""
        return memory_mb([Watched(node.pid) for node in self._cluster.nodes])

    async def _measured(self, **plan: Any) -> Report:
        options = {"duration_s": self._seconds, "warmup_s": 0.2, "size": SIZE} | plan
        try:
            report = await measure(Plan(**options), self._cluster.servers)
        except AngariumError:
            print(self._cluster.last_words(), file=sys.stderr)
            raise
        if not report.is_right or report.failures:
            raise SystemExit(f"the records are not right: {report.verdict}, {report.failures}")
        return report


def memory_mb(watched: list[Watched]) -> float:
    """Return what the largest of some processes uses."""
    used = [usage(one) for one in watched]
    return max(one.memory_bytes for one in used if one is not None) / 1e6
