"""What readers at the nearest replica are promised (C4): bounded, monotone, their own writes.

Any replica may answer, so an answer may lack what was committed a moment ago. It may not lack more
than it says (its *staleness*), nor more than its reader allowed, nor what that reader was shown
before by another replica, nor what the reader has written itself and knows the offset of.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING

from angarium.modes import DeliveryMode
from angarium.testing.history import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import RaftGroupId
    from angarium.testing.history import Fetch, History


def c4_staleness_is_never_exceeded(history: History) -> Iterator[str]:
    """Whatever was known to be committed longer ago than an answer says lies before its end."""
    known = _known_ends(history)
    for fetch in history.fetches:
        if fetch.staleness is None or fetch.end is None:
            continue
        since = fetch.answered - fetch.staleness
        end = _end_before(known[fetch.group], since)
        if fetch.end < end:
            yield (
                f"group {fetch.group}: node {fetch.node} showed an end of {fetch.end}, at most "
                f"{fetch.staleness / 1e6:.3f} s old as it said, and {end} was known before that"
            )


def c4_no_answer_is_staler_than_allowed(history: History) -> Iterator[str]:
    """An answer says how stale it is if it was asked to be fresher than something, and is."""
    for fetch in history.fetches:
        allowed = fetch.staleness_max
        if allowed is not None and (fetch.staleness is None or fetch.staleness > allowed):
            said = "nothing" if fetch.staleness is None else f"{fetch.staleness / 1e6:.3f} s"
            yield (
                f"group {fetch.group}: node {fetch.node} answered {fetch.reader}, who allowed "
                f"{allowed / 1e6:.3f} s, with what is stale by {said}"
            )


def c4_reads_are_monotone_per_consumer(history: History) -> Iterator[str]:
    """No consumer is shown less than it was shown before, whoever answers."""
    by_reader: dict[tuple[str, RaftGroupId], list[Fetch]] = defaultdict(list)
    for fetch in history.fetches:
        if fetch.reader and fetch.end is not None:
            by_reader[fetch.reader, fetch.group].append(fetch)
    for (reader, group), fetches in by_reader.items():
        seen: list[tuple[int, int]] = []
        for fetch in sorted(fetches, key=lambda one: one.completed):
            before = max((end for at, end in seen if at <= fetch.invoked), default=0)
            if (fetch.end or 0) < before:
                yield (
                    f"group {group}: {reader} was shown an end of {fetch.end} by node {fetch.node},"
                    f" after it had been shown {before}"
                )
            seen.append((fetch.completed, fetch.end or 0))


def c4_readers_see_their_writes(history: History) -> Iterator[str]:
    """Whoever names the offset of a receipt is shown at least that record."""
    for fetch in history.fetches:
        if fetch.at_least and fetch.end is not None and fetch.end < fetch.at_least:
            yield (
                f"group {fetch.group}: {fetch.reader} asked node {fetch.node} for all up to "
                f"{fetch.at_least}, and was shown {fetch.end}"
            )


def _known_ends(history: History) -> dict[RaftGroupId, list[tuple[int, int]]]:
    """Return from when on (µs) somebody knew each log to be committed up to where, ascending."""
    moments: dict[RaftGroupId, list[tuple[int, int]]] = defaultdict(list)
    for publish in history.publishes:
        if publish.result is not Result.OK or publish.mode is not DeliveryMode.CONSISTENT:
            continue
        if publish.completed is not None:
            end = publish.base_offset + len(publish.values)
            moments[publish.group].append((publish.completed, end))
    for read in history.high_waters:
        moments[read.group].append((read.completed, read.end))
    for fetch in history.fetches:
        if fetch.end is not None:
            moments[fetch.group].append((fetch.completed, fetch.end))
    known: dict[RaftGroupId, list[tuple[int, int]]] = defaultdict(list)
    for group, timeline in moments.items():
        timeline.sort()
        ends = accumulate((end for _, end in timeline), max)
        known[group] = [(at, end) for (at, _), end in zip(timeline, ends, strict=True)]
    return known


def _end_before(known: list[tuple[int, int]], time: int) -> int:
    at = bisect_left(known, (time, 0))
    return known[at - 1][1] if at else 0
