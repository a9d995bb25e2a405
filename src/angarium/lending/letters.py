"""Dead letters: records whose attempts are used up, stored in another topic, each exactly once.

The partition's log has promised the letter under a sequence. It is published as a producer that
belongs to the group in this partition and keeps its epoch from leader to leader, so every leader
may publish it again: the dead-letter topic knows what it has. Then the partition's log notes that
it is stored, and the record counts as acknowledged.

Each letter is a batch of its own: another leader may gather them differently, and a batch that is
known in part would be refused.

`burial` is a generator without I/O: it yields what is to be done and is sent what came of it, or
has thrown into it why it could not be. The service does it over the network, the simulator in its
own time.
"""

from __future__ import annotations

import logging
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from angarium.batch import Batch
from angarium.batch.builder import BatchBuilder
from angarium.batch.layout import NO_TIMESTAMP
from angarium.errors import (
    AngariumError,
    NotFound,
    ProducerFenced,
    SequenceGap,
    TooLarge,
    UnknownProducer,
)
from angarium.ids import Buffer, Offset, Sequence
from angarium.machine.catalog import ProducerShare

if TYPE_CHECKING:
    from collections.abc import Generator

    from angarium.api import Ack
    from angarium.batch.decoding import Record
    from angarium.delivery import DeadLetterDue
    from angarium.lending.led_group import LedGroup
    from angarium.lending.led_partition import LedPartition
    from angarium.machine.catalog import ProducerShared

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


class Publish(NamedTuple):
    """Publish batches, consistently, to a dead-letter topic that is made if it is not there."""

    topic: str
    batches: tuple[Buffer, ...]


class Pause(NamedTuple):
    """Wait."""

    seconds: float


Burial: TypeAlias = "Generator[ProducerShare | Publish | Pause, Any, None]"
"""Yields errands. A `ProducerShare` is the catalog's and answered with a `ProducerShared`, a
`Publish` with its acks, a `Pause` with nothing; an error of any of them is thrown into it."""


def burial(group: LedGroup) -> Burial:
    """Store the letters of a group, in the order of their sequences, and tell it of each."""
    pause = PAUSE_S_MIN
    try:
        while group.letters and not group.is_over:
            try:
                yield from _store(group)
                pause = PAUSE_S_MIN
            except (AngariumError, TimeoutError) as error:
                _log.info("dead letters of group %s wait: %s", group.group.name, error)
                yield Pause(pause)
                pause = min(2 * pause, PAUSE_S_MAX)
    finally:
        group.is_burying = False


def _store(group: LedGroup) -> Burial:
    letters = list(islice(group.letters, LETTERS_MAX))
    topic = group.group.settings.dead_letter_topic
    name = _producer_name(group, topic)
    shared = yield ProducerShare(name=name, base=letters[0].sequence)
    acks: tuple[Ack, ...] = yield _publish(group, topic, letters, shared)
    if acks and acks[0].code in _UNFIT:
        # Another topic than before, or one that was made anew: it counts from here.
        shared = yield ProducerShare(name=name, base=letters[0].sequence, replaces=shared.epoch)
        acks = yield _publish(group, topic, letters, shared)
    for letter, ack in zip(letters, acks, strict=True):
        if ack.code == TooLarge.code and "batch_bytes_max" in ack.message:
            (ack,) = yield _publish(group, topic, [letter], shared, has_value=False)  # noqa: PLW2901
        if ack.code:
            raise NotFound(f"{topic} refuses a letter: {ack.message} ({ack.code})")
        group.letters.popleft()
        group.buried(letter.offset, letter.sequence)


def _publish(
    group: LedGroup,
    topic: str,
    letters: list[DeadLetterDue],
    shared: ProducerShared,
    *,
    has_value: bool = True,
) -> Publish:
    batches = []
    for letter in letters:
        builder = BatchBuilder(bytes_max=LETTER_BYTES_MAX)
        _add(builder, group, letter, has_value=has_value)
        sequence = Sequence(letter.sequence - shared.base)
        if sequence < 0:
            raise SequenceGap(f"letter {letter.sequence} is older than its producer")
        batches.append(
            builder.build(producer_id=shared.producer, epoch=shared.epoch, sequence=sequence)
        )
    return Publish(topic, tuple(batches))


def _producer_name(led_group: LedGroup, topic: str) -> str:
    """Return who publishes these letters: a group as it was opened, in a partition, to a topic."""
    group = led_group.group
    # Names are longer than a producer's name may be; who they are is enough.
    whose = blake2b(f"{topic} {group.name}".encode(), digest_size=16).hexdigest()
    return f"angarium.dlq/{led_group.led.raft_group}/{group.opened_index}/{whose}"


def _add(builder: BatchBuilder, group: LedGroup, letter: DeadLetterDue, *, has_value: bool) -> None:
    led = group.led
    record = _record(led, letter.offset)
    told = {
        "topic": led.topic,
        "partition": led.number,
        "offset": letter.offset,
        "group": group.group.name,
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
