"""Groups for programs without an event loop: the same words, each returning when it is done."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self, TypeVar

from angarium.client.dead_letters import DEAD_LETTERS
from angarium.client.groups.group import KEEP_S, GroupChoices
from angarium.client.groups.handover import Handover
from angarium.client.groups.records import SyncGroupBatch
from angarium.client.sync_dead_letters import SyncDeadLetters

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from angarium.api import Checkpoint, ConsumeRequest, GroupConfig, GroupInfo, Moved
    from angarium.client.client import Client
    from angarium.client.groups.attachment import Attachment
    from angarium.client.groups.consumer import AckMode
    from angarium.client.groups.group import KindLike
    from angarium.client.groups.keeper import Keeper
    from angarium.client.groups.records import SyncGroupRecord
    from angarium.client.loop_thread import LoopThread
    from angarium.client.reading.starts import StartLike
    from angarium.kinds import GroupKind

_Lent = TypeVar("_Lent", "SyncGroupRecord", SyncGroupBatch)


class SyncGroups(ABC):
    """What a `SyncClient` can do with groups; see `Client` for what each call means."""

    _client: Client
    _thread: LoopThread

    @property
    @abstractmethod
    def _keeper(self) -> Keeper: ...

    def group(
        self,
        name: str,
        *,
        kind: KindLike | None = None,
        start: StartLike = "earliest",
        config: GroupConfig | None = None,
    ) -> SyncGroup:
        """Return a consumer group, to take part in it or to look after it."""
        return SyncGroup(self, GroupChoices(name, kind=kind, start=start, config=config))

    def dead_letters(self, topic: str = DEAD_LETTERS) -> SyncDeadLetters:
        """Return the records that groups gave up into `topic`, to look at and to send back."""
        return SyncDeadLetters(self._thread, self._client.dead_letters(topic))

    def list_groups(self) -> tuple[GroupInfo, ...]:
        """Return all groups, by name, without their positions."""
        return self._thread.call(self._client.list_groups())

    def describe_group(self, group: str) -> GroupInfo:
        """Return a group's members and where it stands in each partition; `NotFound`."""
        return self._thread.call(self._client.describe_group(group))

    def alter_group(self, group: str, config: GroupConfig) -> GroupInfo:
        """Give a group other settings."""
        return self._thread.call(self._client.alter_group(group, config))

    def seek_group(
        self,
        group: str,
        start: StartLike,
        *,
        topic: str | None = None,
        partition: int | None = None,
        dry_run: bool = False,
    ) -> tuple[Moved, ...]:
        """Move a group, in all its partitions or in some; return where from and where to."""
        return self._thread.call(
            self._client.seek_group(group, start, topic=topic, partition=partition, dry_run=dry_run)
        )

    def pause_group(self, group: str, *, paused: bool = True) -> None:
        """Hand nothing more out to a group's consumers, or go on."""
        self._thread.call(self._client.pause_group(group, paused=paused))

    def resume_group(self, group: str) -> None:
        """Go on with a group that was paused."""
        self._thread.call(self._client.resume_group(group))

    def delete_group(self, group: str, *, topic: str | None = None) -> None:
        """Forget a group, or its part in one topic; `PreconditionFailed` while it is in use."""
        self._thread.call(self._client.delete_group(group, topic=topic))

    def report_checkpoints(self, group: str, checkpoints: Sequence[Checkpoint]) -> None:
        """Say how far a group that keeps its own offsets has come, so that its lag is visible."""
        self._thread.call(self._client.report_checkpoints(group, checkpoints))


