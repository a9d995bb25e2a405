"""Dead letters: records whose attempts are used up, stored in another topic, each exactly once.

The partition's log has promised the letter under a sequence. It is published as a producer that
belongs to the group in this partition and keeps its epoch from leader to leader, so whoever leads
may publish it again: the dead-letter topic knows what it has. Then the partition's log notes that
it is stored, and the record counts as acknowledged.

Each letter is a batch of its own: another leader may gather them differently, and a batch that is
known in part would be refused.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.api import PublishRequest, TopicConfig
from angarium.batch import Batch
from angarium.batch.builder import BatchBuilder
from angarium.batch.layout import NO_TIMESTAMP
from angarium.errors import (
    AlreadyExists,
    AngariumError,
    NotFound,
    ProducerFenced,
    SequenceGap,
    TooLarge,
    UnknownProducer,
)
from angarium.ids import Offset, Sequence
from angarium.machine.catalog import ProducerShare, ProducerShared, TopicCreate
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from angarium.api import Ack
    from angarium.batch.reading import Record
    from angarium.delivery import DeadLetterDue
    from angarium.node.node import Node
    from angarium.service.groups.led_group import LedGroup
    from angarium.service.groups.led_partition import LedPartition
    from angarium.service.publishing import PublishDesk
    from angarium.service.topics import TopicDesk

_log = logging.getLogger(__name__)

LETTERS_MAX: Final = 64
"""Letters of one group that are published together; the rest follow."""

LETTER_BYTES_MAX: Final = 16 << 20
"""The largest letter: what a dead-letter topic made here takes. One that is too large for its topic
is stored without its value."""

PAUSE_S_MIN: Final = 0.1
PAUSE_S_MAX: Final = 5.0
"""How long to wait before letters that could not be stored are tried again: longer each time."""

PREFIX: Final = "angarium-dlq-"
"""How the headers begin that a letter has in addition to its record's own."""

_UNFIT: Final = {SequenceGap.code, UnknownProducer.code, ProducerFenced.code}


class _Owed(NamedTuple):
    led: LedPartition
    group: LedGroup
    letters: deque[DeadLetterDue]


