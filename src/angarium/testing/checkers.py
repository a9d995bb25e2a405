"""The checks C1 to C6 and C9 to C11 on a history, and what EVENTUAL may lose (C8).

C9, C10 and C11 (no append time is ahead of what a majority of clocks says) are looked at while a
run lasts; what was noticed comes with the history as incidents.

Those of transactions are in `transaction_checkers`, those of consumer groups (C7, and their part of
C8) in `group_checkers`, what reads may not miss (C4) in `read_checkers`; `CHECKS` lists them all.

Each walks the history once or sorts it, so that a run of a million records can be checked too.
A checker is only trusted while it finds the planted bugs of `tests/simulation`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from angarium.modes import DeliveryMode
from angarium.testing import (
    group_checkers,
    nearby_checkers,
    read_checkers,
    transaction_checkers,
)
from angarium.testing.history import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from angarium.ids import RaftGroupId
    from angarium.testing.history import FinalLog, History, Publish


class Violation(NamedTuple):
    """A promise that did not hold."""

    check: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.check}: {self.sentence}"


VIOLATIONS_SHOWN_MAX = 20
"""Violations reported per check; one bug tends to break many records in the same way."""


def violations(history: History) -> list[Violation]:
    """Return every promise the history breaks, at most a few per check."""
    found: list[Violation] = [_noticed(incident) for incident in history.incidents]
    for check in CHECKS:
        for number, sentence in enumerate(check(history)):
            if number >= VIOLATIONS_SHOWN_MAX:
                break
            found.append(Violation(check.__name__[:2].upper(), sentence))
    return found


def c1_nothing_acknowledged_is_lost(history: History) -> Iterator[str]:
    """Every CONSISTENT acknowledgement is in every replica's final log, at its offset."""
    for log in history.final:
        held = {record.offset: record.value for record in log.records}
        for publish in _answered(history, log.group, DeliveryMode.CONSISTENT):
            for offset, value in _placed(publish):
                if offset >= log.start and held.get(offset) != value:
                    where = _region(offset, log)
                    yield (
                        f"node {log.node} group {log.group}: acknowledged {value!r} at {offset} is "
                        f"lost ({where} of [{log.start}, {log.end})); it holds {held.get(offset)!r}"
                    )


def c1_nothing_known_to_be_stored_is_lost(history: History) -> Iterator[str]:
    """What a producer was told to be a duplicate is there, whether or not it was told where."""
    for log in history.final:
        if log.start:
            continue  # it may have been trimmed away
        held = {record.value for record in log.records}
        for publish in history.publishes:
            if publish.stored and publish.group == log.group and publish.values[0] not in held:
                yield (
                    f"node {log.node} group {log.group}: {publish.values[0]!r} was said to be "
                    "stored before, and is not there"
                )


def c1_only_what_was_trimmed_is_gone(history: History) -> Iterator[str]:
    """A log begins where somebody wished it to, and at least where that was acknowledged."""
    for log in history.final:
        wishes = [wish for wish in history.trims if wish.group == log.group]
        acknowledged = max((one.start for one in wishes if one.result is Result.OK), default=0)
        if log.start < acknowledged:
            yield (
                f"node {log.node} group {log.group}: it begins at {log.start}, though a trim to "
                f"{acknowledged} was acknowledged"
            )
        if log.start and all(one.start != log.start for one in wishes):
            yield (
                f"node {log.node} group {log.group}: it begins at {log.start}, and nobody "
                "wanted that"
            )


def c1_nothing_young_is_trimmed(history: History) -> Iterator[str]:
    """What is trimmed by age was published long ago, by the real time."""
    for wish in history.trims:
        if wish.age_min is None:
            continue
        for publish in history.publishes:
            is_there = publish.group == wish.group and publish.result is Result.OK
            if not is_there or not 0 <= publish.base_offset < wish.start:
                continue
            age = wish.invoked - publish.invoked
            if age < wish.age_min and publish.values[0] not in history.unsure:
                yield (
                    f"group {wish.group}: {publish.values[0]!r} at {publish.base_offset} was to be "
                    f"trimmed {age / 1e6:.3f} s after it was sent, not {wish.age_min / 1e6:.3f}"
                )
                break


def c1_nothing_is_invented(history: History) -> Iterator[str]:
    """Whatever was delivered or stored, somebody tried to publish."""
    attempted: dict[RaftGroupId, set[bytes]] = defaultdict(set)
    for publish in history.publishes:
        attempted[publish.group].update(publish.values)
    for one in history.transactions:
        for group, values in one.values.items():
            attempted[group].update(values)
    for log in history.final:
        for record in log.records:
            if record.value in history.groups.letters:
                continue
            if record.value not in attempted[log.group]:
                yield f"node {log.node} group {log.group}: {record.value!r} was never sent"
    for fetch in history.fetches:
        for offset, value in fetch.records:
            if value not in attempted[fetch.group] and value not in history.groups.letters:
                yield f"a fetch from node {fetch.node} at {offset} saw {value!r}, never sent"


