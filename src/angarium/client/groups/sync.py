"""Groups for programs without an event loop: the same words, each returning when it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeVar

from angarium.client.bridge import Bridged, blocking, leading_to, stepping
from angarium.client.dead_letters import DeadLetters
from angarium.client.groups.consumer import Consumer, settle_by
from angarium.client.groups.group import KEEP_S, Group
from angarium.client.groups.group_records import SyncGroupBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from angarium.api import GroupConfig
    from angarium.client.bridge import Elsewhere
    from angarium.client.groups.consumer import AckMode
    from angarium.client.groups.group_records import SyncGroupRecord
    from angarium.kinds import GroupKind

_Lent = TypeVar("_Lent", "SyncGroupRecord", SyncGroupBatch)


class SyncConsumer(Bridged[Consumer]):
    """One program's part in a group; see `Consumer`. One thread reads it, any may settle."""

    def __init__(self, _: Elsewhere, consumer: Consumer) -> None:
        # Where its records are kept, it is asked for them: that is one thread less to pass through.
        super().__init__(consumer.keeper, consumer)
        self._records: Iterator[SyncGroupRecord] = iter(())
        self._in_hand: SyncGroupRecord | SyncGroupBatch | None = None
        self._elsewhere.call(consumer.begin())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        in_hand, self._in_hand = self._in_hand, None
        settle_by(error, in_hand)
        self.close()

    def close(self) -> None:
        """Leave the group: what was said is sent, the rest goes back untried to the others."""
        if not self._there.keeper.is_closed:
            self._elsewhere.call(self._there.close())

    def __iter__(self) -> Iterator[SyncGroupRecord]:
        while True:
            # A loop that is left and begun again goes on with the next record.
            for record in self._records:
                yield from self._lent(record)
            batch = self.next_batch()
            if batch is None:
                return
            self._records = iter(batch)

    def next_batch(self) -> SyncGroupBatch | None:
        """Return the next delivery, waiting for one; None once the consumer is closed."""
        handover = self._there.handover
        parcel = handover.take_nowait() or self._elsewhere.call(handover.take())
        return None if parcel is None else SyncGroupBatch(parcel)

    def batches(self) -> Iterator[SyncGroupBatch]:
        """Yield deliveries as they come, each of which can be settled as one: the fast way."""
        while (batch := self.next_batch()) is not None:
            yield from self._lent(batch)

    def arrow(self) -> Iterator[tuple[SyncGroupBatch, Any]]:
        """Yield the same, each with its records as a `pyarrow.Table` (`angarium[arrow]`)."""
        return ((batch, batch.to_arrow()) for batch in self.batches())

    flush = blocking(Consumer.flush)

    @property
    def member(self) -> str:
        """Under which name it takes part."""
        return self._there.member

    @property
    def kind(self) -> GroupKind:
        """How the group consumes."""
        return self._there.kind

    @property
    def config(self) -> GroupConfig:
        """The group's settings, as they were when it was joined."""
        return self._there.config

    def _lent(self, one: _Lent) -> Iterator[_Lent]:
        if not self._there.is_auto:
            yield one
            return
        self._in_hand = one
        yield one
        self._in_hand = None
        one.ack_nowait()


class SyncGroup(Bridged[Group]):
    """A group by name; see `Group`."""

    @property
    def name(self) -> str:
        """What it is called."""
        return self._there.name

    consume = leading_to(SyncConsumer, Group.consume)

    def consume_batches(
        self,
        *topics: str | Sequence[str],
        ack: AckMode = "manual",
        credit: int = 10_000,
        member: str = "",
        keep_s: float = KEEP_S,
    ) -> Iterator[SyncGroupBatch]:
        """Yield deliveries of these topics, each of which can be settled as one."""
        with self.consume(
            *topics, ack=ack, credit=credit, member=member, keep_s=keep_s
        ) as consumer:
            yield from consumer.batches()

    describe = blocking(Group.describe)
    alter = blocking(Group.alter)
    seek = blocking(Group.seek)
    pause = blocking(Group.pause)
    resume = blocking(Group.resume)
    delete = blocking(Group.delete)


class SyncDeadLetters(Bridged[DeadLetters]):
    """The letters of one dead-letter topic; see `DeadLetters`."""

    @property
    def topic(self) -> str:
        """The dead-letter topic."""
        return self._there.topic

    list = stepping(DeadLetters.list)
    show = blocking(DeadLetters.show)
    is_open = blocking(DeadLetters.is_open)
    redrive = blocking(DeadLetters.redrive)
    purge = blocking(DeadLetters.purge)
