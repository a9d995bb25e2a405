"""A transaction written by many processes: tasks stage, one driver commits what counts.

Each task, and each attempt at it, fills a stage of its own and hands the driver a *ticket*. The
driver commits the tickets of the attempts that count; what the others staged is dropped. Stages
need no coordination, a commit is one decision, and repeating it is a no-op that says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from angarium.api.transactions import GroupAck, StagedIn, TransactionId
from angarium.client.transactions import series as asking
from angarium.client.transactions.publishing import StagedPublishing
from angarium.client.transactions.stages import StageWriter
from angarium.errors import InvalidArgument
from angarium.ids import Epoch
from angarium.wire.operations import Operation
from angarium.wire.operations.transactions import ForgetSeriesHeader

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from angarium.api.transactions import Aborted, Committed
    from angarium.client.reach import Reach
    from angarium.ids import Buffer


class Ticket(msgspec.Struct, frozen=True):
    """What a task has staged: a plain value, to be sent to the driver (it can be pickled)."""

    stages: tuple[StagedIn, ...] = ()
    is_committed: bool = False
    """A partition said that the transaction has been committed before: nothing was staged."""
    size: int = 0
    """Bytes staged, as packed."""


class StagedWrite:
    """One transaction of a series, as a value that every process makes for itself.

    Driver, once per run:       series = await client.open_series("query-1")
    any process:                write = client.staged("query-1", epoch=series.epoch, sequence=7)
    each attempt at a task:     async with write.stage("task-3-attempt-0") as stage: ...
                                ticket = stage.ticket
    driver:                     committed = await write.commit(tickets)
    """

    def __init__(self, reach: Reach, name: str, *, epoch: int, sequence: int) -> None:
        self._reach = reach
        self.id = TransactionId(name, Epoch(epoch), sequence)

    def stage(self, name: str) -> Stage:
        """Return a stage to fill; each attempt at a task takes a name that nobody has used."""
        return Stage(StageWriter(self._reach, self.id, name))

    async def commit(self, tickets: Iterable[Ticket], *, content: str = "") -> Committed:
        """Publish what the tickets stand for, in their order, and drop everything else.

        `repeated` in the answer: this sequence, or a later one, had been committed before, and
        nothing was changed. `content` says what is committed, in at most 1,024 characters; the
        answer has that of the newest commit, so that a repetition can be told from something else
        under a number that was used before. Raises `ProducerFenced` if the series was opened anew
        since, `TransactionAborted` if it was open for too long; `OutcomeUnknown`: ask again.
        """
        tickets = list(tickets)
        stages = tuple(one for ticket in tickets for one in ticket.stages)
        size = sum(ticket.size for ticket in tickets)
        return await asking.commit(self._reach, self.id, stages, content=content, size=size)

    async def abort(self, tickets: Iterable[Ticket] = ()) -> Aborted:
        """Drop everything, unless it was committed; where no ticket tells, it times out."""
        stages = tuple(one for ticket in tickets for one in ticket.stages)
        return await asking.abort(self._reach, self.id, stages)

    async def forget(self, *topics: str) -> None:
        """Forget the whole series, at its home and in `topics`; it can be repeated from then on.

        For names that never come again: a cluster remembers a bounded number of them.
        """
        header = ForgetSeriesHeader(self.id.name, topics)
        await self._reach.calls.ask(Operation.FORGET_SERIES, header)


class Stage(StagedPublishing):
    """One attempt's share. Leaving the block stages everything; an exception stages no more."""

    def __init__(self, writer: StageWriter) -> None:
        self._writer = writer
        self._ticket: Ticket | None = None

    @property
    def ticket(self) -> Ticket:
        """What to commit; there once the stage is closed."""
        if self._ticket is None:
            raise InvalidArgument("a stage has a ticket once it is closed")
        return self._ticket

    @property
    def outdated(self) -> dict[str, int]:
        """Topics by whose older layout, which is said, records were dealt that were refused: they
        belong to other partitions by now. A stage of another name can take them."""
        return self._writer.outdated

    @property
    def is_empty(self) -> bool:
        """Whether no partition is known to have anything of it."""
        return not self._writer.size

    def _open_writer(self) -> StageWriter:
        return self._writer

    async def __aenter__(self) -> Stage:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            await self.close()
        else:
            await self._writer.drop()

    async def settle(self) -> None:
        """Add nothing more, and wait for what is on its way: `is_empty` is certain then."""
        await self._writer.settle()

    async def close(self) -> Ticket:
        """Stage everything and return the ticket."""
        if self._ticket is None:
            stages = await self._writer.flush()
            self._ticket = Ticket(stages, self._writer.is_committed, self._writer.size)
        return self._ticket

    async def put_batch(
        self, topic: str, partition: int, batch: Buffer, *, layout: int | None = None
    ) -> None:
        """Add a batch built by `angarium.batch` for one partition: nobody unpacks it.

        `layout` is the topic's by which keys have sent it there. If the topic has another one by
        now, nothing more is staged: `TransactionAborted`, and `outdated` says so.
        """
        await self._writer.put_batch(topic, partition, batch, layout=layout)

    def acknowledge(self, group: str, topic: str, partition: int, ranges: Sequence[int]) -> None:
        """Acknowledge offsets of a group, given as first, past the last, and so on."""
        self._writer.acknowledge(topic, partition, GroupAck(group, tuple(ranges)))
