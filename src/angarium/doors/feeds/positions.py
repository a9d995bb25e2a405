"""Which partitions of a topic a reader reads, from where on, and how far it is in all of them.

The last is one word, which travels as the id of a server-sent event: the next offset of each
partition, in their order, with dots between them. A browser sends the last one back when it
reconnects (`Last-Event-ID`), and the stream goes on after exactly that record.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from angarium.api import FetchRequest, Interest, Start, StartAt
from angarium.batch import Batch
from angarium.errors import AngariumError, InvalidArgument
from angarium.ids import Offset

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from angarium.api import Broker

_WORD: Final = re.compile(r"\d{1,19}(\.\d{1,19})*", re.ASCII)

_KNOWN: Final = re.compile(r"(?:(\d{1,9}):)?(\d{1,18})", re.ASCII)
"""One of those that `known_in` reads."""

LIVE: Final = Start(StartAt.LATEST)


def word_of(offsets: Sequence[int]) -> str:
    """Return offsets as an event's id."""
    return ".".join(map(str, offsets))


def offsets_in(word: str) -> list[Offset]:
    """Return the offsets that an event's id stands for; raises `InvalidArgument`."""
    if not _WORD.fullmatch(word):
        raise InvalidArgument(
            f"{word[:40]!r} is no id of an event, and no position, of this stream"
        )
    return [Offset(int(part)) for part in word.split(".")]


def known_in(text: str | None, partition: int | None) -> dict[int, Offset]:
    """Return by partition what a reader knows of: `57` in the one that it reads, or `2:57,0:9`."""
    found: dict[int, Offset] = {}
    for part in text.split(",") if text is not None else ():
        said = _KNOWN.fullmatch(part.strip())
        number = partition if said is None or said[1] is None else int(said[1])
        if said is None or number is None or number != (number if partition is None else partition):
            raise InvalidArgument(
                f"at_least={text[:40] if text else text!r}: say PARTITION:OFFSET, with commas "
                "between several, or the offset alone where one partition is read"
            )
        found[number] = Offset(max(int(said[2]), found.get(number, 0)))
    return found


async def found_start(broker: Broker, topic: str, number: int, start: Start) -> Offset:
    """Return where a stream begins in a partition.

    The end is for the leader to say, and where a time lies to who has the records. While nobody
    leads, because a home is lost, it is where the nearest replica ends, or has that time: what the
    leader has more comes behind that, once there is one again.
    """
    try:
        return await broker.find_offset(topic, number, start)
    except AngariumError as error:
        if not error.retriable or start.at is StartAt.OFFSET:
            raise
        partition = (await broker.describe_topic(topic)).partitions[number]
        first, end = partition.start_offset, partition.end_offset
        # Elsewhere a majority is lost, which whoever begins to read is to hear.
        if first is None or end is None or not (partition.home or partition.readers):
            raise
        if start.at is StartAt.TIMESTAMP:
            return await _first_since(broker, topic, number, start.value, within=(first, end))
        return first if start.at is StartAt.EARLIEST else end


async def _first_since(
    broker: Broker, topic: str, number: int, time_us: int, *, within: tuple[Offset, Offset]
) -> Offset:
    """Return the first offset of a copy that was appended at a time or later, or its end."""
    low, high = within
    while low < high:
        middle = Offset((low + high) // 2)
        wanted = FetchRequest(topic=topic, partition=number, offset=middle, bytes_max=1)
        found = (await broker.fetch(wanted)).batches
        batch = Batch.trusted(found[0]) if found else None
        if batch is None or batch.append_time >= time_us:
            high = middle
        else:
            low = batch.next_offset
    return low


async def starts(
    broker: Broker, topic: str, partitions: Sequence[int], start: Start, *, resumed: str | None
) -> list[Offset]:
    """Return where to begin in each partition.

    Partitions that the topic did not have yet when `resumed` was told are read from their start.
    """
    if resumed is None:
        return [await found_start(broker, topic, number, start) for number in partitions]
    known = offsets_in(resumed)
    if len(known) > len(partitions):
        raise InvalidArgument("the id is that of a stream with more partitions")
    return known + [
        await found_start(broker, topic, number, Start(StartAt.EARLIEST))
        for number in partitions[len(known) :]
    ]


def interests(topic: str, partitions: Iterable[int], start: Start) -> list[Interest]:
    """Return the wish to read some partitions of a topic."""
    return [Interest(topic=topic, partition=number, start=start) for number in partitions]


async def partitions_of(broker: Broker, topic: str) -> list[int]:
    """Return the numbers of a topic's partitions; raises `NotFound`."""
    return [one.number for one in (await broker.describe_topic(topic)).partitions]
