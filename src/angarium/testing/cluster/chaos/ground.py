"""Where a fault strikes: a cluster of its own, a load on it, and the judges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.modes import DeliveryMode
from angarium.testing.cluster.cluster import ProcessCluster
from angarium.testing.cluster.load import Load

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.testing.cluster.chaos.line import Line

TOPIC: Final = "orders"
PARTITIONS: Final = 3


class Ground:
    """Gives each fault a cluster of its own."""

    def __init__(self, folder: Path, times: int) -> None:
        self.folder = folder
        self.times = times
        """How often each fault strikes."""
        self._number = 0

    def cluster(
        self, *, parted: bool = False, program: tuple[str, ...] | None = None
    ) -> ProcessCluster:
        """Return a new cluster, in a folder of its own."""
        folder = self.new_folder()
        if program is None:
            return ProcessCluster(folder, parted=parted)
        return ProcessCluster(folder, parted=parted, program=program)

    def new_folder(self) -> Path:
        """Return a folder that nobody uses."""
        self._number += 1
        return self.folder / str(self._number)

    def load(
        self,
        cluster: ProcessCluster,
        mode: DeliveryMode = DeliveryMode.CONSISTENT,
        *,
        partitions: int = PARTITIONS,
        producers: int | None = None,
        pause_s: float = 0.02,
    ) -> Load:
        """Return producers and subscribers whose every answer is recorded."""
        return Load(
            cluster,
            topic=TOPIC,
            partitions=partitions,
            producers=producers or max(partitions, 2 * PARTITIONS),
            subscribers=2,
            mode=mode,
            pause_s=pause_s,
        )

    async def judge(self, line: Line, load: Load) -> None:
        """End the load, and compare what clients were told with what the replicas hold."""
        verdict = await load.conclude()
        line.acknowledged = verdict.acknowledged
        line.violations += [str(one) for one in verdict.violations]
        if verdict.lost_early:
            line.note = (
                f"{verdict.lost_early} provisional records lost with their leader, answered at "
                f"most {verdict.lost_age_micros / 1_000:.0f} ms before its last answer"
            )
