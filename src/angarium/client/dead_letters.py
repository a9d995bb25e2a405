"""Dead letters over the wire; `api.dead_letters` says what they are and how they are dealt with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.api import dead_letters as api
from angarium.api.dead_letters import DEAD_LETTERS, PREFIX, REDRIVE, Dealt, LetterFilter, is_settled
from angarium.api.transactions import Position
from angarium.client.records import Record
from angarium.errors import NotFound
from angarium.wire.operations import Operation
from angarium.wire.operations.transactions import SettledByHeader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from angarium.api import TopicInfo
    from angarium.client.client import Client
    from angarium.client.reach import Reach

__all__ = [
    "DEAD_LETTERS",
    "PREFIX",
    "REDRIVE",
    "DeadLetter",
    "DeadLetters",
    "Dealt",
    "LetterFilter",
]

if TYPE_CHECKING:
    DeadLetter = api.DeadLetter[Record]
else:
    DeadLetter = api.DeadLetter


class DeadLetters(api.LetterProcedure[Record]):
    """The letters of one dead-letter topic."""

    def __init__(self, client: Client, reach: Callable[[], Reach], topic: str) -> None:
        super().__init__(topic)
        self._client = client
        self._reach = reach

    async def show(self, partition: int, offset: int) -> DeadLetter:
        """Return one letter, dealt with or not; `NotFound` if there is none."""
        record = await self._client.fetch_one(self.topic, partition, offset)
        return self._letter(record, (partition, offset))

    async def is_open(self, partition: int, offset: int) -> bool:
        """Tell whether nobody has dealt with a letter yet."""
        return not is_settled(await self._position(partition), offset)

    async def dealt_with(self) -> dict[int, tuple[int, ...]]:
        """Return the letters that were sent back or purged, for those who read the topic in bulk.

        For each partition: first offset, past the last offset, and so on.
        """
        try:
            info = await self._client.describe_topic(self.topic)
        except NotFound:
            return {}
        positions = {one.number: await self._position(one.number) for one in info.partitions}
        return {number: (0, int(at.floor), *at.ranges) for number, at in positions.items()}

    async def _describe(self, topic: str) -> TopicInfo:
        return await self._client.describe_topic(topic)

    async def _records(self, partition: int, floor: int) -> AsyncIterator[tuple[int, Record]]:
        start = await self._client.find_offset(self.topic, partition, "earliest")
        end = await self._client.find_offset(self.topic, partition, "latest")
        at = max(int(start), floor)
        while at < end:
            batches = await self._client.fetch_batches(self.topic, partition, at, fresh=True)
            if not batches:
                return
            for batch in batches:
                for record in batch:
                    assert record.offset is not None
                    if record.offset < end:
                        yield record.offset, record
                at = int(batch.batch.next_offset)

    async def _position(self, partition: int) -> Position:
        frame = await self._reach().calls.ask(
            Operation.SETTLED_BY,
            SettledByHeader(REDRIVE, self.topic, partition),
            partition=(self.topic, partition),
        )
        return frame.read(Position)

    async def _commit(
        self,
        letters: Sequence[DeadLetter],
        generations: Mapping[int, int | None],
        *,
        sends: bool,
    ) -> None:
        async with self._client.transaction(REDRIVE) as transaction:
            for letter in letters:
                record = letter.record
                if sends:
                    await transaction.publish(
                        letter.topic,
                        record.value,
                        key=record.key,
                        headers=letter.headers or None,
                        partition=letter.partition,
                        timestamp=record.timestamp or None,
                    )
                number, offset = letter.place
                transaction.acknowledge(
                    REDRIVE,
                    self.topic,
                    number,
                    (offset, offset + 1),
                    generation=generations[number],
                )
