"""What planning asks of a cluster; `link` answers from a real one, tests from a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from angarium.api import Start, TopicInfo
    from angarium.errors import AngariumError


class Cluster(Protocol):
    """Topics, and where their partitions begin and end."""

    def topics(self) -> Mapping[str, TopicInfo]:
        """Return all topics by name."""

    def offsets(self, wanted: Sequence[tuple[str, int, Start]]) -> list[int]:
        """Return the offset that each start stands for, in the order asked for; `NobodyAnswers`
        if a partition has nobody who can tell."""

    def offsets_within(
        self, wanted: Sequence[tuple[str, int, Start]], patience_s: Sequence[float]
    ) -> list[int | AngariumError]:
        """Return the same, and where nobody answers within so many seconds what came instead."""

    def group_floors(self, group: str) -> Mapping[tuple[str, int], int]:
        """Return where a group stands, by topic and partition; `NotFound` if there is none."""

    def report(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Say how far a group of kind CHECKPOINT has come, in each topic and partition."""

    def record_bytes(self, topic: str, partition: int, offset: int) -> float | None:
        """Return the mean size of the records in the batch at `offset`; None if none is there."""
