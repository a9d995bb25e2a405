"""Key groups: a queue in which the records of one key keep their order.

Of one key (its 32-bit hash) one record at a time is on loan; the next one follows when it is
acknowledged, or its dead letter is promised. So a member may handle whatever it holds in any order
and at once. A key that waits, because its record failed or its member has no credit, holds back
itself alone. Records without a key have no order.

A key stays with one member while the members stay the same, and one that comes or goes moves only
its share of the keys.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from typing import TYPE_CHECKING, Final

from angarium.batch.hashing import NO_KEY
from angarium.delivery.assignment import name_hash, rating
from angarium.delivery.blocks import REST, SHIFT, by_block, offsets
from angarium.delivery.queue_order import QueueOrder

if TYPE_CHECKING:
    from angarium.delivery.loans import Borrower, Loans
    from angarium.delivery.order import Hand
    from angarium.delivery.retry_times import RetryTimes
    from angarium.delivery.source import RecordSource
    from angarium.ids import Micros
    from angarium.machine.cursors import Group

LOOKAHEAD_RECORDS_MAX: Final = 8_192
"""Records that may wait behind others of their key, or for their member's credit. At the limit the
group looks no further until some of them were handed out: other keys behind wait, too."""

OWNERS_MAX: Final = 8_192
"""Keys whose member is remembered once it was found. At the limit all are forgotten, and found out
again one by one."""

_LOOK_RECORDS: Final = 256
"""Records looked at in one go before those found are handed out."""

_NOBODY: Final = -1


class _Chain:
    """The records of one key that are not settled, as far as the group has looked."""

    __slots__ = ("current", "is_queued", "key", "queue")

    def __init__(self, key: int) -> None:
        self.key = key
        self.current = _NOBODY
        """The record on loan, or whose fate is being committed."""
        self.queue: list[int] = []
        """Those that wait, upward."""
        self.is_queued = False
        """Whether the chain stands in a member's line."""


