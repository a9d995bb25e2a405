"""What a soak saw, and whether it is well: curves, a table by the minute, a verdict."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

WARM_UP_SHARE: Final = 0.4
"""The part of the run in which things may still grow: caches fill, retention is not reached."""

GROWTH_MAX: Final = {
    "memory_mb": 1.15,
    "open_files": 1.10,
    "disk_mb": 1.15,
    "p99_ms": 2.0,
    "handed_p99_ms": 2.0,
}
"""How much the last third after the warm-up may lie above the first third, as a factor."""

_CURVE_COLUMNS: Final = 60
_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_MINUTE_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look at everything. Of the nodes' figures it has the largest."""

    seconds: float
    memory_mb: float
    open_files: int
    disk_mb: float
    processor_percent: float
    """Of one core, by all nodes together."""
    records_per_second: float
    p50_ms: float
    p99_ms: float
    """From publish to acknowledgement, in CONSISTENT mode."""
    delivered_p99_ms: float
    """From publish to a subscriber."""
    behind: int
    """Records acknowledged and not delivered yet."""
    handed_p99_ms: float = 0.0
    """From publish to a member of a queue or key group, first attempts without a delay."""
    late_p99_ms: float = 0.0
    """How long after its time a delayed record came."""
    settled_per_second: float = 0.0
    """Records that groups acknowledged."""
    retried_per_second: float = 0.0
    """Records that came again, after their backoff."""
    dead_letters: int = 0
    """So far."""
    unsettled: int = 0
    """Records that a group has yet to settle, delayed ones included."""


def growth(samples: Sequence[Sample], name: str) -> float:
    """Return by what factor a quantity lies higher at the end than after the warm-up."""
    warm = samples[int(len(samples) * WARM_UP_SHARE) :]
    part = max(1, len(warm) // 3)
    first = statistics.median(getattr(one, name) for one in warm[:part])
    last = statistics.median(getattr(one, name) for one in warm[-part:])
    return last / first if first else 1.0


def curve(samples: Sequence[Sample], name: str) -> str:
    """Return a line of blocks that shows how a quantity went, from 0 to its highest value."""
    values = [float(getattr(one, name)) for one in samples]
    width = max(1, -(-len(values) // _CURVE_COLUMNS))
    means = [statistics.mean(values[at : at + width]) for at in range(0, len(values), width)]
    highest = max(means) or 1.0
    return "".join(_BLOCKS[max(0, min(7, int(8 * one / highest)))] for one in means)


def by_minute(samples: Sequence[Sample]) -> str:
    """Return a table with a line for each minute: the median of its samples."""
    names = [one.name for one in fields(Sample)[1:]]
    lines = ["| minute | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    minutes: dict[int, list[Sample]] = {}
    for sample in samples:
        minutes.setdefault(int((sample.seconds - 0.5) // _MINUTE_S) + 1, []).append(sample)
    for minute, seen in minutes.items():
        medians = [statistics.median(getattr(one, name) for one in seen) for name in names]
        lines.append(f"| {minute} | " + " | ".join(f"{one:,.10g}" for one in medians) + " |")
    return "\n".join(lines)


def report(samples: Sequence[Sample], faults: Sequence[str]) -> tuple[str, bool]:
    """Return a table with a curve per quantity and a verdict, and whether all is well."""
    lines = ["| quantity | first | last | highest | growth | curve |", "|---|---|---|---|---|---|"]
    grown = []
    for field in fields(Sample)[1:]:
        values = [getattr(one, field.name) for one in samples]
        if not any(values):
            continue  # a run without groups
        factor = growth(samples, field.name)
        bound = GROWTH_MAX.get(field.name)
        shown = f"{factor:.2f}"
        if bound is not None and factor > bound:
            grown.append(field.name)
            shown += f" (more than {bound:g})"
        lines.append(
            f"| {field.name} | {values[0]:,} | {values[-1]:,} | {max(values):,} | {shown} | "
            f"`{curve(samples, field.name)}` |"
        )
    lines += ["", _verdict(samples, grown, faults)]
    lines += [f"- {fault}" for fault in faults[:20]]
    return "\n".join(lines), not grown and not faults


def _verdict(samples: Sequence[Sample], grown: list[str], faults: Sequence[str]) -> str:
    minutes = samples[-1].seconds / _MINUTE_S if samples else 0.0
    if not grown and not faults:
        return f"Verdict: {minutes:.0f} minutes, no record missing, nothing has grown."
    wrong = [f"{', '.join(grown)} grew"] if grown else []
    wrong += [f"{len(faults)} things that must not happen did"] if faults else []
    return f"Verdict: NOT well after {minutes:.0f} minutes: {'; '.join(wrong)}."
