"""What follows when a proposed change has been applied, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from angarium.delivery.blocks import REST, SHIFT
from angarium.delivery.proposals import (
    Acking,
    Burying,
    Failing,
    Jumping,
    Promising,
    Stale,
    Vanishing,
)
from angarium.errors import NotFound
from angarium.machine.outcomes import Refused

if TYPE_CHECKING:
    from angarium.delivery.ledger import Ledger
    from angarium.ids import Micros
    from angarium.machine.changes import Change
    from angarium.machine.outcomes import Outcome


def confirm(ledger: Ledger, number: int, outcome: Outcome, *, now: Micros) -> bool:
    """Take the fate of a proposal; tell whether it was a jump that has ended."""
    change, purpose = ledger.proposals.take(number)
    refused = outcome if isinstance(outcome, Refused) else None
    match purpose:
        case Acking():
            _acked(ledger, purpose, refused, now)
        case Vanishing():
            _vanished(ledger, change, purpose, refused, now)
        case Failing():
            _failed(ledger, change, purpose, refused, now)
        case Promising():
            _promised(ledger, change, purpose, refused, now)
        case Burying():
            _buried(ledger, change, purpose, refused, now)
        case Stale():
            _answer(ledger, purpose.tickets, refused)
        case Jumping():
            if refused is not None:
                ledger.proposals.again(change, purpose, now=now)
            return refused is None
        case _:
            assert_never(purpose)
    return False


def _acked(ledger: Ledger, purpose: Acking, refused: Refused | None, now: Micros) -> None:
    for loan, bits in purpose.pieces:
        bits &= loan.settling  # noqa: PLW2901  (an acknowledgement that was said twice)
        if not bits:
            continue
        # Only now is it settled. Until here a new leader would have lent it again, and rightly so.
        if refused is None:
            ledger.loans.settled(loan, bits)
            ledger.order.ended(loan.block, bits)
        else:
            ledger.reopen(loan, bits, now)
    if refused is not None:
        purpose.refusals.append(refused)
    # Whose records they were is not told apart: who hears a no says it again, which is harmless.
    # Who hears a yes takes records for settled that will come again.
    _answer(ledger, purpose.tickets, next(iter(purpose.refusals), None))


def _vanished(
    ledger: Ledger, change: Change, purpose: Vanishing, refused: Refused | None, now: Micros
) -> None:
    if refused is not None:
        # The group's own change, for which nobody waits: at a limit of the machine it is tried
        # again later, since nobody else will.
        ledger.proposals.again(change, purpose, now=now)
        return
    for block, bits in purpose.pieces:
        ledger.vanishing.remove(block, bits)
        ledger.order.ended(block, bits)


def _failed(
    ledger: Ledger, change: Change, purpose: Failing, refused: Refused | None, now: Micros
) -> None:
    if _is_over(ledger, purpose.offset, refused):
        ledger.answer(purpose.ticket)
    elif refused is not None:
        ledger.proposals.again(change, purpose, now=now)
    else:
        # With the last attempt the promise of a dead letter is under way as well, and decides.
        if not purpose.is_last:
            ledger.order.failed(purpose.offset, now)
        ledger.answer(purpose.ticket)


def _promised(
    ledger: Ledger, change: Change, purpose: Promising, refused: Refused | None, now: Micros
) -> None:
    if _is_over(ledger, purpose.offset, refused):
        ledger.answer(purpose.ticket)
    elif refused is not None:
        ledger.proposals.again(change, purpose, now=now)
    else:
        ledger.order.promised(purpose.offset)
        ledger.tell_letter(purpose.offset)
        ledger.answer(purpose.ticket)


def _buried(
    ledger: Ledger, change: Change, purpose: Burying, refused: Refused | None, now: Micros
) -> None:
    # Not found: the promise was settled before, by an earlier report of the same letter.
    if refused is not None and refused.code != NotFound.code:
        ledger.proposals.again(change, purpose, now=now)
        return
    ledger.letter_stored(purpose.sequence)
    if purpose.offset in ledger.group.acked:
        _end(ledger, purpose.offset)


def _is_over(ledger: Ledger, offset: int, refused: Refused | None) -> bool:
    """Tell whether a record was acknowledged by other means meanwhile, and let it end if so."""
    if refused is None or refused.code != NotFound.code:
        return False
    _end(ledger, offset)
    return True


def _end(ledger: Ledger, offset: int) -> None:
    ledger.order.ended(offset >> SHIFT, 1 << (offset & REST))


def _answer(ledger: Ledger, tickets: list[int], refused: Refused | None) -> None:
    for ticket in tickets:
        if refused is None:
            ledger.answer(ticket)
        else:
            ledger.answer(ticket, refused.code, refused.message)