class DeadLetters:
    """The letters that this node owes, as the leader of some partitions."""

    def __init__(self, node: Node, topics: TopicDesk, publishing: PublishDesk) -> None:
        self._node = node
        self._topics = topics
        self._publishing = publishing
        self._owed: dict[LedGroup, _Owed] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def bury(self, led: LedPartition, group: LedGroup, letters: list[DeadLetterDue]) -> None:
        """Store letters, in the order of their sequences, and tell the group of each."""
        owed = self._owed.get(group)
        if owed is not None:
            owed.letters.extend(letters)
            return
        owed = self._owed[group] = _Owed(led, group, deque(letters))
        task = asyncio.create_task(self._work(owed))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, owed: _Owed) -> None:
        pause = PAUSE_S_MIN
        try:
            while owed.letters and not owed.group.is_over:
                try:
                    await self._store(owed)
                    pause = PAUSE_S_MIN
                except (AngariumError, TimeoutError) as error:
                    _log.info("dead letters of group %s wait: %s", owed.group.group.name, error)
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, PAUSE_S_MAX)
        finally:
            del self._owed[owed.group]

    async def _store(self, owed: _Owed) -> None:
        letters = [owed.letters[at] for at in range(min(len(owed.letters), LETTERS_MAX))]
        topic = owed.group.group.settings.dead_letter_topic
        await self._find_or_make(topic)
        name = _producer_name(owed, topic)
        shared = await self._share(ProducerShare(name=name, base=letters[0].sequence))
        acks = await self._publish(owed, topic, letters, shared)
        if acks and acks[0].code in _UNFIT:
            # Another topic than before, or one that was made anew: it counts from here.
            shared = await self._share(
                ProducerShare(name=name, base=letters[0].sequence, replaces=shared.epoch)
            )
            acks = await self._publish(owed, topic, letters, shared)
        for letter, ack in zip(letters, acks, strict=True):
            if ack.code == TooLarge.code and "batch_bytes_max" in ack.message:
                (ack,) = await self._publish(owed, topic, [letter], shared, has_value=False)  # noqa: PLW2901
            if ack.code:
                raise NotFound(f"{topic} refuses a letter: {ack.message} ({ack.code})")
            owed.letters.popleft()
            owed.group.buried(letter.offset, letter.sequence)

    async def _publish(
        self,
        owed: _Owed,
        topic: str,
        letters: list[DeadLetterDue],
        shared: ProducerShared,
        *,
        has_value: bool = True,
    ) -> tuple[Ack, ...]:
        batches = []
        for letter in letters:
            builder = BatchBuilder(bytes_max=LETTER_BYTES_MAX)
            _add(builder, owed, letter, has_value=has_value)
            sequence = Sequence(letter.sequence - shared.base)
            if sequence < 0:
                raise SequenceGap(f"letter {letter.sequence} is older than its producer")
            batches.append(
                builder.build(producer_id=shared.producer, epoch=shared.epoch, sequence=sequence)
            )
        request = PublishRequest(
            topic=topic, partition=0, batches=tuple(batches), mode=DeliveryMode.CONSISTENT
        )
        async with asyncio.timeout(self._node.config.request_timeout_s):
            return await self._publishing.publish(request)

    async def _share(self, share: ProducerShare) -> ProducerShared:
        shared = await self._node.catalog.submit(share)
        assert isinstance(shared, ProducerShared)
        return shared

    async def _find_or_make(self, topic: str) -> None:
        try:
            await self._topics.find(topic)
        except NotFound:
            settings = self._topics.settings(TopicConfig(batch_bytes_max=LETTER_BYTES_MAX))
            with suppress(AlreadyExists):  # somebody else was faster
                await self._node.catalog.submit(
                    TopicCreate(name=topic, partitions=1, settings=settings, internal=True)
                )


def _producer_name(owed: _Owed, topic: str) -> str:
    """Return who publishes these letters: a group as it was opened, in a partition, to a topic."""
    group = owed.group.group
    # Names are longer than a producer's name may be; who they are is enough.
    whose = blake2b(f"{topic} {group.name}".encode(), digest_size=16).hexdigest()
    return f"angarium.dlq/{owed.led.place}/{group.opened_index}/{whose}"


def _add(builder: BatchBuilder, owed: _Owed, letter: DeadLetterDue, *, has_value: bool) -> None:
    record = _record(owed.led, letter.offset)
    told = {
        "topic": owed.led.topic,
        "partition": owed.led.number,
        "offset": letter.offset,
        "group": owed.group.group.name,
        "attempts": letter.attempts,
        "reason": letter.reason,
        "first-at": letter.first_at,
        "last-at": letter.last_at,
    }
    headers: list[tuple[str, bytes | None]] = [
        (f"{PREFIX}{name}", str(value).encode()) for name, value in told.items()
    ]
    if record is None:
        # Trimmed away, or compacted, before it could be stored: what is known of it is kept.
        builder.add(None, headers=[*headers, (f"{PREFIX}gone", b"true")])
        return
    headers += [one for one in record.headers if not one[0].startswith(PREFIX)]
    value = record.value
    if not has_value:
        headers.append((f"{PREFIX}value-bytes", str(len(value or b"")).encode()))
        value = None
    timestamp = record.timestamp if record.timestamp != NO_TIMESTAMP else record.append_time
    builder.add(value, key=record.key, headers=headers, timestamp=timestamp)


def _record(led: LedPartition, offset: int) -> Record | None:
    parcel = next(led.records.parcels((offset, offset + 1)), None)
    if parcel is None:
        return None
    batch = Batch.trusted(parcel.batches[0])
    part = batch.slice(Offset(offset), Offset(offset + 1))
    return next(iter(part), None)
