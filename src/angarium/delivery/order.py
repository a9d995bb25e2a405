"""What the kinds of groups have in common: the port through which a group asks what comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from angarium.delivery.loans import Borrower, Loans
    from angarium.delivery.retry_times import RetryTimes
    from angarium.delivery.source import RecordSource
    from angarium.ids import Micros
    from angarium.machine.cursors import Group

    Hand: TypeAlias = Callable[[Borrower, int, int, int], None]
    """Lends to a borrower, of a block, these bits, with this attempt."""


class Order(Protocol):
    """Which record goes to whom next. One for each kind of group that is handed records."""

    def __init__(
        self,
        group: Group,
        source: RecordSource,
        loans: Loans,
        *,
        retry_times: RetryTimes,
        now: Micros,
    ) -> None:
        """Begin with what the group's state says, and nothing else."""

    spent: list[int]
    """Records whose attempts are used up, to become dead letters. The reader empties it."""

    @property
    def absent(self) -> list[tuple[int, int]]:
        """Blocks with records that need no delivery: gaps, expired ones. The reader empties it."""

    def pick(self, now: Micros, hand: Hand) -> None:
        """Lend what can be lent."""

    def wake_at(self) -> int | None:
        """When there may be something to lend although nothing happened; None: never."""

    # --- what becomes of records ---------------------------------------------------------------

    def claim(self, borrower: Borrower, block: int, bits: int, attempt: int) -> int:
        """Return which records, lent by an earlier leader, may stay with a member."""

    def given_back(self, block: int, bits: int) -> None:
        """Take records that came back untried."""

    def settling(self, block: int, bits: int) -> None:
        """Note that the acknowledgement of records on loan is under way."""

    def reopened(self, block: int, bits: int) -> None:
        """Note that it was refused, and that they are on loan again."""

    def ended(self, block: int, bits: int) -> None:
        """Note that records are acknowledged."""

    def failing(self, offset: int) -> None:
        """Note that an attempt failed, which is being committed."""

    def failed(self, offset: int, now: Micros) -> None:
        """Note that it is committed; `RetryTimes` says when to try again."""

    def promised(self, offset: int) -> None:
        """Note that the record's dead letter is promised."""

    # --- who is there -------------------------------------------------------------------------

    def joined(self, borrower: Borrower) -> None:
        """Note that a member came."""

    def left(self, borrower: Borrower) -> None:
        """Note that a member went; what it held is given back or failing by now."""

    def stalled(self, borrower: Borrower) -> None:
        """Note that a lease of this member has ended."""
