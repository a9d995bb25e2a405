"""Who was slowed down or refused because of quotas, counted by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.api.quotas import QuotaKind
from angarium.telemetry.exposition import Family, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class ThrottleMeters:
    """The counts of a node. The kinds are all there are, so the labels are bounded."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(QuotaKind, 0.0)
        self.delayed = dict.fromkeys(QuotaKind, 0)
        self.refused = dict.fromkeys(QuotaKind, 0)

    def waits(self, kind: QuotaKind, seconds: float) -> None:
        """Count that somebody is made to wait."""
        self.seconds[kind] += seconds
        self.delayed[kind] += 1

    def refuses(self, kind: QuotaKind) -> None:
        """Count that somebody was refused."""
        self.refused[kind] += 1

    def families(self) -> Iterator[Family]:
        """Yield metrics."""
        yield _family(
            "angarium_throttled_seconds_total",
            "Seconds that callers over a quota were made to wait, by what was used up.",
            self.seconds,
        )
        yield _family(
            "angarium_throttled_total",
            "How often a caller over a quota was made to wait, by what was used up.",
            self.delayed,
        )
        yield _family(
            "angarium_quota_refusals_total",
            "How often something was refused because of a quota, by what was used up.",
            self.refused,
        )


def _family(name: str, about: str, counts: Mapping[QuotaKind, float]) -> Family:
    samples = tuple(Sample(count, (("kind", kind.value),)) for kind, count in counts.items())
    return Family(name, "counter", about, samples)
