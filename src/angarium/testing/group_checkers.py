"""The checks C7 and C8 on what happened to consumer groups.

C7: a floor never passes a record that nobody settled; a record ends acknowledged, as one dead
letter with the right count, or pending; attempts are never forgotten. C8, its part for groups: a
leader lends a record to one member at a time, takes settlements from its holder only, and keeps the
order its group was promised.

What a leader lent and what it took back is believed; whether it was allowed to is worked out here,
from the history alone. Leaders are judged one by one: a deposed one that does not know it yet may
lend what its successor has lent, and can commit nothing of it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from angarium.kinds import GroupKind
from angarium.testing.group_history import Judged, Kept, Left, Lent, Promised, Taken, Undone
from angarium.testing.history import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.ids import RaftGroupId
    from angarium.testing.group_history import FinalGroup, Settle, Tenure
    from angarium.testing.history import FinalLog, History


def c7_a_floor_passes_only_what_was_settled(history: History) -> Iterator[str]:
    """Whatever counts as acknowledged in the end was acknowledged, buried, or is not there."""
    logs = {log.group: log for log in history.final}
    acked = _taken_acks(history)
    buried = {(partition, name, offset) for partition, name, offset, _, _ in _stored(history)}
    for record, (partition, at) in history.groups.buried.items():
        if partition in logs and at < logs[partition].start:  # trimmed away since
            buried.add(record)
    for one in history.groups.final:
        base = _base(history, one)
        settled = acked[one.partition, one.name, one.generation]
        present = _present(logs.get(one.partition))
        for offset in _acknowledged(one):
            if offset < base or offset in settled or offset not in present:
                continue
            if (one.partition, one.name, offset) not in buried:
                yield (
                    f"{one.name} of partition {one.partition} has passed {offset}, which nobody "
                    f"acknowledged since {base}"
                )


def c7_what_was_acknowledged_stays_so(history: History) -> Iterator[str]:
    """An acknowledgement that was answered is there in the end, and its record never lent again."""
    final = {(one.partition, one.name, one.generation): one for one in history.groups.final}
    lent, deposed = _lent_times(history), _deposed(history)
    for settle in history.groups.settles:
        if settle.verb != "ack" or settle.result is not Result.OK or settle.completed is None:
            continue
        one = final.get((settle.partition, settle.name, settle.generation))
        for offset in settle.offsets:
            if one is not None and offset not in _set_of(one):
                yield (
                    f"{settle.name} of partition {settle.partition}: {settle.member} was told that "
                    f"{offset} is acknowledged, and it is not"
                )
            key = (settle.partition, settle.name, settle.generation, offset)
            for tenure, time in lent.get(key, ()):
                if tenure.began > settle.completed and tenure not in deposed:
                    yield (
                        f"{settle.name} of partition {settle.partition}: {offset} was lent at "
                        f"{time} in term {tenure.term}, though it had been acknowledged"
                    )


def c7_attempts_are_not_forgotten(history: History) -> Iterator[str]:
    """After a failure was answered, the next leader counts it; within a tenure attempts grow."""
    failed: dict[tuple[RaftGroupId, str, int, int], list[Settle]] = defaultdict(list)
    for settle in history.groups.settles:
        if settle.verb == "nack" and settle.result is Result.OK:
            # In a stream only the first of them has failed.
            key = (settle.partition, settle.name, settle.generation, settle.offsets[0])
            failed[key].append(settle)
    deposed = _deposed(history)
    for tenure in history.groups.tenures:
        last: dict[int, int] = {}
        for event in tenure.events:
            if not isinstance(event, Lent):
                continue
            for offset in event.offsets:
                key = (tenure.partition, tenure.name, tenure.generation, offset)
                for settle in failed.get(key, ()):
                    assert settle.completed is not None
                    is_later = settle.completed < tenure.began and tenure not in deposed
                    if is_later and event.attempt <= settle.attempt:
                        yield (
                            f"{tenure.name} of partition {tenure.partition}: {offset} was lent as "
                            f"attempt {event.attempt} after attempt {settle.attempt} had failed"
                        )
                if event.attempt < last.get(offset, 0):
                    yield (
                        f"{tenure.name} of partition {tenure.partition}: {offset} was lent as "
                        f"attempt {event.attempt} after attempt {last[offset]}"
                    )
                last[offset] = event.attempt


def c7_what_was_rejected_is_not_tried_again(history: History) -> Iterator[str]:
    """A leader that took a rejection does not lend the record again, nor do those after it."""
    lent, deposed = _lent_times(history), _deposed(history)
    for tenure in history.groups.tenures:
        who = f"{tenure.name} of partition {tenure.partition}"
        for offset, at in _rejections(tenure):
            for event in tenure.events[at:]:
                if isinstance(event, Lent) and offset in event.offsets:
                    yield f"{who}: {offset} was lent at {event.time}, after it was rejected"
    for settle in history.groups.settles:
        if settle.verb != "reject" or settle.result is not Result.OK or settle.completed is None:
            continue
        key = (settle.partition, settle.name, settle.generation, settle.offsets[0])
        for tenure, time in lent.get(key, ()):
            if tenure.began > settle.completed and tenure not in deposed:
                yield (
                    f"{settle.name} of partition {settle.partition}: {settle.offsets[0]} was lent "
                    f"at {time} in term {tenure.term}, though it had been rejected"
                )


def c7_each_record_is_buried_once_with_the_right_count(history: History) -> Iterator[str]:
    """There is one letter for a record and a generation, after as many attempts as it says."""
    limits = {(one.partition, one.name): one.max_attempts for one in history.groups.final}
    lent: dict[tuple[RaftGroupId, str, int], set[int]] = defaultdict(set)
    for tenure in history.groups.tenures:
        for event in tenure.events:
            if isinstance(event, Lent):
                for offset in event.offsets:
                    lent[tenure.partition, tenure.name, offset].add(event.attempt)
    seen: set[tuple[RaftGroupId, str, int, int]] = set()
    rejected = {
        (tenure.partition, tenure.name, offset)
        for tenure in history.groups.tenures
        for offset, _ in _rejections(tenure)
    }
    for partition, name, offset, generation, attempts in _stored(history):
        if (partition, name, offset, generation) in seen:
            yield f"{name} of partition {partition}: {offset} was buried twice"
        seen.add((partition, name, offset, generation))
        limit = limits.get((partition, name), attempts)
        may_be_early = (partition, name, offset) in rejected
        if attempts not in (limit, 0) and not may_be_early:  # 0: forgotten by a seek, with all else
            yield f"{name} of partition {partition}: {offset} was buried after {attempts} attempts"
        missing = set(range(1, attempts + 1)) - lent[partition, name, offset]
        if missing:
            yield (
                f"{name} of partition {partition}: {offset} was buried after {attempts} attempts, "
                f"and {sorted(missing)} never happened"
            )


def c8_one_holder_at_a_time(history: History) -> Iterator[str]:
    """A record is lent to one member, and only that one settles it."""
    for tenure in history.groups.tenures:
        books = _Books(tenure)
        for event in tenure.events:
            if isinstance(event, Lent):
                for offset in event.offsets:
                    holder = books.holder.get(offset)
                    if holder is not None:
                        yield f"{books}: {offset} was lent to {event.member}, {holder} has it"
                    if offset in books.over:
                        yield f"{books}: {offset} was lent to {event.member} after its end"
            elif isinstance(event, Judged) and event.is_taken:
                for offset in event.offsets:
                    holder = books.holder.get(offset)
                    if holder not in (None, event.member):
                        yield f"{books}: {event.member} settled {offset}, which {holder} has"
            books.take(event)


def c8_streams_keep_their_order(history: History) -> Iterator[str]:
    """In a stream group all records before one that is lent are over, or with the same member."""
    logs = {log.group: log for log in history.final}
    for tenure in history.groups.tenures:
        if not tenure.kind.is_ordered:
            continue
        present = _present(logs.get(tenure.partition))
        books = _Books(tenure)
        for event in tenure.events:
            if isinstance(event, Lent):
                lowest = min(event.offsets)
                for offset in range(tenure.floor, lowest):
                    is_over = offset in books.over or offset not in present
                    if not is_over and books.holder.get(offset) != event.member:
                        yield f"{books}: {lowest} was lent to {event.member} before {offset}"
                        break
            books.take(event)


def c8_keys_keep_their_order(history: History) -> Iterator[str]:
    """In a key group one record of a key is out at a time, and those before it are over."""
    logs = {log.group: log for log in history.final}
    for tenure in history.groups.tenures:
        if tenure.kind is GroupKind.KEY:
            keys = _keys(history, logs.get(tenure.partition))
            books = _Books(tenure)
            for event in tenure.events:
                if isinstance(event, Lent):
                    for offset in event.offsets:
                        for other, time in keys.get(offset, ()):
                            if other in books.over or other == offset:
                                continue
                            if other in books.holder:
                                yield f"{books}: {offset} was lent, and {other} of its key is out"
                            elif tenure.floor <= other < offset and not time:
                                yield f"{books}: {offset} was lent before {other} of its key"
                books.take(event)


class _Books:
    """Who holds what in one tenure, as far as its events tell."""

    def __init__(self, tenure: Tenure) -> None:
        self._tenure = tenure
        self.holder: dict[int, str] = {}
        self.over: set[int] = set(tenure.promised)
        """Records that are acknowledged, as far as the leader took it, or promised."""
        self._members: set[str] = set()
        self._acks: dict[int, tuple[str, tuple[int, ...]]] = {}
        for start, end in tenure.acked:
            self.over.update(range(start, end))

    def __str__(self) -> str:
        one = self._tenure
        return f"{one.name} of partition {one.partition} in term {one.term}"

    def take(self, event: object) -> None:
        """Follow what happened."""
        match event:
            case Lent():
                # A group that was moved keeps its members, and nobody tells of them again.
                self._members.add(event.member)
                self.holder.update(dict.fromkeys(event.offsets, event.member))
            case Taken():
                self._drop(event.member, event.offsets)
            case Kept():
                self._members.add(event.member)
                self._drop(event.member, tuple(self.holder))
                self.holder.update(dict.fromkeys(event.offsets, event.member))
            case Left():
                self._members.discard(event.member)
                self._drop(event.member, tuple(self.holder))
            case Judged() if event.is_taken and event.verb != "extend":
                settled = self.settled_by(event)
                if event.verb == "ack":
                    self.over.update(settled)
                    self._acks[event.ticket] = (event.member, settled)
                self._drop(event.member, settled)
            case Undone():
                member, settled = self._acks.pop(event.ticket, ("", ()))
                self.over.difference_update(settled)
                if member in self._members:
                    self.holder.update(dict.fromkeys(settled, member))
            case Promised():
                self.over.add(event.offset)

    def settled_by(self, event: Judged) -> tuple[int, ...]:
        """Return what a member held of the records it spoke of."""
        meant = {*event.offsets, *(one for one in self.holder if one < event.below)}
        return tuple(one for one in meant if self.holder.get(one) == event.member)

    def _drop(self, member: str, offsets: tuple[int, ...]) -> None:
        for offset in offsets:
            if self.holder.get(offset) == member:
                del self.holder[offset]


def _taken_acks(history: History) -> dict[tuple[RaftGroupId, str, int], set[int]]:
    """Return what leaders took as acknowledged by its holder, by generation."""
    found: dict[tuple[RaftGroupId, str, int], set[int]] = defaultdict(set)
    for tenure in history.groups.tenures:
        books = _Books(tenure)
        key = (tenure.partition, tenure.name, tenure.generation)
        for event in tenure.events:
            if isinstance(event, Judged) and event.is_taken and event.verb == "ack":
                found[key].update(books.settled_by(event))
            books.take(event)
    return found


def _rejections(tenure: Tenure) -> Iterator[tuple[int, int]]:
    """Yield what a leader took as rejected and did not take back, and how many events led there."""
    undone = {event.ticket for event in tenure.events if isinstance(event, Undone)}
    for at, event in enumerate(tenure.events):
        if not isinstance(event, Judged) or event.verb != "reject" or not event.is_taken:
            continue
        if event.ticket not in undone:
            yield event.offsets[0], at


def _stored(history: History) -> Iterator[tuple[RaftGroupId, str, int, int, int]]:
    """Yield the dead letters that are in the logs, each as often as it is in one of them."""
    seen: set[RaftGroupId] = set()
    for log in history.final:
        if log.group in seen:
            continue
        seen.add(log.group)
        for record in log.records:
            letter = history.groups.letters.get(record.value)
            if letter is not None:
                yield letter


def _deposed(history: History) -> list[Tenure]:
    """Return the leaders that began to serve a group after one of a later term had begun.

    They do not know yet. They can commit nothing, and what they lend is lent twice, no more.
    """
    tenures = history.groups.tenures
    return [
        one
        for one in tenures
        if any(
            other.term > one.term
            and other.began < one.began
            and (other.partition, other.name) == (one.partition, one.name)
            for other in tenures
        )
    ]


def _lent_times(
    history: History,
) -> dict[tuple[RaftGroupId, str, int, int], list[tuple[Tenure, int]]]:
    found: dict[tuple[RaftGroupId, str, int, int], list[tuple[Tenure, int]]] = defaultdict(list)
    for tenure in history.groups.tenures:
        for event in tenure.events:
            if isinstance(event, Lent):
                for offset in event.offsets:
                    key = (tenure.partition, tenure.name, tenure.generation, offset)
                    found[key].append((tenure, event.time))
    return found


def _base(history: History, one: FinalGroup) -> int:
    """Return where a group began in its last generation, as far as anybody served it then."""
    floors = [
        tenure.floor
        for tenure in history.groups.tenures
        if (tenure.partition, tenure.name, tenure.generation)
        == (one.partition, one.name, one.generation)
    ]
    return min(floors, default=one.floor)


def _acknowledged(one: FinalGroup) -> Iterator[int]:
    yield from range(one.start, one.floor)
    for start, end in one.acked:
        yield from range(start, end)


def _set_of(one: FinalGroup) -> set[int]:
    return {*range(one.floor), *(offset for pair in one.acked for offset in range(*pair))}


def _present(log: FinalLog | None) -> set[int]:
    return set() if log is None else {record.offset for record in log.records}


def _keys(history: History, log: FinalLog | None) -> dict[int, list[tuple[int, int]]]:
    """Return, for each record with a key, all records of that key with their delivery times."""
    by_key: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
    keys: dict[int, bytes] = {}
    for record in log.records if log is not None else ():
        key, time = history.groups.keys.get(record.value, (None, 0))
        if key is not None:
            by_key[key].append((record.offset, time))
            keys[record.offset] = key
    return {offset: by_key[key] for offset, key in keys.items()}
