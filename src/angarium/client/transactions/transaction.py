"""One transaction: what is published and acknowledged in it happens together, or not at all."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Protocol

from angarium.api.transactions import Committed, GroupAck
from angarium.client.transactions import series as asking
from angarium.client.transactions.publishing import StagedPublishing
from angarium.client.transactions.stages import StageWriter
from angarium.errors import (
    AngariumError,
    InvalidArgument,
    OutcomeUnknown,
    ProducerFenced,
    TransactionAborted,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api.transactions import TransactionId
    from angarium.client.reach import Reach
    from angarium.client.transactions.series import OpenSeries

_log = logging.getLogger(__name__)

STAGE = "client"
"""A client that owns its series fills one stage; what a crashed one left has another epoch."""


class OnLoan(Protocol):
    """A record of a group, or a batch of them, that can be acknowledged in a transaction."""

    @property
    def loan(self) -> Any:
        """For the client itself."""

    def ack_nowait(self) -> None:
        """Say that it is done with."""


class Transaction(StagedPublishing):
    """Publishes and acknowledges together.

        async with client.transaction() as tx:
            await tx.publish("invoices", invoice, key=customer)
            tx.ack(record)

    Leaving the block commits, an exception in it aborts. Nobody sees anything of it before the
    commit; afterwards each partition shows its part whole. Raises `TransactionAborted` if it was
    open for too long, `ProducerFenced` if another client has taken the name over, `OutcomeUnknown`
    if nobody could say in time: `commit` may be called again then.
    """

    def __init__(self, reach: Reach, series: OpenSeries) -> None:
        self._reach = reach
        self._series = series
        self._id: TransactionId | None = None
        self._writer: StageWriter | None = None
        self._on_loan: list[OnLoan] = []
        self._is_over = False
        self.committed: Committed | None = None
        """Where its records are, once it is committed."""

    @property
    def id(self) -> TransactionId:
        """Which one it is."""
        assert self._id is not None, "use it with `async with`"
        return self._id

    # --- its life -------------------------------------------------------------------------------

    async def __aenter__(self) -> Transaction:
        assert self._id is None, "a transaction is begun once"
        # One transaction of a name at a time: a home carries commits out in the order of
        # sequences, and refuses to open the next one before that.
        await self._series.turn.acquire()
        try:
            self._id = await self._series.next(self._reach)
        except BaseException as error:
            self._note(error)
            self._series.turn.release()
            raise
        self._writer = StageWriter(self._reach, self._id, STAGE)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if not self._is_over and self.committed is None:
                if error is None:
                    await self.commit()
                else:
                    await self._give_up()
        finally:
            self._series.turn.release()

    async def commit(self) -> Committed:
        """Commit now; leaving the block does so otherwise. Again: say how it ended."""
        if self.committed is not None:
            return self.committed
        writer = self._open_writer()
        try:
            stages = await writer.flush()
            if not stages:
                self.committed = Committed()
                return self.committed
            self.committed = await asking.commit(self._reach, self.id, stages, size=writer.size)
        except BaseException as error:
            self._note(error)
            # It may be committed, so it must not be aborted or begun again under the next number.
            # Opening the series anew settles it, whichever way it went.
            if isinstance(error, OutcomeUnknown) or not isinstance(error, AngariumError):
                self._series.doubt()  # the next request under this name learns what became of it
            else:
                # A definite no: nothing was decided for it, and what is staged may go.
                await self._give_up()
            raise
        for one in self._on_loan:
            # Behind the commit. Ended before, the record would be lent to somebody else if the
            # commit failed.
            one.ack_nowait()  # it is settled; this only ends the loan
        return self.committed

    async def abort(self) -> None:
        """Drop everything; one that is committed stays so."""
        if self.committed is None and not self._is_over:
            await self._give_up()

    async def _give_up(self) -> None:
        """Drop what was staged. Where nobody can be told, the partitions find out by themselves."""
        self._is_over = True
        writer = self._writer
        assert writer is not None
        await writer.drop()
        stages = writer.staged_in()
        if not stages:
            return
        try:
            await asking.abort(self._reach, self.id, stages)
        except AngariumError as error:
            # Nobody knows whether the abort arrived. The next transaction must not follow on one
            # that is open.
            self._series.doubt()
            _log.info("transaction %s was left to time out: %s", self.id, error)

    # --- what is in it --------------------------------------------------------------------------

    def ack(self, *records: OnLoan) -> None:
        """Acknowledge records, or batches, of a consumer group if the transaction commits.

        They stay on loan until then; if it fails they are still yours, to try again or to nack.
        Staging fails with `GroupFenced` if somebody else has them by now.
        """
        writer = self._open_writer()
        for record in records:
            loan, offset = record.loan, getattr(record, "offset", None)
            spans = loan.remaining() if offset is None else (offset, offset + 1)
            ack = GroupAck(loan.partition.group, spans, loan.generation or None)
            writer.acknowledge(loan.partition.topic, loan.partition.number, ack)
            self._on_loan.append(record)

    def acknowledge(
        self,
        group: str,
        topic: str,
        partition: int,
        ranges: Sequence[int],
        *,
        generation: int | None = None,
    ) -> None:
        """Acknowledge offsets of a group, given as first, past the last, and so on."""
        ack = GroupAck(group, tuple(ranges), generation)
        self._open_writer().acknowledge(topic, partition, ack)

    def _open_writer(self) -> StageWriter:
        if self._writer is None:
            raise InvalidArgument("a transaction is used with `async with`")
        if self._is_over or self.committed is not None:
            raise TransactionAborted("the transaction is over")
        return self._writer

    def _note(self, error: BaseException) -> None:
        if isinstance(error, ProducerFenced):
            self._series.fenced = error