class SyncGroup:
    """A group by name; see `Group`."""

    def __init__(self, client: SyncGroups, choices: GroupChoices) -> None:
        self._client = client
        self._choices = choices

    @property
    def name(self) -> str:
        """What it is called."""
        return self._choices.name

    def consume(
        self,
        *topics: str | Sequence[str],
        ack: AckMode = "manual",
        credit: int = 1_000,
        member: str = "",
        keep_s: float = KEEP_S,
    ) -> SyncConsumer:
        """Return a consumer of these topics, which has joined the group."""
        request = self._choices.request(topics, ack=ack, credit=credit, member=member)
        return SyncConsumer(self._client._keeper, request, ack=ack, keep_s=keep_s)

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

    def describe(self) -> GroupInfo:
        """Return its members, and where it stands in each partition; `NotFound`."""
        return self._client.describe_group(self.name)

    def alter(self, config: GroupConfig) -> GroupInfo:
        """Give it other settings."""
        return self._client.alter_group(self.name, config)

    def seek(
        self,
        start: StartLike,
        *,
        topic: str | None = None,
        partition: int | None = None,
        dry_run: bool = False,
    ) -> tuple[Moved, ...]:
        """Move it; see `Client.seek_group`."""
        return self._client.seek_group(
            self.name, start, topic=topic, partition=partition, dry_run=dry_run
        )

    def pause(self) -> None:
        """Hand nothing more out."""
        self._client.pause_group(self.name)

    def resume(self) -> None:
        """Go on."""
        self._client.resume_group(self.name)

    def delete(self, *, topic: str | None = None) -> None:
        """Forget it; `PreconditionFailed` while somebody takes part in it."""
        self._client.delete_group(self.name, topic=topic)


class SyncConsumer:
    """One program's part in a group; see `Consumer`. One thread reads it, any may settle."""

    def __init__(
        self, keeper: Keeper, request: ConsumeRequest, *, ack: AckMode, keep_s: float
    ) -> None:
        self._keeper = keeper
        self._is_auto = ack == "auto"
        self._handover = Handover()
        self._records: Iterator[SyncGroupRecord] = iter(())
        self._in_hand: SyncGroupRecord | SyncGroupBatch | None = None
        self._is_closed = False
        self._attachment: Attachment = keeper.call(
            keeper.attach(request, self._handover, keep_s=keep_s)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        in_hand, self._in_hand = self._in_hand, None
        if in_hand is not None:
            if error is None:
                in_hand.ack_nowait()
            elif isinstance(error, Exception):
                in_hand.nack_nowait(reason=f"{type(error).__name__}: {error}")
        self.close()

    def close(self) -> None:
        """Leave the group: what was said is sent, the rest goes back untried to the others."""
        if not self._is_closed:
            self._is_closed = True
            self._handover.end()
            if not self._keeper.is_closed:
                settle_s = self._keeper.settings.close_timeout_s
                self._keeper.call(self._keeper.detach(self._attachment, settle_s=settle_s))

    def __iter__(self) -> Iterator[SyncGroupRecord]:
        while True:
            # Whoever leaves a loop and comes back goes on with the next record.
            for record in self._records:
                yield from self._lent(record)
            batch = self.next_batch()
            if batch is None:
                return
            self._records = iter(batch)

    def next_batch(self) -> SyncGroupBatch | None:
        """Return the next delivery, waiting for one; None once the consumer is closed."""
        while True:
            parcel = self._handover.take_nowait() or self._keeper.call(self._handover.take())
            if parcel is None:
                return None
            if parcel.loan.left is None or parcel.loan.left:
                return SyncGroupBatch(parcel)

    def batches(self) -> Iterator[SyncGroupBatch]:
        """Yield deliveries as they come, each of which can be settled as one: the fast way."""
        while (batch := self.next_batch()) is not None:
            yield from self._lent(batch)

    def arrow(self) -> Iterator[tuple[SyncGroupBatch, Any]]:
        """Yield the same, each with its records as a `pyarrow.Table` (`angarium[arrow]`)."""
        return ((batch, batch.to_arrow()) for batch in self.batches())

    def flush(self) -> None:
        """Wait until everything said so far has its answer; raise what was refused unheard."""
        self._keeper.call(self._attachment.flush())
        self._attachment.raise_failure()

    @property
    def member(self) -> str:
        """Under which name it takes part."""
        return self._attachment.group.member

    @property
    def kind(self) -> GroupKind:
        """How the group consumes."""
        return self._attachment.group.kind

    @property
    def config(self) -> GroupConfig:
        """The group's settings, as they were when it was joined."""
        return self._attachment.group.config

    def _lent(self, one: _Lent) -> Iterator[_Lent]:
        if not self._is_auto:
            yield one
            return
        self._in_hand = one
        yield one
        self._in_hand = None
        one.ack_nowait()
