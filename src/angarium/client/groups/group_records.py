"""What a consumer is handed: records and batches on loan, and what can be said about them.

Each comes in two classes: in one the words that wait are awaited, in the other they block.
"""

from __future__ import annotations

from functools import partial, wraps
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from angarium.api import Verb
from angarium.batch import split
from angarium.client.groups.lent_partition import Said
from angarium.client.groups.spans import count_in, offsets_in, pairs
from angarium.client.records import ReceivedBatch, Record, header_items, received
from angarium.client.times import milliseconds
from angarium.errors import InvalidArgument
from angarium.ids import Offset

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator
    from datetime import timedelta

    from angarium.client.groups.handover import Parcel
    from angarium.client.groups.loans import Loan
    from angarium.client.groups.spans import Spans

    Span = float | timedelta
    Offsets = Iterable[int]


P = ParamSpec("P")
L = TypeVar("L", "LoanedRecord", "LoanedBatch")


def awaited(
    say: Callable[Concatenate[L, P], None],
) -> Callable[Concatenate[L, P], Coroutine[Any, Any, None]]:
    """Return the word that is awaited until what `say` says has been committed."""

    @wraps(say)
    async def word(self: L, /, *args: P.args, **kwargs: P.kwargs) -> None:
        await self.loan.partition.hear(partial(say, self, *args, **kwargs), self.loan, self._spans)

    return word


def waited_for(say: Callable[Concatenate[L, P], None]) -> Callable[Concatenate[L, P], None]:
    """Return the word that blocks until then."""

    @wraps(say)
    def word(self: L, /, *args: P.args, **kwargs: P.kwargs) -> None:
        self.loan.partition.hear_blocking(
            partial(say, self, *args, **kwargs), self.loan, self._spans
        )

    return word


class LoanedRecord(Record, frozen=True, gc=False):
    """A record on loan. Say what became of it, once: later words about it change nothing.

    What is said without waiting may be said in any thread, and is answered for by the consumer's
    `flush`.
    """

    attempt: int = 1
    """Which attempt this is, counted over all consumers of the group."""
    loan: Any = None
    """For the client itself."""

    def ack_nowait(self) -> None:
        """Done with: it is never delivered to this group again."""
        self.loan.ack(self.offset)

    def ack_through_nowait(self) -> None:
        """Done with this record and all before it in its partition: only in a stream group."""
        partition = self.loan.partition
        if not partition.is_ordered:
            raise InvalidArgument("ack_through works only in a stream group")
        partition.ack_through(self.offset)

    def nack_nowait(self, delay: Span | None = None, reason: str = "") -> None:
        """Failed: it comes again, `delay` (seconds) later or as the group's backoff says.

        It counts as an attempt; after the last one it becomes a dead letter with this reason. In a
        stream group all records behind it are taken back, and come again after it.
        """
        self._say(Verb.NACK, milliseconds(delay), reason)

    def reject_nowait(self, reason: str = "") -> None:
        """Failed for good: it becomes a dead letter, without another attempt."""
        self._say(Verb.REJECT, None, reason)

    def release_nowait(self) -> None:
        """Give it back untried: it comes again, to any ready consumer, and does not count."""
        self._say(Verb.RELEASE)

    def extend_nowait(self, seconds: Span) -> None:
        """Keep it for so long from now, even if this program should not be able to renew it.

        Records in hand are renewed anyway, so this is for long pauses: a suspended process.
        """
        _extend(self.loan, self._spans[:1], seconds)

    def _say(self, verb: Verb, delay_ms: int | None = None, reason: str = "") -> None:
        loan: Loan = self.loan
        loan.partition.say(Said(loan, verb, loan.take_out(self._spans[:1]), delay_ms, reason))

    @property
    def _spans(self) -> Spans:
        assert self.offset is not None
        return (self.offset, self.offset + 1)


