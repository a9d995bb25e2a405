"""The series a client writes: each opened at its first use, one transaction of it at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from angarium.api.transactions import (
    HOMES_TOPIC,
    TRANSACTIONS,
    Aborted,
    Committed,
    Series,
    TransactionId,
)
from angarium.errors import NotFound
from angarium.machine.fingerprint import home_partition
from angarium.wire.operations import Operation
from angarium.wire.operations.transactions import (
    DecideHeader,
    ForgetSeriesHeader,
    OpenSeriesHeader,
)

if TYPE_CHECKING:
    from angarium.api.transactions import StagedIn
    from angarium.client.reach import Reach
    from angarium.errors import ProducerFenced


COMMITTED_BYTES_PER_S: Final = 4 << 20
"""How fast a commit is carried out at the least; so much longer than any other one a large one is
waited for."""


class OpenSeries:
    """A series that this client writes: its epoch, and the number of the next transaction."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.turn = asyncio.Lock()
        """Held by the transaction under way: those of one name follow each other."""
        self.fenced: ProducerFenced | None = None
        """Set once somebody else has opened the series: this client must stop."""
        self._opened: Series | None = None
        self._next = 0

    async def next(self, reach: Reach) -> TransactionId:
        """Return the next transaction; at first, and after an outcome that is not known, opens the
        series, so that nothing before it is undecided."""
        if self.fenced is not None:
            raise self.fenced
        if self._opened is None:
            self._opened = await open_series(reach, self.name)
            last = self._opened.last_sequence
            self._next = 0 if last is None else last + 1
        # A number is used once, also by a transaction that is aborted: a late part of it is
        # recognised by that.
        transaction = TransactionId(self.name, self._opened.epoch, self._next)
        self._next += 1
        return transaction

    def doubt(self) -> None:
        """Open the series anew before the next transaction."""
        self._opened = None


async def open_series(reach: Reach, name: str, *, sequenced: bool = False) -> Series:
    """Take a new epoch of a series."""
    # Repeating is harmless: an epoch whose answer got lost is never used.
    frame = await reach.calls.ask(
        Operation.OPEN_SERIES,
        OpenSeriesHeader(name, sequenced),
        wait_s=reach.settings.attempt_timeout_s,
    )
    return frame.read(Series)


async def forget_sequenced(reach: Reach, producer: str, topics: tuple[str, ...]) -> None:
    """Forget the numbers of a producer in some topics."""
    header = ForgetSeriesHeader(producer, topics, sequenced=True)
    await reach.calls.ask(Operation.FORGET_SERIES, header)


async def commit(
    reach: Reach,
    transaction: TransactionId,
    stages: tuple[StagedIn, ...],
    *,
    content: str = "",
    size: int = 0,
) -> Committed:
    """Commit; asked again until it is certain, or `OutcomeUnknown` when the time is up.

    That is later the more there is: `size` bytes are brought in by every partition that has some.
    """
    frame = await reach.calls.ask(
        Operation.COMMIT,
        DecideHeader(transaction, stages, content),
        partition=await _home(reach, transaction.name),
        timeout_s=reach.settings.publish_timeout_s + size / COMMITTED_BYTES_PER_S,
        wait_s=2 * reach.settings.attempt_timeout_s,
    )
    return frame.read(Committed)


async def abort(reach: Reach, transaction: TransactionId, stages: tuple[StagedIn, ...]) -> Aborted:
    """Abort, unless it has been committed."""
    frame = await reach.calls.ask(
        Operation.ABORT,
        DecideHeader(transaction, stages),
        partition=await _home(reach, transaction.name),
        wait_s=2 * reach.settings.attempt_timeout_s,
    )
    return frame.read(Aborted)


async def _home(reach: Reach, name: str) -> tuple[str, int] | None:
    """Return where a series is decided: whoever leads that is the nearest to coordinate.

    Any node could; None while there is no such topic yet.
    """
    try:
        info = await reach.metadata.topic(HOMES_TOPIC)
    except NotFound:
        return None
    return HOMES_TOPIC, home_partition(TRANSACTIONS + name, len(info.partitions))
