"""Counting what goes through a node: whole batches at a time, and a bounded number of topics."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

TOPICS_MAX: Final = 10_000
"""Topics counted one by one. What goes to further ones is counted in the totals only."""

VERBS: Final = ("ack", "nack", "release", "extend", "reject")
"""What members say about records."""

DECISIONS: Final = ("committed", "aborted", "sequenced", "sequenced_duplicate")
"""How transactions end; the last two are publishes under a producer's own numbers, which the
partition decides alone."""

RATE_SECONDS: Final = 1.0
"""Rates are looked at no more often than this; in between the last one holds."""


@dataclass(slots=True)
class Meter:
    """Counts of one topic, or of all of them."""

    published: int = 0
    published_bytes: int = 0
    failed: int = 0
    delivered: int = 0
    subscribers: int = 0
    """Present ones; everything else only grows."""


@dataclass(slots=True)
class Rate:
    """How fast a count grows."""

    per_second: float = 0.0
    _count: int = 0
    _at: float = field(default_factory=time.monotonic)

    def of(self, count: int) -> float:
        """Return records per second, given the count as it is now."""
        now = time.monotonic()
        passed = now - self._at
        if passed >= RATE_SECONDS:
            self.per_second = (count - self._count) / passed
            self._count, self._at = count, now
        return self.per_second


class Meters:
    """All counts of a node."""

    def __init__(self) -> None:
        self.total = Meter()
        self.topics: dict[str, Meter] = {}
        self.started_at = time.time()
        self.duplicates = 0
        """Batches that had been stored before: repetitions that a producer or a key gave away."""
        self.members = 0
        """Members of groups that are here now."""
        self.redelivered = 0
        """Records handed to members again, after an attempt that failed or was never settled."""
        self.settled_by_verb = dict.fromkeys(VERBS, 0)
        self.decisions = dict.fromkeys(DECISIONS, 0)
        self._rates: dict[tuple[str, str], Rate] = {}

    def topic(self, name: str) -> Meter:
        """Return a topic's counts; beyond the limit, ones that nobody will see."""
        meter = self.topics.get(name)
        if meter is None:
            meter = Meter()
            if len(self.topics) < TOPICS_MAX:
                self.topics[name] = meter
        return meter

    def published(self, topic: str, records: int, size: int) -> None:
        """Count records that were acknowledged."""
        for meter in (self.total, self.topic(topic)):
            meter.published += records
            meter.published_bytes += size

    def failed(self, topic: str) -> None:
        """Count a publish that was refused or whose outcome is unknown."""
        self.total.failed += 1
        if topic in self.topics:
            self.topics[topic].failed += 1

    def delivered(self, topic: str, records: int) -> None:
        """Count records handed to a subscriber or a member of a group."""
        self.total.delivered += records
        self.topic(topic).delivered += records

    def subscribed(self, topic: str, change: int) -> None:
        """Count a subscriber that came (1) or went (-1)."""
        self.total.subscribers += change
        self.topic(topic).subscribers += change

    def joined(self, change: int) -> None:
        """Count a member of a group that came (1) or went (-1)."""
        self.members += change

    def handed(self, records: int, *, attempt: int) -> None:
        """Count records that a member was handed."""
        if attempt > 1:
            self.redelivered += records

    def settled(self, verb: str, records: int) -> None:
        """Count records that a member has said something about."""
        self.settled_by_verb[verb] += records

    def decided(self, what: str) -> None:
        """Count a transaction that ended, or a publish under a number of its producer's own."""
        self.decisions[what] += 1

    def rate(self, topic: str, what: str, count: int) -> float:
        """Return how fast a count grows; the topic "" stands for all of them."""
        rate = self._rates.setdefault((topic, what), Rate())
        if len(self._rates) > 4 * TOPICS_MAX:
            self._rates.clear()
        return rate.of(count)