class KeyOrder(QueueOrder):
    """Hands records to the member of their key, one of each key at a time."""

    def __init__(
        self,
        group: Group,
        source: RecordSource,
        loans: Loans,
        *,
        retry_times: RetryTimes,
        now: Micros,
    ) -> None:
        super().__init__(group, source, loans, retry_times=retry_times, now=now)
        self._chains: dict[int, _Chain] = {}
        self._key_of: dict[int, int] = {}
        """The key of each record in a chain."""
        self._parked = 0
        self._lines: dict[str, deque[_Chain]] = {}
        """Chains whose next record may be lent, by their member."""
        self._members: list[tuple[int, str]] = []
        self._owners: dict[int, tuple[int, str]] = {}
        """The member of a key, and how much it wants it: asking all of them takes its time."""
        self._park_waiting()

    def pick(self, now: Micros, hand: Hand) -> None:
        """Lend what can be lent: keys to their members, and the rest to anybody in turn."""
        self._sweep.is_unfinished = False
        self._awake(now)
        while self._loans.hungry:
            found = self._look_ahead(now)
            # Serving makes room for looking further, and looking finds more to serve: both until
            # neither moves.
            if not self._serve_lines(now, hand) and not found:
                break
            self._deal(now, hand)
        self._deal(now, hand)

    def _look_ahead(self, now: Micros) -> bool:
        """Put the next records into their chains; tell whether there were any."""
        # A single key with a slow member fills the chains with records that cannot be lent. This
        # bounds how much of the log the group holds in memory because of it.
        room = LOOKAHEAD_RECORDS_MAX - self._parked - self._ready.count
        if room <= 0:
            return False
        piece = self._sweep.next(min(room, _LOOK_RECORDS), now)
        if piece is None:
            return False
        block, bits = piece
        # Looked at, and so no longer the sweep's, whether it can be lent now or not.
        self._sweep.busy.add(block, bits)
        base = block << SHIFT
        start, end = base + (bits & -bits).bit_length() - 1, base + bits.bit_length()
        hashes = self._source.key_hashes(start, end)
        for offset in offsets(block, bits):
            key = hashes[offset - start]
            if key == NO_KEY:
                self._ready.add_offset(offset)
            else:
                self._park(offset, key)
        return True

    def _serve_lines(self, now: Micros, hand: Hand) -> bool:
        """Lend every member the next records of its keys; tell whether anything moved."""
        served = False
        for borrower in list(self._loans.hungry.values()):
            line = self._lines.get(borrower.name)
            while line and borrower.free > 0:
                chain = line.popleft()
                if not chain.is_queued:
                    continue  # its next record was taken out of turn
                chain.is_queued = False
                served = True
                self._serve_chain(borrower, chain, now, hand)
        return served

    def _serve_chain(self, borrower: Borrower, chain: _Chain, now: Micros, hand: Hand) -> None:
        offset = chain.queue.pop(0)
        self._parked -= 1
        block, bit = offset >> SHIFT, 1 << (offset & REST)
        if offset in self._group.acked or self._sweep.is_absent(block, bit, now):
            if offset not in self._group.acked:
                self._sweep.absent.append((block, bit))
            self._sweep.busy.remove(block, bit)
            del self._key_of[offset]
            self._consider(chain)
            return
        # One record of a key at a time, whichever member has it. That alone is what keeps the
        # order of a key when its member changes. Planted as key-handed-to-two-members.
        chain.current = offset
        known = self._group.attempts.get(offset)
        hand(borrower, block, bit, 1 if known is None else known.count + 1)

    def _fresh(self, count: int, now: Micros) -> tuple[int, int, int] | None:
        """Nothing: what is new goes through the chains first."""
        del count, now
        return None

    # --- chains --------------------------------------------------------------------------------

    def _hash_of(self, offset: int) -> int:
        if not self._source.start_offset <= offset < self._source.end_offset:
            return NO_KEY
        return self._source.key_hashes(offset, offset + 1)[0]

    def _park_waiting(self) -> None:
        """Put the records that wait for another attempt into their chains, a block at a time.

        Nobody is here yet who could be lent them; and as they come upward, each goes to the end.
        """
        first, past = self._source.start_offset, self._source.end_offset
        for block, bits in sorted(by_block(self._waits).items()):
            found = [one for one in offsets(block, bits) if first <= one < past]
            if not found:
                continue
            start = found[0]
            hashes = self._source.key_hashes(start, found[-1] + 1)
            for offset in found:
                key = hashes[offset - start]
                if key == NO_KEY:
                    continue
                chain = self._chains.get(key)
                if chain is None:
                    chain = self._chains[key] = _Chain(key)
                chain.queue.append(offset)
                self._key_of[offset] = key
                self._parked += 1

    def _park(self, offset: int, key: int) -> None:
        """Let a record wait in its chain."""
        chain = self._chains.get(key)
        if chain is None:
            chain = self._chains[key] = _Chain(key)
        # In the order of offsets: a record that failed and comes back stands before those behind
        # it.
        insort(chain.queue, offset)
        self._key_of[offset] = key
        self._parked += 1
        self._consider(chain)

    def _consider(self, chain: _Chain) -> None:
        """Put a chain into its member's line if its next record may be lent."""
        # The key waits for the record that is on loan, or whose failure is being committed.
        if chain.current != _NOBODY or chain.is_queued:
            return
        if not chain.queue:
            self._chains.pop(chain.key, None)
        # The first one waits for its next attempt, and the whole key with it.
        elif chain.queue[0] not in self._waits and self._members:
            self._lines.setdefault(self._owner_of(chain.key), deque()).append(chain)
            chain.is_queued = True

    def _owner_of(self, key: int) -> str:
        """Return the member that wants a key most; there is one."""
        known = self._owners.get(key)
        if known is None:
            if len(self._owners) >= OWNERS_MAX:
                self._owners.clear()
            # Rendezvous hashing: when a member comes or goes only its own keys change hands.
            known = max((rating(one, key), name) for one, name in self._members)
            self._owners[key] = known
        return known[1]

    def _regroup(self) -> None:
        """Put the chains that may be served into their members' lines anew."""
        lines = self._lines
        # Without a member nobody stands in a line; then all are looked at.
        chains = (
            [chain for line in lines.values() for chain in line if chain.is_queued]
            if self._members
            else list(self._chains.values())
        )
        self._members = [(name_hash(name), name) for name in self._loans.borrowers]
        lines.clear()
        for chain in chains:
            chain.is_queued = False
        for chain in chains:
            self._consider(chain)

    def joined(self, borrower: Borrower) -> None:
        """Give the new member its share of the keys."""
        number, name = name_hash(borrower.name), borrower.name
        for key, known in self._owners.items():
            wish = (rating(number, key), name)
            if wish > known:
                self._owners[key] = wish
        # Records that are on loan stay with their holder; only what is still to be lent follows
        # the keys.
        self._regroup()

    def left(self, borrower: Borrower) -> None:
        """Give its keys to the others."""
        for key in [key for key, (_, name) in self._owners.items() if name == borrower.name]:
            del self._owners[key]
        self._regroup()

    # --- what becomes of records ---------------------------------------------------------------

    def _make_ready(self, offset: int) -> None:
        key = self._key_of.get(offset)
        if key is None:
            key = self._hash_of(offset)
            if key == NO_KEY:
                self._ready.add_offset(offset)
            else:
                self._park(offset, key)
        else:
            self._consider(self._chains[key])

    def _spend(self, offset: int) -> None:
        super()._spend(offset)
        key = self._key_of.get(offset)
        if key is not None:
            self._unpark(self._chains[key], offset)

    def _unpark(self, chain: _Chain, offset: int) -> None:
        """Make a record that waits in its chain the current one."""
        chain.queue.remove(offset)
        self._parked -= 1
        chain.current = offset
        # It may still stand in a line; whoever comes to it there passes over it.
        chain.is_queued = False

    def claim(self, borrower: Borrower, block: int, bits: int, attempt: int) -> int:
        """Return those that come first in their key and whose key nobody else holds."""
        keyless = granted = 0
        for offset in offsets(block, bits):
            key = self._key_of.get(offset) or self._hash_of(offset)
            bit = 1 << (offset & REST)
            if key == NO_KEY:
                keyless |= bit
                continue
            known = self._group.attempts.get(offset)
            if attempt != (1 if known is None else known.count + 1):
                continue
            if offset not in self._sweep.busy:
                if offset < self._sweep.position:
                    continue  # not due
                self._sweep.busy.add(block, bit)
                self._park(offset, key)
            chain = self._chains.get(key)
            # Somebody else has the key, or an earlier record of it comes first.
            if chain is None or chain.current != _NOBODY or chain.queue[0] != offset:
                continue
            self._waits.pop(offset, None)
            self._unpark(chain, offset)
            granted |= bit
        self._sweep.may_expire |= granted != 0
        return granted | (super().claim(borrower, block, keyless, attempt) if keyless else 0)

    def given_back(self, block: int, bits: int) -> None:
        """Let records that came back untried be the next of their keys."""
        for offset in offsets(block, bits):
            key = self._key_of.get(offset)
            if key is None:
                self._ready.add_offset(offset)
            else:
                self._chains[key].current = _NOBODY
                self._park(offset, key)

    def ended(self, block: int, bits: int) -> None:
        """Go on with the keys of records that are acknowledged."""
        super().ended(block, bits)
        for offset in offsets(block, bits):
            self._go_on(offset)

    def failed(self, offset: int, now: Micros) -> None:
        """Let the record, and with it its key, wait for the next attempt."""
        super().failed(offset, now)
        key = self._key_of.get(offset)
        if key is not None:
            self._chains[key].current = _NOBODY
            self._park(offset, key)

    def promised(self, offset: int) -> None:
        """Go on with the key of a record whose dead letter is promised."""
        self._go_on(offset)

    def _go_on(self, offset: int) -> None:
        key = self._key_of.pop(offset, None)
        if key is None:
            return
        chain = self._chains[key]
        if chain.current == offset:
            chain.current = _NOBODY
            self._consider(chain)