class GroupRecord(LoanedRecord, frozen=True, gc=False):
    """A record on loan, for asyncio: what is awaited has been committed when it returns."""

    ack = awaited(LoanedRecord.ack_nowait)
    ack_through = awaited(LoanedRecord.ack_through_nowait)
    nack = awaited(LoanedRecord.nack_nowait)
    reject = awaited(LoanedRecord.reject_nowait)
    release = awaited(LoanedRecord.release_nowait)
    extend = awaited(LoanedRecord.extend_nowait)


class SyncGroupRecord(LoanedRecord, frozen=True, gc=False):
    """A record on loan, for programs without asyncio: each word returns when it is committed."""

    ack = waited_for(LoanedRecord.ack_nowait)
    ack_through = waited_for(LoanedRecord.ack_through_nowait)
    nack = waited_for(LoanedRecord.nack_nowait)
    reject = waited_for(LoanedRecord.reject_nowait)
    release = waited_for(LoanedRecord.release_nowait)
    extend = waited_for(LoanedRecord.extend_nowait)


class LoanedBatch:
    """Records of one partition that were handed over together. Nothing is unpacked before that.

    Its words are about all of its records, or with `offsets` about some; those that are settled
    already stay as they are.
    """

    __slots__ = ("loan", "slices")

    def __init__(self, parcel: Parcel) -> None:
        self.loan: Loan = parcel.loan
        """For the client itself."""
        self.slices = tuple(_slices(parcel))
        """The stored batches it was cut from, each with the positions that are meant."""
        if self.loan.left is None and len(self) != count_in(self.loan.ranges):
            self.loan.open(self.offsets())

    @property
    def topic(self) -> str:
        """Where its records are from."""
        return self.loan.partition.topic

    @property
    def partition(self) -> int:
        """Where its records are from."""
        return self.loan.partition.number

    @property
    def attempt(self) -> int:
        """Which attempt this is, for all of them."""
        return self.loan.attempt

    @property
    def _spans(self) -> Spans:
        return self.loan.ranges

    # --- what is in it --------------------------------------------------------------------------

    def __len__(self) -> int:
        return sum(map(len, self.slices))

    def values(self) -> list[bytes | None]:
        """Return the values: the fast way to read."""
        return list(chain.from_iterable(map(ReceivedBatch.values, self.slices)))

    def keys(self) -> list[bytes | None]:
        """Return the keys."""
        return list(chain.from_iterable(map(ReceivedBatch.keys, self.slices)))

    def offsets(self) -> list[Offset]:
        """Return the offsets."""
        return list(chain.from_iterable(map(ReceivedBatch.offsets, self.slices)))

    def to_arrow(self) -> Any:
        """Return a `pyarrow.Table`, contents not copied; needs the extra `angarium[arrow]`."""
        from angarium.batch.arrow import as_table  # noqa: PLC0415 (an extra)

        return as_table([one.to_arrow() for one in self.slices])

    # --- what can be said about it ----------------------------------------------------------------

    def ack_nowait(self, offsets: Offsets | None = None) -> None:
        """Done with: they are never delivered to this group again."""
        self._say(Verb.ACK, offsets)

    def nack_nowait(
        self, delay: Span | None = None, reason: str = "", *, offsets: Offsets | None = None
    ) -> None:
        """Failed: they come again, later, and it counts; see `GroupRecord.nack_nowait`."""
        self._say(Verb.NACK, offsets, milliseconds(delay), reason)

    def reject_nowait(self, reason: str = "", *, offsets: Offsets | None = None) -> None:
        """Failed for good: they become dead letters; in a stream group only the first does."""
        self._say(Verb.REJECT, offsets, None, reason)

    def release_nowait(self, offsets: Offsets | None = None) -> None:
        """Give them back untried: they come again, to any ready consumer, and do not count."""
        self._say(Verb.RELEASE, offsets)

    def extend_nowait(self, seconds: Span) -> None:
        """Keep what is not settled for so long from now; see `GroupRecord.extend_nowait`."""
        _extend(self.loan, tuple(offsets_in(self.loan.remaining())), seconds)

    def _say(
        self, verb: Verb, offsets: Offsets | None, delay_ms: int | None = None, reason: str = ""
    ) -> None:
        loan = self.loan
        loan.partition.say(Said(loan, verb, loan.take_out(offsets), delay_ms, reason))


