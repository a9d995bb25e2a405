"""Bugs planted where records are lent to the members of consumer groups, and settled.

Both where that is decided (`angarium.delivery`) and where it is carried out (`angarium.lending`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from tests.simulation.planting import Replaced, bug
from tests.simulation.variants import consuming

from angarium.api import Settled
from angarium.delivery import settlements
from angarium.delivery.ledger import Ledger
from angarium.delivery.loans import Loans
from angarium.delivery.sweep import Sweep
from angarium.lending import letters
from angarium.lending.changes import ChangeQueue
from angarium.lending.led_group import LedGroup
from angarium.lending.log_records import LogRecords
from angarium.log.segments import delays
from angarium.log.segments.delay_runs import DelayRuns
from angarium.machine import group_frames
from angarium.machine.cursors import Groups
from angarium.machine.outcomes import Done

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from angarium.api import Settlement
    from angarium.delivery.effects import Accepted
    from angarium.ids import Micros
    from angarium.lending.changes import Fate
    from angarium.log.disk import Disk
    from angarium.log.segments.segment import Segment
    from angarium.machine.changes import Change, DeadLettered
    from angarium.machine.cursors import Group
    from angarium.machine.outcomes import Outcome, Refused


@bug(seeds_max=10, run=consuming)
def cursor_past_an_unacked_record() -> Iterator[Replaced]:
    """Every acknowledgement counts for everything its member holds below it, too."""
    original = settlements.acknowledge

    def acknowledge(
        ledger: Ledger, member: str, ranges: tuple[int, ...], *, cumulative: bool
    ) -> Accepted | Refused:
        del cumulative
        return original(ledger, member, ranges, cumulative=True)

    yield Replaced(settlements, "acknowledge", acknowledge)


@bug(seeds_max=10, run=consuming)
def rejected_record_is_tried_again() -> Iterator[Replaced]:
    """A record that a member rejected for good comes again, as after any failure."""
    original = Ledger.fail

    def fail(ledger: Ledger, offset: int, **said: Any) -> int:
        return original(ledger, offset, **said | {"is_final": False})

    yield Replaced(Ledger, "fail", fail)


@bug(seeds_max=20, run=consuming)
def attempts_lost_at_failover() -> Iterator[Replaced]:
    """A snapshot does not hold attempts, so that a replica restarted from it counts from one."""
    original = group_frames._row

    def row(group: Group, **parts: Any) -> Any:
        return original(group, **{**parts, "attempts": []})

    yield Replaced(group_frames, "_row", row)


@bug(seeds_max=10, run=consuming)
def attempts_not_counted() -> Iterator[Replaced]:
    """A failed attempt is committed as if it had been none."""
    original = Groups._retry

    def retry(self: Groups, group: Group, change: Any, *rest: Any) -> Outcome:
        fewer = msgspec.structs.replace(change, attempts=change.attempts - 1)
        return original(self, group, fewer, *rest)

    yield Replaced(Groups, "_retry", retry)


@bug(seeds_max=10, run=consuming)
def double_dead_letter() -> Iterator[Replaced]:
    """A record whose dead letter is stored does not count as settled, and is buried again."""

    def buried(self: Groups, group: Group, change: DeadLettered) -> Outcome:
        intent = group.intents.get(change.offset)
        if intent is not None and intent.sequence == change.sequence:
            self._own(group)
            del group.intents[change.offset]
        return Done()

    yield Replaced(Groups, "_buried", buried)


@bug(seeds_max=20, run=consuming)
def delay_forgotten() -> Iterator[Replaced]:
    """Delayed records that a leader has passed are not looked for when their time comes."""

    original = Sweep.due

    def due(self: Sweep, now: Micros) -> Iterator[int]:
        for _ in original(self, now):
            pass
        return iter(())

    yield Replaced(Sweep, "due", due)


@bug(seeds_max=20, run=consuming)
def delay_forgotten_at_restart() -> Iterator[Replaced]:
    """A restarted node does not look for delayed records in the segment it was writing."""

    def read_delays(disk: Disk, folder: str, segment: Segment) -> DelayRuns:
        del disk, folder
        return DelayRuns(segment.base_offset)

    yield Replaced(delays, "read_delays", read_delays)


@bug(seeds_max=20, run=consuming)
def foreign_ack_accepted() -> Iterator[Replaced]:
    """Whoever takes part in a group may settle what another member holds."""
    original = settlements._held

    def held(ledger: Ledger, member: str, ranges: tuple[int, ...], **how: bool) -> Any:
        answer = original(ledger, member, ranges, **how)
        if isinstance(answer, tuple):
            return answer
        for other in ledger.loans.borrowers:
            theirs = original(ledger, other, ranges, **how)
            if isinstance(theirs, tuple) and theirs[0] and member in ledger.loans.borrowers:
                return theirs
        return answer

    yield Replaced(settlements, "_held", held)


@bug(seeds_max=20, run=consuming)
def order_broken_after_nack_in_a_stream_group() -> Iterator[Replaced]:
    """What is on loan behind a failed record of a stream is not taken back."""

    def rewind(self: Ledger, offset: int) -> None:
        del self, offset

    yield Replaced(Ledger, "_rewind", rewind)


@bug(seeds_max=10, run=consuming)
def key_handed_to_two_members() -> Iterator[Replaced]:
    """Every other record of a key is taken for one of another key."""
    original = LogRecords.key_hashes

    def key_hashes(self: LogRecords, start: int, end: int) -> list[int]:
        hashes = original(self, start, end)
        return [one and one ^ (place & 1) << 31 for place, one in enumerate(hashes, start)]

    yield Replaced(LogRecords, "key_hashes", key_hashes)


@bug(seeds_max=20, run=consuming)
def leases_never_end() -> Iterator[Replaced]:
    """What a member that died or stalls had on loan never comes back."""

    original = Loans.overdue

    def overdue(self: Loans, now: Micros, *, limit: int) -> list[Any]:
        original(self, now, limit=limit)
        return []

    yield Replaced(Loans, "overdue", overdue)


@bug(seeds_max=20, run=consuming)
def settled_before_it_is_committed() -> Iterator[Replaced]:
    """A member is told that its settlement stands as soon as its leader has taken it."""
    original = LedGroup.settle

    def settle(
        self: LedGroup, member: str, settlement: Settlement, answer: Callable[[Settled], None]
    ) -> None:
        told: list[Settled] = []
        original(self, member, settlement, told.append)
        answer(told[0] if told else Settled(1))

    yield Replaced(LedGroup, "settle", settle)


@bug(seeds_max=10, run=consuming)
def changes_lost_while_an_entry_is_under_way() -> Iterator[Replaced]:
    """What members say while earlier changes are on their way into the log is forgotten."""
    original = ChangeQueue.submit

    def submit(self: ChangeQueue, change: Change, fate: Fate) -> None:
        if self._under_way is None:
            original(self, change, fate)

    yield Replaced(ChangeQueue, "submit", submit)


@bug(seeds_max=20, run=consuming)
def every_leader_buries_under_a_name_of_its_own() -> Iterator[Replaced]:
    """A new leader stores promised dead letters again, as another producer."""
    original = letters._producer_name

    def producer_name(group: LedGroup, topic: str) -> str:
        return f"{original(group, topic)}/{group.led.replica.raft.term}"

    yield Replaced(letters, "_producer_name", producer_name)