def c2_one_value_per_offset(history: History) -> Iterator[str]:
    """Acks, reads and replicas agree on what an offset holds, at any time."""
    seen: dict[tuple[RaftGroupId, int], tuple[bytes, str]] = {}

    def conflicts(group: RaftGroupId, offset: int, value: bytes, who: str) -> str | None:
        before = seen.setdefault((group, offset), (value, who))
        if before[0] == value:
            return None
        return f"group {group} offset {offset}: {who} has {value!r}, {before[1]} had {before[0]!r}"

    for group, offset, value, who in _observations(history):
        sentence = conflicts(group, offset, value, who)
        if sentence is not None:
            yield sentence


def c3_offsets_grow_with_time(history: History) -> Iterator[str]:
    """An acknowledged offset lies above every offset known before its call began.

    Not so a provisional one that is lost: a leader that is cut off and does not know yet that it
    has been replaced may give offsets that its successor has given to others. Whether it may be
    lost is C8's to say.
    """
    held = {
        (log.group, record.offset): record.value for log in history.final for record in log.records
    }
    moments: dict[RaftGroupId, list[tuple[int, int, int]]] = defaultdict(list)
    # Known: a CONSISTENT ack or a read, both of committed records. An EVENTUAL offset is
    # provisional and may be given to somebody else after a change of leader.
    for publish in history.publishes:
        if publish.result is Result.OK:
            moments[publish.group].append((publish.invoked, 1, publish.base_offset))
            if publish.mode is DeliveryMode.CONSISTENT and publish.completed is not None:
                last = publish.base_offset + len(publish.values) - 1
                moments[publish.group].append((publish.completed, 0, last))
    for fetch in history.fetches:
        if fetch.records:
            moments[fetch.group].append((fetch.completed, 0, fetch.records[-1][0]))
    floors: dict[tuple[RaftGroupId, int, int], int] = {}
    for group, timeline in moments.items():
        known = -1
        # At one and the same moment the call counts as begun before the answer was known.
        for time, kind, offset in sorted(timeline, key=lambda moment: (moment[0], -moment[1])):
            if kind == 0:
                known = max(known, offset)
            else:
                floors[group, time, offset] = known
    for publish in history.publishes:
        stored = held.get((publish.group, publish.base_offset))
        is_lost = publish.provisional and stored != publish.values[0]
        if publish.result is Result.OK and not is_lost:
            floor = floors[publish.group, publish.invoked, publish.base_offset]
            if publish.base_offset <= floor:
                yield (
                    f"group {publish.group}: offset {publish.base_offset} was acknowledged for a "
                    f"call begun when offset {floor} was known already"
                )


def c3_order_of_each_producer(history: History) -> Iterator[str]:
    """In the log, a producer's records lie in the order of their sequence."""
    for log in history.final:
        last: dict[int, tuple[int, int]] = {}
        for record in log.records:
            if not record.producer:
                continue
            number = (record.epoch, record.sequence)
            if number < last.get(record.producer, (-1, -1)):
                yield (
                    f"node {log.node} group {log.group} offset {record.offset}: producer "
                    f"{record.producer} at {number} after {last[record.producer]}"
                )
            last[record.producer] = number


def c3_reads_are_dense(history: History) -> Iterator[str]:
    """Reads and final logs skip nothing but declared gaps."""
    empty: dict[RaftGroupId, set[int]] = defaultdict(set)
    trimmed: dict[RaftGroupId, int] = defaultdict(int)
    for log in history.final:
        empty[log.group].update(offset for gap in log.gaps for offset in range(*gap))
        trimmed[log.group] = max(trimmed[log.group], log.start)
    for log in history.final:
        expected = log.start
        for record in log.records:
            if not empty[log.group].issuperset(range(expected, record.offset)):
                yield (
                    f"node {log.node} group {log.group}: after {expected - 1} comes {record.offset}"
                )
            expected = record.offset + 1
    known = {log.group for log in history.final}
    for fetch in history.fetches:
        if fetch.group not in known:
            continue  # a hole may be a gap that was declared; only logs tell
        # Of gaps that were trimmed away since, nobody knows any more.
        expected = max(fetch.from_offset, trimmed[fetch.group])
        for offset, _ in fetch.records:
            if not empty[fetch.group].issuperset(range(expected, offset)):
                yield (
                    f"a fetch from node {fetch.node} of group {fetch.group}: after {expected - 1} "
                    f"comes {offset}"
                )
            expected = max(offset + 1, expected)


def c5_nothing_failed_is_delivered(history: History) -> Iterator[str]:
    """What was definitely refused is in no log."""
    failed: dict[RaftGroupId, set[bytes]] = defaultdict(set)
    for publish in history.publishes:
        if publish.result is Result.FAIL:
            failed[publish.group].update(publish.values)
    for log in history.final:
        for record in log.records:
            if record.value in failed[log.group]:
                yield f"node {log.node} group {log.group}: {record.value!r} was refused, yet stored"


