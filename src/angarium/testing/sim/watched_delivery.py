"""A group's decisions at a simulated leader, written down for the checkers.

The decisions are those of `GroupDelivery`; nothing is added to them or taken away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.delivery import Accepted, GroupDelivery
from angarium.testing.group_history import (
    Judged,
    Kept,
    Left,
    Lent,
    Promised,
    Taken,
    Tenure,
    Undone,
    offsets_in,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.delivery import Effects, Held
    from angarium.delivery.retry_times import RetryTimes
    from angarium.delivery.source import RecordSource
    from angarium.ids import Micros
    from angarium.lending.led_partition import LedPartition
    from angarium.machine.cursors import Group
    from angarium.machine.outcomes import Refused
    from angarium.testing.group_history import GroupEvent
    from angarium.testing.sim.node import SimNode


class WatchedDelivery(GroupDelivery):
    """Decides, and writes into the history what it decided."""

    def __init__(
        self,
        node: SimNode,
        led: LedPartition,
        group: Group,
        source: RecordSource,
        *,
        retry_times: RetryTimes,
        now: Micros,
        expected: Iterable[str],
    ) -> None:
        term = led.replica.raft.term
        super().__init__(
            group, source, seed=term, now=now, expected=expected, retry_times=retry_times
        )
        self._node = node
        self._raft_group = led.raft_group
        self._term = term
        self._tenure: Tenure | None = None
        self._noted: dict[int, int] = {}
        """By record, the generation in which its promise was written down."""

    # --- members --------------------------------------------------------------------------------

    def attach(
        self, member: str, *, credit: int, held: Iterable[Held] = (), now: Micros
    ) -> tuple[int, ...]:
        kept = super().attach(member, credit=credit, held=held, now=now)
        self._record(Kept(member, offsets_in(kept)))
        return kept

    def detach(self, member: str, *, clean: bool, now: Micros) -> None:
        super().detach(member, clean=clean, now=now)
        self._record(Left(member))

    def acknowledge(
        self, member: str, ranges: tuple[int, ...], *, now: Micros, cumulative: bool = False
    ) -> Accepted | Refused:
        verdict = super().acknowledge(member, ranges, now=now, cumulative=cumulative)
        return self._judged(member, "ack", ranges, verdict, below=ranges[-1] if cumulative else 0)

    def fail(
        self,
        member: str,
        ranges: tuple[int, ...],
        *,
        now: Micros,
        delay: int | None = None,
        reason: str = "",
        is_final: bool = False,
    ) -> Accepted | Refused:
        verdict = super().fail(
            member, ranges, now=now, delay=delay, reason=reason, is_final=is_final
        )
        return self._judged(member, "reject" if is_final else "nack", ranges, verdict)

    def release(self, member: str, ranges: tuple[int, ...], *, now: Micros) -> Accepted | Refused:
        return self._judged(member, "release", ranges, super().release(member, ranges, now=now))

    def extend(
        self, member: str, ranges: tuple[int, ...], *, now: Micros, lease: int | None = None
    ) -> Accepted | Refused:
        verdict = super().extend(member, ranges, now=now, lease=lease)
        return self._judged(member, "extend", ranges, verdict)

    def _judged(
        self,
        member: str,
        verb: str,
        ranges: tuple[int, ...],
        verdict: Accepted | Refused,
        *,
        below: int = 0,
    ) -> Accepted | Refused:
        # What was over before, as a trim may have made it, is no settlement, whoever speaks of it.
        is_taken = isinstance(verdict, Accepted) and any(verdict)
        ticket = verdict.ticket if isinstance(verdict, Accepted) else 0
        self._record(Judged(member, verb, offsets_in(ranges), is_taken, below, ticket))
        return verdict

    # --- steps ----------------------------------------------------------------------------------

    def advance(self, now: Micros) -> Effects:
        effects = super().advance(now)
        self._record()
        for ticket, code, _ in effects.answers:
            if code:
                self._record(Undone(ticket))
        self._note_promises()
        for member, ranges in effects.taken:
            self._record(Taken(member, offsets_in(ranges)))
        for member, ranges, attempt, _ in effects.deliveries:
            time = self._node.world.scheduler.now
            self._record(Lent(time, member, offsets_in(ranges), attempt))
        return effects

    def _note_promises(self) -> None:
        """Write down which records have been promised a letter since the last step.

        Not by the letters that are handed out: a record that is promised one again, after a seek,
        while the first is being stored, has that one (seed 402820).
        """
        for offset, intent in self.group.intents.items():
            # A seek leaves promises of before it to be kept, and yet hands their records out again.
            is_of_now = intent.generation == self.group.generation
            if is_of_now and self._noted.get(offset) != intent.generation:
                self._noted[offset] = intent.generation
                self._record(Promised(offset))

    def _record(self, *events: GroupEvent) -> None:
        """Write down what happened, under the generation it happened in."""
        group, tenure = self.group, self._tenure
        if tenure is None or tenure.generation != group.generation:
            promised = [
                offset
                for offset, intent in group.intents.items()
                if intent.generation == group.generation
            ]
            tenure = self._tenure = Tenure(
                self._raft_group,
                group.name,
                group.kind,
                self._node.id,
                self._term,
                group.generation,
                self._node.world.scheduler.now,
                group.floor,
                tuple(group.acked.ranges()),
                frozenset(promised),
            )
            self._node.world.history.groups.tenures.append(tenure)
        tenure.events += events
