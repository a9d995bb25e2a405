"""A leader for one group, without a cluster, and a naive model that watches everything it does.

The model keeps, for every offset, who holds it; it is told of each delivery and each settlement and
complains as soon as something happens that must not.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from angarium.delivery import Accepted, GroupDelivery, Held
from angarium.ids import Index, Micros, Offset
from angarium.kinds import GroupKind
from angarium.machine.changes import GroupSettings, Open, Pause, Seek
from angarium.machine.cursors import Group, Groups
from angarium.machine.outcomes import Refused
from angarium.machine.partition_limits import PartitionLimits
from angarium.testing.memory_records import MemoryRecords, Slot

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.delivery import Answer, DeadLetterDue, Effects, Proposal
    from angarium.machine.changes import Change
    from angarium.machine.outcomes import Outcome

SECOND = 1_000_000


class Leader:
    """Drives a `GroupDelivery`: commits what it proposes, when told to, and loses its memory."""

    def __init__(
        self,
        kind: GroupKind,
        settings: GroupSettings | None = None,
        *,
        records: int = 0,
        floor: int = 0,
    ) -> None:
        self.kind = kind
        self.now = Micros(1_000 * SECOND)
        self.records = MemoryRecords()
        self.records.add(*[Slot()] * (floor + records))
        self.machine = Groups()
        self.limits = PartitionLimits()
        self.index = 0
        settings = settings or GroupSettings(backoff_min_micros=SECOND, backoff_max_micros=SECOND)
        self.commit(Open("g", kind, Offset(floor), settings))
        self.log: deque[list[Proposal]] = deque()
        """Entries that are proposed and not committed."""
        self.answers: dict[int, Answer] = {}
        self.held: dict[str, dict[int, int]] = {}
        """What each member was lent and neither settled nor had taken back, with the attempt."""
        self.acking: dict[str, dict[int, int]] = {}
        """What each member has acknowledged and nobody has been lent since, with the attempt."""
        self.seen: list[tuple[str, int, int]] = []
        """Members, offsets and attempts, in the order of deliveries."""
        self.letters: dict[int, DeadLetterDue] = {}
        self.behind: list[str] = []
        self.wake_at: int | None = None
        self.delivery = self.fresh()

    @property
    def group(self) -> Group:
        """The group in the machine."""
        return self.machine.by_name["g"]

    def fresh(self, expected: Iterable[str] = (), preferred: str = "") -> GroupDelivery:
        """Return the memory of a leader that has just been elected."""
        return GroupDelivery(
            self.group,
            self.records,
            seed=7,
            now=self.now,
            expected=expected,
            preferred=preferred,
        )

    def commit(self, change: Change) -> Outcome:
        """Apply one change as an entry of its own."""
        self.index += 1
        return self.machine.change(
            change,
            index=Index(self.index),
            time=self.now,
            next_offset=self.records.end_offset,
            limits=self.limits,
        )

    # --- stepping ------------------------------------------------------------------------------

    def step(self) -> Effects:
        """Advance once; what is proposed waits to be committed."""
        effects = self.delivery.advance(self.now)
        for taken in effects.taken:
            held = self.held.get(taken.member, {})
            for start, end in zip(taken.ranges[::2], taken.ranges[1::2], strict=True):
                for offset in range(start, end):
                    held.pop(offset, None)
        for one in effects.deliveries:
            for start, end in zip(one.ranges[::2], one.ranges[1::2], strict=True):
                for offset in range(start, end):
                    self.check_lent(one.member, offset, one.attempt)
                    self.held.setdefault(one.member, {})[offset] = one.attempt
                    for acking in self.acking.values():
                        acking.pop(offset, None)
                    self.seen.append((one.member, offset, one.attempt))
        for answer in effects.answers:
            assert answer.ticket not in self.answers
            self.answers[answer.ticket] = answer
        for letter in effects.dead_letters:
            known = self.letters.get(letter.sequence, letter)
            assert known.offset == letter.offset, "two letters with one sequence"
            self.letters[letter.sequence] = letter
        self.behind += effects.behind
        if effects.proposals:
            self.log.append(effects.proposals)
        self.wake_at = effects.wake_at
        return effects

    def commit_next(self) -> None:
        """Commit the oldest entry that waits."""
        proposals = self.log.popleft()
        self.index += 1
        outcomes = [
            self.machine.change(
                one.change,
                index=Index(self.index),
                time=self.now,
                next_offset=self.records.end_offset,
                limits=self.limits,
            )
            for one in proposals
        ]
        for one, outcome in zip(proposals, outcomes, strict=True):
            self.delivery.confirmed(one.number, outcome, now=self.now)

    def refuse_next(self) -> None:
        """Let the log refuse the oldest entry that waits, as one without room does.

        What was acknowledged with it is in the hands it was in before, if it is in any.
        """
        for one in self.log.popleft():
            self.delivery.confirmed(one.number, Refused("DISK_FULL", "no room"), now=self.now)
        for member, acking in self.acking.items():
            for offset in acking.keys() & self._on_loan_to(member):
                self.held.setdefault(member, {}).setdefault(offset, acking.pop(offset))

    def settle_down(self) -> None:
        """Step and commit until nothing happens any more at this moment."""
        for _ in range(1_000):
            effects = self.step()
            while self.log:
                self.commit_next()
            if not effects.proposals and (self.wake_at is None or self.wake_at > self.now):
                return
        raise AssertionError("it never comes to rest")

    def wait(self, micros: int) -> None:
        """Let time pass, waking up as often as wanted."""
        until = self.now + micros
        self.settle_down()
        for _ in range(10_000):
            if self.wake_at is None or self.wake_at > until:
                break
            self.now = Micros(max(self.wake_at, self.now))
            self.settle_down()
        else:
            raise AssertionError("it wakes up for ever")
        self.now = Micros(until)
        self.settle_down()

    def bury(self) -> None:
        """Store every dead letter that is promised, and say so."""
        for offset, intent in sorted(self.group.intents.items(), key=lambda one: one[1].sequence):
            assert intent.sequence in self.letters, "nobody was told of a promised letter"
            self.delivery.buried(offset, intent.sequence)
        self.settle_down()

    # --- members -------------------------------------------------------------------------------

    def attach(self, member: str, credit: int = 10) -> tuple[int, ...]:
        """Let a member come, or come again, with what it holds."""
        held = [Held(one, one + 1, n) for one, n in self.held.get(member, {}).items()]
        kept = self.delivery.attach(member, credit=credit, held=held, now=self.now)
        offsets = {
            one
            for start, end in zip(kept[::2], kept[1::2], strict=True)
            for one in range(start, end)
        }
        old = self.held.get(member, {})
        assert offsets <= old.keys(), "it may keep what it never had"
        self.held[member] = {offset: old[offset] for offset in sorted(offsets)}
        return kept

    def detach(self, member: str, *, clean: bool) -> None:
        """Let a member go."""
        self.delivery.detach(member, clean=clean, now=self.now)
        self.held.pop(member, None)
        self.acking.pop(member, None)

    def ack(self, member: str, *offsets: int, cumulative: bool = False) -> Accepted | Refused:
        """Acknowledge."""
        ranges = ranges_of(offsets)
        done = self.delivery.acknowledge(member, ranges, now=self.now, cumulative=cumulative)
        if isinstance(done, Accepted):
            held = self.held.get(member, {})
            for offset in list(held):
                if offset in offsets or (cumulative and offset < ranges[-1]):
                    self.acking.setdefault(member, {})[offset] = held.pop(offset)
        return done

    def nack(
        self, member: str, *offsets: int, delay: int | None = None, is_final: bool = False
    ) -> Accepted | Refused:
        """Report a failure; one that is final allows no other attempt."""
        done = self.delivery.fail(
            member,
            ranges_of(offsets),
            now=self.now,
            delay=delay,
            reason="because",
            is_final=is_final,
        )
        if isinstance(done, Accepted):
            for offset in offsets:
                self.held[member].pop(offset, None)
        return done

    def release(self, member: str, *offsets: int) -> Accepted | Refused:
        """Give back."""
        done = self.delivery.release(member, ranges_of(offsets), now=self.now)
        if isinstance(done, Accepted):
            for offset in offsets:
                self.held[member].pop(offset, None)
        return done

    # --- an operator -----------------------------------------------------------------------------

    def seek(self, floor: int) -> None:
        """Move the group."""
        self.commit(Seek("g", Offset(floor)))

    def pause(self, *, paused: bool) -> None:
        """Pause the group, or let it go on."""
        self.commit(Pause("g", paused))

    def fail_over(self, *, expected: Iterable[str] = (), keep: int = 0) -> None:
        """Lose the leader: of what was proposed the first `keep` entries are committed."""
        while keep and self.log:
            keep -= 1
            self.commit_next()
        self.log.clear()
        self.answers.clear()
        self.acking.clear()
        self.delivery = self.fresh(expected)

    # --- what must never happen ------------------------------------------------------------------

    def check_lent(self, member: str, offset: int, attempt: int) -> None:
        """Complain about a delivery that must not be."""
        group = self.group
        slot = self.records[offset]
        assert offset not in group.acked, f"{offset} is acknowledged"
        assert not group.paused
        assert self.records.start_offset <= offset < self.records.end_offset
        assert slot.is_there, f"{offset} is a gap"
        assert slot.expires_at > self.now, f"{offset} has expired"
        known = group.attempts.get(offset)
        assert attempt == (known.count + 1 if known is not None else 1)
        retry_at = self.delivery._ledger.retry_times.at(offset, self.now) if known else 0
        assert retry_at <= self.now, f"{offset} is not to be tried yet"
        intent = group.intents.get(offset)
        assert intent is None or intent.generation != group.generation
        for holder, held in self.held.items():
            if holder in self.delivery.members:
                assert offset not in held, f"{offset} is lent to {member}, and {holder} has it"
        if self.kind is not GroupKind.STREAM:
            assert slot.deliver_at <= self.now, f"{offset} is not due"
        if self.kind is GroupKind.STREAM:
            self._check_order(member, offset)
        if self.kind is GroupKind.KEY and slot.key:
            self._check_key(offset)

    def _check_order(self, member: str, offset: int) -> None:
        """In a stream everything before is settled, or in the same hands."""
        own = self.held.get(member, {})
        acking = self._acking()
        for before in range(max(self.group.floor, self.records.start_offset), offset):
            slot = self.records[before]
            is_over = before in self.group.acked or before in acking or before in self.group.intents
            is_gone = not slot.is_there or slot.expires_at <= self.now
            assert is_over or is_gone or before in own, f"{offset} comes before {before}"
        for holder, held in self.held.items():
            if holder != member and holder in self.delivery.members:
                assert not held, f"{member} is lent {offset}, and {holder} still has {held}"

    def _check_key(self, offset: int) -> None:
        """Of a key one record is out, and the lowest that can be."""
        key = self.records[offset].key
        acking = self._acking()
        for holder, held in self.held.items():
            if holder in self.delivery.members:
                assert all(self.records[one].key != key or one in acking for one in held), key
        for before in range(max(self.group.floor, self.records.start_offset), offset):
            slot = self.records[before]
            if slot.key != key or not slot.is_there or slot.expires_at <= self.now:
                continue
            is_over = before in self.group.acked or before in self.group.intents
            is_late = slot.deliver_at > self.now - SECOND // 2
            assert is_over or is_late, f"{offset} comes before {before} of its key"

    def _acking(self) -> set[int]:
        """Return what is being acknowledged."""
        loans = self.delivery._ledger.loans
        found: set[int] = set()
        for peers in loans._by_block.values():
            for loan in peers.values():
                found |= _offsets(loan.block, loan.settling)
        return found

    def _on_loan_to(self, member: str) -> set[int]:
        """Return what a member has on loan and has said nothing about, as the leader sees it."""
        borrower = self.delivery._ledger.loans.borrowers.get(member)
        loans = borrower.loans.values() if borrower is not None else ()
        return {offset for loan in loans for offset in _offsets(loan.block, loan.open)}


def _offsets(block: int, bits: int) -> set[int]:
    return {(block << 10) + bit for bit in range(bits.bit_length()) if bits >> bit & 1}


def ranges_of(offsets: Iterable[int]) -> tuple[int, ...]:
    """Return offsets as flat ranges."""
    flat: list[int] = []
    for offset in sorted(offsets):
        if flat and flat[-1] == offset:
            flat[-1] += 1
        else:
            flat += (offset, offset + 1)
    return tuple(flat)
