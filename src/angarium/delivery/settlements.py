"""What a member may say about records, and when it is refused.

Whoever does not hold all the records it speaks of is refused, whole, and nothing changes. Saying
again what has been said is harmless: a record that is acknowledged already counts as held by
whoever acknowledges it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.delivery.blocks import REST, SHIFT, blocks, first, offsets, pairs
from angarium.delivery.effects import Accepted
from angarium.errors import GroupFenced, InvalidArgument
from angarium.machine.outcomes import Refused, oversized, refused

if TYPE_CHECKING:
    from angarium.delivery.ledger import Ledger
    from angarium.delivery.loans import Borrower, Loan
    from angarium.ids import Micros

SETTLED_OFFSETS_MAX: Final = 1 << 20
"""Offsets that one settlement may span above the floor. A larger one is refused."""

LEASE_MICROS_MAX: Final = 12 * 3_600 * 1_000_000
"""The longest lease that can be asked for. A longer one is cut to this."""


def acknowledge(
    ledger: Ledger, member: str, ranges: tuple[int, ...], *, cumulative: bool
) -> Accepted | Refused:
    """Acknowledge records on loan; with `cumulative` everything below the last one, too."""
    # Also what is being settled: a member that repeats its acknowledgement, since the answer was
    # lost, waits for the same commit and is not refused.
    held = _held(ledger, member, ranges, may_be_settling=True)
    if isinstance(held, Refused):
        return held
    pieces, borrower = held
    if cumulative and ranges:
        # Its own loans only. Everything below would settle records that others still work on.
        # Planted as cursor-past-an-unacked-record.
        pieces = _up_to(borrower, ranges[-1])
    records = 0
    waiting: list[tuple[Loan, int]] = []
    acked = ledger.group.acked
    for loan, bits in pieces:
        done = loan.open & bits & acked.bits(loan.block)
        if done:
            # Acknowledged by other means, a transaction perhaps.
            ledger.loans.take_back(loan, done)
            ledger.order.ended(loan.block, done)
            bits &= ~done  # noqa: PLW2901
        opened = loan.open & bits
        if opened:
            records += opened.bit_count()
            # The member is answered when the change is committed, and the record counts as held
            # until then. Planted as settled-before-it-is-committed.
            ledger.loans.settle(loan, opened)
            ledger.order.settling(loan.block, opened)
        if bits & loan.settling:
            waiting.append((loan, bits & loan.settling))
    if not waiting:
        return Accepted(records)
    ticket = ledger.ticket(1)
    ledger.proposals.acknowledge(waiting, ticket)
    return Accepted(records, ticket)


def fail(
    ledger: Ledger,
    member: str,
    ranges: tuple[int, ...],
    *,
    now: Micros,
    delay: int | None,
    reason: str,
    is_final: bool,
) -> Accepted | Refused:
    """Count a failed attempt at records on loan. In a stream only the first of them has failed.

    `is_final`: there is not to be another attempt.
    """
    held = _held(ledger, member, ranges)
    if isinstance(held, Refused):
        return held
    pieces, _ = held
    failed = [offset for loan, bits in pieces for offset in offsets(loan.block, bits)]
    if not failed:
        return Accepted(0)
    records = len(failed)
    if ledger.is_stream:
        failed = failed[:1]
    for loan, bits in pieces:
        ledger.loans.take_back(loan, bits)
    # The ticket is named before the changes are counted, and no answer can come in between.
    ticket = ledger.next_ticket()
    waits_for = sum(
        ledger.fail(offset, now=now, delay=delay, reason=reason, is_final=is_final, ticket=ticket)
        for offset in failed
    )
    return Accepted(records, ledger.ticket(waits_for))


def release(ledger: Ledger, member: str, ranges: tuple[int, ...]) -> Accepted | Refused:
    """Take records on loan back untried."""
    held = _held(ledger, member, ranges)
    if isinstance(held, Refused):
        return held
    pieces, _ = held
    ledger.give_back(pieces)
    return Accepted(sum(bits.bit_count() for _, bits in pieces))


def extend(
    ledger: Ledger, member: str, ranges: tuple[int, ...], *, now: Micros, lease: int | None
) -> Accepted | Refused:
    """Let the lease of records on loan begin anew."""
    held = _held(ledger, member, ranges, may_be_settling=True)
    if isinstance(held, Refused):
        return held
    pieces, _ = held
    length = ledger.group.settings.ack_timeout_micros if lease is None else lease
    records = 0
    for loan, bits in pieces:
        still = bits & loan.open
        if still:
            ledger.loans.extend(loan, still, now + min(length, LEASE_MICROS_MAX))
            records += still.bit_count()
    return Accepted(records)


def _held(
    ledger: Ledger, member: str, ranges: tuple[int, ...], *, may_be_settling: bool = False
) -> tuple[list[tuple[Loan, int]], Borrower] | Refused:
    """Return the loans that `ranges` speak of, or why `member` may not speak of them."""
    # Who has lost its membership, or was never known to this leader, settles nothing: its records
    # may be somebody else's by now. Planted as foreign-ack-accepted.
    borrower = ledger.loans.borrowers.get(member)
    if borrower is None:
        return refused(GroupFenced, f"{member} takes no part in {ledger.group.name} here")
    invalid = _judge(ledger, ranges)
    if invalid is not None:
        return invalid
    acked = ledger.group.acked
    found: list[tuple[Loan, int]] = []
    for start, end in pairs(ranges):
        if end <= acked.floor:
            continue
        for block, bits in blocks(max(start, acked.floor), end):
            loan = borrower.loans.get(block)
            held = 0
            if loan is not None:
                held = loan.open | loan.settling if may_be_settling else loan.open
            foreign = bits & ~held
            # What is acknowledged already is no reason to refuse: repeating an acknowledgement
            # does no harm.
            if foreign and foreign & ~(acked.bits(block) | ledger.vanishing.bits(block)):
                return refused(
                    GroupFenced, f"{member} does not hold {first(block, foreign)} any more"
                )
            if loan is not None and bits & held:
                found.append((loan, bits & held))
    return found, borrower


def _judge(ledger: Ledger, ranges: tuple[int, ...]) -> Refused | None:
    """Say what is wrong with ranges, whoever sent them."""
    if len(ranges) & 1:
        return refused(InvalidArgument, "a range has two ends")
    at = span = 0
    floor = ledger.group.floor
    for start, end in pairs(ranges):
        if not at <= start < end:
            return refused(InvalidArgument, "ranges go upward and are not empty")
        at = end
        span += max(end - max(start, floor), 0)
    # An acknowledgement ahead of the log would skip records that are still to come.
    if at > ledger.source.end_offset:
        return refused(GroupFenced, f"{at - 1} has never been lent")
    if span > SETTLED_OFFSETS_MAX:
        return oversized("SETTLED_OFFSETS_MAX", f"{span} offsets in one settlement")
    return None


def _up_to(borrower: Borrower, end: int) -> list[tuple[Loan, int]]:
    """Return everything that a member holds, or is settling, below `end`."""
    last, rest = end >> SHIFT, (1 << (end & REST)) - 1
    found = []
    for block in sorted(borrower.loans):
        if block > last:
            break
        loan = borrower.loans[block]
        bits = (loan.open | loan.settling) & (rest if block == last else ~0)
        if bits:
            found.append((loan, bits))
    return found
