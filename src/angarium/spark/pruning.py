"""What a query's conditions say about where its records lie: less is read, never something else.

Conditions on topic, partition, offset and timestamp narrow the ranges of a batch read. Spark tests
every row again, so a condition that is not understood here costs time and nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from angarium.api import Start, StartAt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from angarium.spark.cluster import Cluster
    from angarium.spark.ranges import OffsetRange

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Condition:
    """A column compared with a value: `offset >= 7`, `topic in ('a', 'b')`."""

    column: str
    relation: str
    """One of = < <= > >= in."""
    value: Any


@dataclass(frozen=True, slots=True)
class Span:
    """Whole numbers from `low` up to below `high`; None is no bound."""

    low: int | None = None
    high: int | None = None

    def narrowed(self, relation: str, value: int) -> Span:
        """Return what is left of it."""
        low, high = _bounds(relation, value)
        lows = [one for one in (self.low, low) if one is not None]
        highs = [one for one in (self.high, high) if one is not None]
        return Span(max(lows, default=None), min(highs, default=None))


def _bounds(relation: str, value: int) -> tuple[int | None, int | None]:
    match relation:
        case "=":
            return value, value + 1
        case "<":
            return None, value
        case "<=":
            return None, value + 1
        case ">":
            return value + 1, None
        case ">=":
            return value, None
    return None, None


def pruned(
    ranges: Iterable[OffsetRange], conditions: Sequence[Condition], cluster: Cluster
) -> list[OffsetRange]:
    """Return the part of `ranges` in which records may be that meet all conditions."""
    kept = [one for one in ranges if all(_may_hold(one, condition) for condition in conditions)]
    kept = _within(kept, _span("offset", conditions, _whole))
    times = _span("timestamp", conditions, _micros)
    for word, micros in (("start", times.low), ("stop", times.high)):
        if micros is not None and kept:
            start = Start(StartAt.TIMESTAMP, max(0, micros))
            found = cluster.offsets([(one.topic, one.partition, start) for one in kept])
            kept = [
                replace(one, start=max(one.start, at))
                if word == "start"
                else replace(one, stop=min(one.stop, at))
                for one, at in zip(kept, found, strict=True)
            ]
    return [one for one in kept if one.records]


def _may_hold(one: OffsetRange, condition: Condition) -> bool:
    has: Any
    match condition.column:
        case "topic":
            has = one.topic
        case "partition":
            has = one.partition
        case _:
            return True
    match condition.relation:
        case "in":
            return has in condition.value
        case "=":
            return bool(has == condition.value)
    value = _whole(condition.value)
    if condition.column == "topic" or value is None:
        return True
    span = Span().narrowed(condition.relation, value)
    return (span.low is None or has >= span.low) and (span.high is None or has < span.high)


def _within(ranges: Sequence[OffsetRange], span: Span) -> list[OffsetRange]:
    return [
        replace(
            one,
            start=one.start if span.low is None else max(one.start, span.low),
            stop=one.stop if span.high is None else min(one.stop, span.high),
        )
        for one in ranges
    ]


def _span(column: str, conditions: Iterable[Condition], number_of: Any) -> Span:
    """Return what the conditions on one column leave, as whole numbers."""
    span = Span()
    for one in conditions:
        if one.column != column:
            continue
        if one.relation == "in":
            values = [number_of(value) for value in one.value]
            if values and None not in values:
                span = span.narrowed(">=", min(values)).narrowed("<=", max(values))
            continue
        value = number_of(one.value)
        if value is not None:
            span = span.narrowed(one.relation, value)
    return span


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _micros(value: Any) -> int | None:
    """Return a time in µs; one without a zone depends on where it is read, and says nothing."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    since = value.astimezone(UTC) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