def c6_each_sequence_once(history: History) -> Iterator[str]:
    """Each (producer, epoch, sequence) is in the log at most once."""
    for log in history.final:
        offsets: dict[tuple[int, int, int], int] = {}
        for record in log.records:
            if not record.producer:
                continue
            number = (record.producer, record.epoch, record.sequence)
            if number in offsets:
                yield (
                    f"node {log.node} group {log.group}: producer, epoch, sequence {number} at "
                    f"{offsets[number]} and again at {record.offset}"
                )
            offsets[number] = record.offset
        staged: dict[bytes, int] = {}
        for record in log.records:
            if record.producer:
                continue
            if record.value in staged:
                yield (
                    f"node {log.node} group {log.group}: staged {record.value!r} at "
                    f"{staged[record.value]} and again at {record.offset}"
                )
            staged[record.value] = record.offset


def c8_eventual_is_lost_only_with_its_leader(history: History) -> Iterator[str]:
    """An EVENTUAL answer may be missing only if the leader that gave it was lost or deposed."""
    logs = {log.group: log for log in history.final}
    values = {
        group: {record.offset: record.value for record in log.records}
        for group, log in logs.items()
    }
    for group, log in logs.items():
        for publish in _answered(history, group, DeliveryMode.EVENTUAL):
            missing = any(
                offset >= log.start and values[group].get(offset) != value
                for offset, value in _placed(publish)
            )
            if not missing:
                continue
            tenure = (group, publish.node, publish.term)
            if not publish.provisional or tenure not in history.ended_tenures:
                yield (
                    f"group {group}: {publish.values[0]!r}, answered at {publish.base_offset} by "
                    f"node {publish.node} in term {publish.term}, is gone though it kept leading"
                )


CHECKS: tuple[Callable[[History], Iterator[str]], ...] = (
    c1_nothing_acknowledged_is_lost,
    c1_nothing_known_to_be_stored_is_lost,
    c1_only_what_was_trimmed_is_gone,
    c1_nothing_young_is_trimmed,
    transaction_checkers.c1_transactions_are_whole,
    transaction_checkers.c1_transactions_come_to_light_at_once,
    c1_nothing_is_invented,
    c2_one_value_per_offset,
    c3_offsets_grow_with_time,
    c3_order_of_each_producer,
    c3_reads_are_dense,
    read_checkers.c4_high_water_is_never_stale,
    read_checkers.c4_a_node_does_not_go_back,
    read_checkers.c4_what_is_there_is_found,
    nearby_checkers.c4_staleness_is_never_exceeded,
    nearby_checkers.c4_no_answer_is_staler_than_allowed,
    nearby_checkers.c4_reads_are_monotone_per_consumer,
    nearby_checkers.c4_readers_see_their_writes,
    c5_nothing_failed_is_delivered,
    c6_each_sequence_once,
    transaction_checkers.c6_each_letter_is_sent_back_once,
    c8_eventual_is_lost_only_with_its_leader,
    group_checkers.c7_a_floor_passes_only_what_was_settled,
    group_checkers.c7_what_was_acknowledged_stays_so,
    group_checkers.c7_attempts_are_not_forgotten,
    group_checkers.c7_what_was_rejected_is_not_tried_again,
    group_checkers.c7_each_record_is_buried_once_with_the_right_count,
    group_checkers.c8_one_holder_at_a_time,
    group_checkers.c8_streams_keep_their_order,
    group_checkers.c8_keys_keep_their_order,
)


def _noticed(incident: str) -> Violation:
    """Return an incident under its check: the one it names, else C9."""
    check, colon, sentence = incident.partition(": ")
    return (
        Violation(check, sentence)
        if colon and check in {"C7", "C10", "C11"}
        else Violation("C9", incident)
    )


def _answered(history: History, group: RaftGroupId, mode: DeliveryMode) -> Iterator[Publish]:
    for publish in history.publishes:
        if publish.group == group and publish.result is Result.OK and publish.mode is mode:
            yield publish


def _placed(publish: Publish) -> Iterator[tuple[int, bytes]]:
    return enumerate(publish.values, publish.base_offset)


def _region(offset: int, log: FinalLog) -> str:
    if offset >= log.end:
        return "beyond the tail"
    if not log.records or offset < log.records[0].offset:
        return "prefix"
    return "tail" if offset > log.records[-1].offset else "middle"


def _observations(history: History) -> Iterator[tuple[RaftGroupId, int, bytes, str]]:
    for log in history.final:
        for record in log.records:
            yield log.group, record.offset, record.value, f"node {log.node}'s log"
    for fetch in history.fetches:
        for offset, value in fetch.records:
            yield fetch.group, offset, value, f"a read from node {fetch.node}"
    for publish in history.publishes:
        if publish.result is Result.OK and not publish.provisional:
            for offset, value in _placed(publish):
                yield publish.group, offset, value, f"an ack from node {publish.node}"
