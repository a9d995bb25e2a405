"""Dead letters on a node; `api.dead_letters` says what they are and how they are dealt with."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from angarium.api import FetchRequest, Start, StartAt
from angarium.api.dead_letters import REDRIVE, LetterProcedure
from angarium.api.stored_records import readable, records_of
from angarium.api.transactions import GroupAck, StagedIn, StageRequest, TransactionId
from angarium.batch import BatchBuilder, Record
from angarium.errors import AngariumError
from angarium.ids import Offset

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from angarium.api import Broker, TopicInfo
    from angarium.api.dead_letters import DeadLetter
    from angarium.api.transactions import Position, TransactionBroker
    from angarium.ids import Buffer

STAGE: Final = "redrive"
"""Every attempt is a transaction of an epoch of its own, so their stages never meet."""

PART_BYTES: Final = 1 << 20
"""About how many bytes are staged by one request; a larger batch goes alone."""


class ServedDeadLetters(LetterProcedure[Record]):
    """The letters of one dead-letter topic, on a node."""

    def __init__(
        self,
        broker: Broker,
        transactions: TransactionBroker,
        turn: asyncio.Lock,
        topic: str,
    ) -> None:
        """Prepare; `turn` is held by the transaction under way: another one would fence it."""
        super().__init__(topic)
        self._broker = broker
        self._transactions = transactions
        self._turn = turn
        self.may_return_to: Callable[[str], bool] = _anywhere
        """Whether whoever asks may send letters back to a topic."""

    async def _fault(self, letter: DeadLetter[Record], partitions: dict[str, int]) -> str | None:
        if not self.may_return_to(letter.topic):
            return f"{letter.topic} is gone, or not yours to publish to"
        return await super()._fault(letter, partitions)

    async def _describe(self, topic: str) -> TopicInfo:
        return await self._broker.describe_topic(topic)

    async def _position(self, partition: int) -> Position:
        return await self._transactions.settled_by(REDRIVE, topic=self.topic, partition=partition)

    async def _records(self, partition: int, floor: int) -> AsyncIterator[tuple[int, Record]]:
        find = self._broker.find_offset
        start = await find(self.topic, partition, Start(StartAt.EARLIEST))
        end = await find(self.topic, partition, Start(StartAt.LATEST))
        at = max(start, Offset(floor))
        while at < end:
            result = await self._broker.fetch(
                FetchRequest(topic=self.topic, partition=partition, offset=at, fresh=True)
            )
            if not result.batches:
                return
            for buffer in result.batches:
                batch = readable(buffer, topic=self.topic, partition=partition)
                for record in records_of(batch, from_offset=at, expired=result.expired):
                    if record.offset < end:
                        yield record.offset, record
                at = batch.next_offset

    async def _commit(
        self,
        letters: Sequence[DeadLetter[Record]],
        generations: Mapping[int, int | None],
        *,
        sends: bool,
    ) -> None:
        batches = await self._batches(letters) if sends else {}
        async with self._turn:
            # A new epoch each time: what an attempt that broke off has left behind is ended first.
            series = await self._transactions.open_series(REDRIVE)
            last = series.last_sequence
            transaction = TransactionId(REDRIVE, series.epoch, 0 if last is None else last + 1)
            staged: dict[tuple[str, int], StagedIn] = {}
            try:
                for request in _stages(
                    transaction, batches, _acks(self.topic, letters, generations)
                ):
                    key = (request.topic, request.partition)
                    staged[key] = StagedIn(*key, (STAGE,))
                    await self._transactions.stage(request)
                await self._transactions.commit(transaction, tuple(staged.values()))
            except AngariumError:
                # Where nobody can be told, the partitions find out by themselves.
                with suppress(AngariumError):
                    await self._transactions.abort(transaction, tuple(staged.values()))
                raise

    async def _batches(
        self, letters: Sequence[DeadLetter[Record]]
    ) -> dict[tuple[str, int], list[Buffer]]:
        """Return the letters as they go back, packed for each partition they came from."""
        builders: dict[tuple[str, int], BatchBuilder] = {}
        found: dict[tuple[str, int], list[Buffer]] = {}
        for letter in letters:
            key = (letter.topic, letter.partition)
            if key not in builders:
                bytes_max = (await self._describe(letter.topic)).config.batch_bytes_max
                builders[key] = BatchBuilder(bytes_max=bytes_max)
                found[key] = []
            builder, record = builders[key], letter.record
            while not builder.add(
                record.value,
                key=record.key,
                headers=letter.headers,
                timestamp=record.timestamp,
            ):
                found[key].append(builder.build())
            if builder.bytes_estimate >= PART_BYTES:
                found[key].append(builder.build())
        for key, builder in builders.items():
            if len(builder):
                found[key].append(builder.build())
        return found


def _anywhere(_: str) -> bool:
    return True


def _acks(
    topic: str, letters: Sequence[DeadLetter[Record]], generations: Mapping[int, int | None]
) -> dict[tuple[str, int], GroupAck]:
    """Return the acknowledgement of letters, by the partition they lie in."""
    ranges: dict[int, list[int]] = {}
    for number, offset in sorted(letter.place for letter in letters):
        flat = ranges.setdefault(number, [])
        if flat and flat[-1] == offset:
            flat[-1] += 1
        else:
            flat += (offset, offset + 1)
    return {
        (topic, number): GroupAck(REDRIVE, tuple(flat), generations[number])
        for number, flat in ranges.items()
    }


def _stages(
    transaction: TransactionId,
    batches: Mapping[tuple[str, int], list[Buffer]],
    acks: Mapping[tuple[str, int], GroupAck],
) -> Iterator[StageRequest]:
    """Yield what puts everything aside, part by part."""
    for key in dict.fromkeys((*acks, *batches)):
        ack = acks.get(key)
        parts: list[list[Buffer]] = [[]]
        for batch in batches.get(key, ()):
            if parts[-1] and sum(map(len, parts[-1])) + len(batch) > PART_BYTES:
                parts.append([])
            parts[-1].append(batch)
        for number, part in enumerate(parts):
            yield StageRequest(
                transaction=transaction,
                stage=STAGE,
                part=number,
                topic=key[0],
                partition=key[1],
                batches=tuple(part),
                acks=(ack,) if ack is not None and number == 0 else (),
            )
