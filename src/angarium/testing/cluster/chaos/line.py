"""One line of the table: what a fault came to."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Final

from angarium.testing.cluster.faults import Recovery


@dataclass(slots=True)
class Line:
    """One line of the table."""

    fault: str
    mode: str
    times: int
    acknowledged: int = 0
    violations: list[str] = field(default_factory=list)
    recovery: Recovery = field(default_factory=Recovery)
    note: str = ""

    def __str__(self) -> str:
        gaps, shares = self.recovery.gaps_s, self.recovery.available
        waits = f"{statistics.median(gaps):.2f} / {max(gaps):.2f}" if gaps else "-"
        available = f"{statistics.mean(shares):.1%}" if shares else "-"
        return (
            f"| {self.fault} | {self.mode} | {self.times} | {self.acknowledged:,} | "
            f"{len(self.violations)} | {waits} | {available} | {self.note} |"
        )

    def expect_within(self, seconds_max: float) -> None:
        """Count it as a violation if somebody waited longer for an answer."""
        if self.recovery.longest_s > seconds_max:
            self.violations.append(
                f"it took {self.recovery.longest_s:.2f} s to answer again, not {seconds_max:g}"
            )


HEADING: Final = """\
| fault | mode | times | records acknowledged | violations | without an ack, s: median / longest \
| windows with an ack | |
|---|---|---|---|---|---|---|---|"""