class GroupBatch(LoanedBatch):
    """A batch on loan, for asyncio: what is awaited has been committed when it returns."""

    __slots__ = ()

    def __iter__(self) -> Iterator[GroupRecord]:
        """Yield the records that are not settled yet, in order."""
        return _unsettled(self, GroupRecord)

    ack = awaited(LoanedBatch.ack_nowait)
    nack = awaited(LoanedBatch.nack_nowait)
    reject = awaited(LoanedBatch.reject_nowait)
    release = awaited(LoanedBatch.release_nowait)
    extend = awaited(LoanedBatch.extend_nowait)


class SyncGroupBatch(LoanedBatch):
    """A batch on loan, for programs without asyncio: each word returns when it is committed."""

    __slots__ = ()

    def __iter__(self) -> Iterator[SyncGroupRecord]:
        """Yield the records that are not settled yet, in order."""
        return _unsettled(self, SyncGroupRecord)

    ack = waited_for(LoanedBatch.ack_nowait)
    nack = waited_for(LoanedBatch.nack_nowait)
    reject = waited_for(LoanedBatch.reject_nowait)
    release = waited_for(LoanedBatch.release_nowait)
    extend = waited_for(LoanedBatch.extend_nowait)


_R = TypeVar("_R", bound=LoanedRecord)


def _unsettled(batch: LoanedBatch, make: type[_R]) -> Iterator[_R]:
    loan = batch.loan
    left, lost = loan.open(batch.offsets()), loan.lost
    for slice_ in batch.slices:
        for record in _records(slice_, loan, make):
            # Settled meanwhile with others, taken back by the broker, or known to be another's: not
            # in hand any more.
            if record.offset in left and not (lost and record.offset in lost):
                yield record


def _records(slice_: ReceivedBatch, loan: Loan, make: type[_R]) -> Iterator[_R]:
    batch, start, stop = slice_.batch, slice_.start, slice_.stop
    section, columns, header = batch.section, batch.columns, batch.header
    nothing: Iterable[None] = repeat(None)
    return map(
        make,
        repeat(slice_.topic),
        repeat(slice_.partition),
        batch.offsets(start, stop),
        nothing if section.keys is None else section.keys.items(start, stop),
        section.values.items(start, stop),
        header_items(section.headers, start, stop),
        batch.timestamps()[start:stop] if columns.timestamps else repeat(header.timestamp_max),
        repeat(header.append_time),
        batch.expires_at()[start:stop] if columns.expires_at else repeat(header.expires_at_max),
        batch.deliver_at()[start:stop] if columns.deliver_at else repeat(header.deliver_at_max),
        repeat(loan.attempt),
        repeat(loan),
    )


def _slices(parcel: Parcel) -> Iterator[ReceivedBatch]:
    """Yield what of the stored batches was handed over, one for each unbroken stretch."""
    loan = parcel.loan
    topic, number = loan.partition.topic, loan.partition.number
    stretches = list(pairs(loan.ranges))
    at = 0
    for buffer in split(parcel.payload):
        batch = received(topic, number, buffer, from_offset=0).batch
        while at < len(stretches) and stretches[at][1] <= batch.base_offset:
            at += 1
        # A stretch may go on in the next batch, so the last one of this batch is looked at again.
        for first, past in islice(stretches, at, None):
            if first >= batch.next_offset:
                break
            slice_ = batch.slice(Offset(first), Offset(past))
            if len(slice_):
                yield ReceivedBatch(topic, number, batch, slice_.start, slice_.stop)


def _extend(loan: Loan, offsets: tuple[int, ...], seconds: Span) -> None:
    delay_ms = milliseconds(seconds)
    assert delay_ms is not None
    ranges = loan.keep_longer(offsets, delay_ms / 1000)
    loan.partition.say(Said(loan, Verb.EXTEND, ranges, delay_ms))
