"""The contract's part about transactions, on a node: it coordinates whatever it is asked for.

A coordinator remembers nothing. It may stop at any point, and the node asked next, or the home's
leader by itself (`tending`), takes it from there.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, TypeVar

from angarium.api.publishing import Ack
from angarium.api.transactions import (
    SEQUENCE_MAX,
    SEQUENCED,
    SERIES_CHARACTERS_MAX,
    STAGE_BYTES_MAX,
    TRANSACTIONS,
    Aborted,
    Committed,
    Position,
    PublishedIn,
    Series,
    Staged,
)
from angarium.errors import AngariumError, InvalidArgument, LayoutChanged, TooLarge
from angarium.machine import outcomes
from angarium.machine.catalog import ProducerOpen, ProducerOpened
from angarium.machine.catalog.topics import (
    EARLIER_LAYOUTS_LEVEL,
    KEYED_ORDER_LEVEL,
    LAYOUTS_MAX,
)
from angarium.machine.commands import SeriesDelete, Stage
from angarium.machine.outcomes import Decided, Refused
from angarium.modes import DeliveryMode
from angarium.service.admission import check_fit, check_writable
from angarium.service.publishing import checked
from angarium.service.transactions import procedure
from angarium.service.transactions.homes import Homes
from angarium.service.transactions.participants import Participants
from angarium.service.transactions.positions import Positions
from angarium.service.transactions.procedure import Ask, ask_all, inner, outer, raise_refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.api.transactions import (
        SequencedPublish,
        StagedIn,
        StageRequest,
        TransactionId,
    )
    from angarium.ids import Buffer, Epoch, RaftGroupId
    from angarium.machine.catalog import Partition, Topic
    from angarium.service.own_node import OwnNode
    from angarium.service.topics import Topics
    from angarium.service.transactions.procedure import Named, Procedure

_log = logging.getLogger(__name__)
T = TypeVar("T")


class TransactionCalls:
    """Implements `api.transactions.TransactionBroker` on a node."""

    def __init__(self, node: OwnNode, topics: Topics) -> None:
        self._node = node
        self._topics = topics
        self.homes = Homes(node, topics)
        self.participants = Participants(node)
        self._positions = Positions(node, topics)
        self._finishing: set[asyncio.Task[None]] = set()
        self.count: Callable[[str], None] = _uncounted
        """Told of everything that was decided, for the metrics."""

    # --- series -------------------------------------------------------------------------------

    async def open_series(self, name: str) -> Series:
        """Take a new epoch of a series and end what its older runs left behind."""
        full_name = _full_name(TRANSACTIONS, name)
        home = await self.homes.of(full_name)
        epoch = await self._new_epoch(full_name)
        committed = await self._follow(procedure.fence(home, full_name, epoch))
        return Series(epoch=epoch, last_sequence=outer(committed))

    async def forget_series(self, name: str, topics: tuple[str, ...]) -> None:
        """Forget a series at its home and in `topics`."""
        full_name = _full_name(TRANSACTIONS, name)
        await self._forget(full_name, await self._groups_of(topics))
        # The home last: as long as it knows the name, what is left elsewhere can be resolved.
        await self._forget(full_name, [await self.homes.of(full_name)])

    async def _groups_of(self, topics: tuple[str, ...]) -> list[RaftGroupId]:
        return [group for one in topics for group in (await self._topics.find(one)).groups]

    async def _forget(self, full_name: str, groups: list[RaftGroupId]) -> None:
        steps = ask_all(Ask(group, SeriesDelete(name=full_name)) for group in groups)
        for answer in await self._follow(steps):
            if isinstance(answer.outcome, Refused):
                raise_refused(answer.outcome)

    async def _new_epoch(self, full_name: str) -> Epoch:
        opened = await self._node.catalog.submit(ProducerOpen(name=full_name))
        assert isinstance(opened, ProducerOpened)
        return opened.epoch

    # --- one transaction ----------------------------------------------------------------------

    async def stage(self, request: StageRequest) -> Staged:
        """Put batches and acknowledgements aside for a transaction."""
        named = _named(request.transaction)
        await self._topics.find_or_make(request.topic)
        partition = await self._partition(request.topic, request.partition)
        known = self._node.catalog.find(request.topic)
        if (
            known is not None
            and request.partition in known.unfenced
            and not request.part
            # One that has begun comes to its end by the layout that it began with.
            and not await self._node.spanning.has_begun(
                known, name=named["name"], sequence=named["sequence"]
            )
        ):
            # A fence waits until nothing is staged; with always more of it, it would for ever.
            raise LayoutChanged(f"{request.topic} is being given partitions; try again")
        command = Stage(
            **named,
            home=await self.homes.of(named["name"]),
            stage=request.stage,
            part=request.part,
            batches=self._joined(partition, request.batches),
            acks=await self._positions.staged_acks(
                request.acks, topic=request.topic, partition=request.partition
            ),
            layout=request.layout if self._node.levels.current >= KEYED_ORDER_LEVEL else None,
        )
        answer = await self._follow(procedure.stage(partition.group, command))
        outcome = answer.outcome
        if isinstance(outcome, Refused):
            raise_refused(outcome)
        if isinstance(outcome, Decided):
            return Staged(is_committed=True, repeated=True)
        assert isinstance(outcome, outcomes.Staged)
        return Staged(parts=outcome.parts, repeated=outcome.repeated)

    async def commit(
        self, transaction: TransactionId, stages: tuple[StagedIn, ...], *, content: str = ""
    ) -> Committed:
        """Publish these stages and drop all others."""
        named = _named(transaction)
        by_partition = await self._by_partition(stages)
        by_group = tuple((partition.group, of) for partition, of in by_partition.values())
        home = await self.homes.of(named["name"])
        ended = await self._follow(procedure.commit(home, named, by_group, content=content))
        if ended.unfinished is not None:
            task = asyncio.create_task(self._finish(home, ended.unfinished))
            self._finishing.add(task)
            task.add_done_callback(self._finishing.discard)
        published = []
        for (topic, number), (partition, _) in by_partition.items():
            where = ended.offsets.get(partition.group)
            base = None if where is None else where.base_offset
            past = None if where is None else where.next_offset
            published.append(PublishedIn(topic, number, base, past))
        if not ended.repeated:
            self.count("committed")
        return Committed(
            repeated=ended.repeated,
            partitions=tuple(published),
            last_sequence=outer(ended.newest),
            content=ended.content,
        )

    async def abort(self, transaction: TransactionId, stages: tuple[StagedIn, ...]) -> Aborted:
        """Drop everything staged, unless it has been committed."""
        named = _named(transaction)
        by_partition = await self._by_partition(stages)
        home = await self.homes.of(named["name"])
        groups = [partition.group for partition, _ in by_partition.values()]
        ended = await self._follow(procedure.abort(home, named, groups))
        if not ended.committed:
            self.count("aborted")
        return Aborted(committed=ended.committed)

    async def _finish(self, home: RaftGroupId, named: Named) -> None:
        """Tell the home that a commit is carried out; if that fails it asks by itself."""
        try:
            await self._follow(procedure.finish(home, named))
        except AngariumError as error:
            _log.debug("%s is finished later: %s", named["name"], error)

    async def _by_partition(
        self, stages: tuple[StagedIn, ...]
    ) -> dict[tuple[str, int], tuple[Partition, tuple[str, ...]]]:
        found: dict[tuple[str, int], tuple[Partition, tuple[str, ...]]] = {}
        for one in stages:
            partition = await self._partition(one.topic, one.partition)
            _, before = found.get((one.topic, one.partition), (partition, ()))
            found[one.topic, one.partition] = (partition, (*before, *one.stages))
        return found

    # --- producers that count themselves ------------------------------------------------------

    async def open_sequenced(self, producer: str) -> Series:
        """Take a new epoch of a producer that counts itself."""
        return Series(epoch=await self._new_epoch(_full_name(SEQUENCED, producer)))

    async def forget_sequenced(self, producer: str, topics: tuple[str, ...]) -> None:
        """Forget the numbers of a producer that counts itself in `topics`."""
        if not topics:
            raise InvalidArgument("say in which topics the producer is to be forgotten")
        await self._forget(_full_name(SEQUENCED, producer), await self._groups_of(topics))

    async def publish_sequenced(self, request: SequencedPublish) -> Ack:
        """Store batches unless that sequence, or a higher one, has been stored before."""
        if not request.batches:
            raise InvalidArgument("a publish carries at least one batch")
        await self._topics.find_or_make(request.topic)
        partition = await self._partition(request.topic, request.partition)
        named: Named = {
            "name": _full_name(SEQUENCED, request.producer),
            "epoch": request.epoch,
            "sequence": inner(_checked_sequence(request.sequence)),
        }
        batches = self._joined(partition, request.batches)
        layout, former = request.layout, request.former
        _check_former(layout, former)
        knows_layouts = self._node.levels.current >= EARLIER_LAYOUTS_LEVEL
        if not knows_layouts:
            layout, former = None, ()  # a node of an older release would not know what it has
        topic = self._node.catalog.topic_of(partition)
        if layout is not None and layout > topic.layout:
            # Either this node lags, or the request was dealt by a topic that is gone.
            await self._node.catalog.catch_up()
            partition = await self._partition(request.topic, request.partition)
            topic = self._node.catalog.topic_of(partition)
        _check_layouts(topic, layout, former)
        by_group = tuple([(topic.groups[number], was) for number, was in former])
        stored_in, decided = await self._follow(
            procedure.publish_sequenced(
                partition.group,
                named,
                batches,
                layout=layout,
                former=by_group,
                counts_fences=knows_layouts,
            )
        )
        numbers = {topic.groups[number]: number for number, _ in former}
        self.count("sequenced_duplicate" if decided.repeated else "sequenced")
        return Ack(
            mode=DeliveryMode.CONSISTENT,
            topic=request.topic,
            partition=numbers.get(stored_in, request.partition),
            base_offset=decided.base_offset,
            next_offset=decided.next_offset,
            duplicate=decided.repeated,
        )

    async def last_sequence(
        self, producer: str, epoch: Epoch, *, topic: str, partition: int
    ) -> int | None:
        """Return the last sequence stored in a partition; older epochs can add none any more."""
        found = await self._partition(topic, partition)
        steps = procedure.fence_partition(found.group, _full_name(SEQUENCED, producer), epoch)
        return outer(await self._follow(steps))

    # --- groups -------------------------------------------------------------------------------

    async def settled_by(self, group: str, *, topic: str, partition: int) -> Position:
        """Return what a group has settled in a partition."""
        return await self._positions.settled_by(group, topic=topic, partition=partition)

    # --- inside -------------------------------------------------------------------------------

    async def _partition(self, topic: str, number: int) -> Partition:
        check_writable(topic)
        return await self._topics.partition(topic, number)

    def _joined(self, partition: Partition, batches: tuple[Buffer, ...]) -> bytes:
        size = sum(map(len, batches))
        if size > STAGE_BYTES_MAX:
            raise TooLarge("STAGE_BYTES_MAX", f"{size} bytes cannot be staged at once")
        settings = self._node.catalog.topic_of(partition).settings
        found = [checked(one, settings.batch_bytes_max) for one in batches]
        check_fit(found, settings, now=self._node.now)
        return b"".join(found)

    async def _follow(self, steps: Procedure[T]) -> T:
        timeout_s = self._node.config.request_timeout_s
        return await self.participants.follow(steps, timeout_s=timeout_s)


def _uncounted(_: str) -> None:
    pass


def _named(transaction: TransactionId) -> Named:
    return {
        "name": _full_name(TRANSACTIONS, transaction.name),
        "epoch": transaction.epoch,
        "sequence": inner(_checked_sequence(transaction.sequence)),
    }


def _full_name(kind: str, name: str) -> str:
    if not 0 < len(name) <= SERIES_CHARACTERS_MAX:
        raise InvalidArgument(f"a series' name has 1 to {SERIES_CHARACTERS_MAX} characters")
    return kind + name


def _checked_sequence(sequence: int) -> int:
    if not 0 <= sequence <= SEQUENCE_MAX:
        raise InvalidArgument(f"a sequence lies in 0 to {SEQUENCE_MAX}, not at {sequence}")
    return sequence


def _check_former(layout: int | None, former: tuple[tuple[int, int], ...]) -> None:
    """Raise `InvalidArgument` for more partitions than there can have been, or no earlier ones."""
    if len(former) > LAYOUTS_MAX:
        raise InvalidArgument(f"a topic has at most {LAYOUTS_MAX} layouts, not {len(former)}")
    if any(layout is None or not 0 <= earlier < layout for _, earlier in former):
        raise InvalidArgument("only partitions of earlier layouts are asked")


def _check_layouts(topic: Topic, layout: int | None, former: tuple[tuple[int, int], ...]) -> None:
    """Raise `LayoutChanged` unless a topic has that layout, and had the earlier partitions."""
    if layout is not None and layout > topic.layout:
        raise LayoutChanged(
            f"dealt by layout {layout}; the layout of {topic.name} is {topic.layout}"
        )
    for number, earlier in former:
        if not 0 <= number < len(topic.groups) or topic.born(number) > earlier:
            raise LayoutChanged(f"layout {earlier} of {topic.name} had no partition {number}")
