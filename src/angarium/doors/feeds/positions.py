"""Which partitions of a topic a reader reads, from where on, and how far it is in all of them.

The last is one word, which travels as the id of a server-sent event: the next offset of each
partition, in their order, with dots between them. A browser sends the last one back when it
reconnects (`Last-Event-ID`), and the stream goes on after exactly that record.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from angarium.api import Interest, Start, StartAt
from angarium.errors import InvalidArgument
from angarium.ids import Offset

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from angarium.api import Broker

_WORD: Final = re.compile(r"\d{1,19}(\.\d{1,19})*", re.ASCII)

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


async def starts(
    broker: Broker, topic: str, partitions: Sequence[int], start: Start, *, resumed: str | None
) -> list[Offset]:
    """Return where to begin in each partition.

    Partitions that the topic did not have yet when `resumed` was told are read from their start.
    """
    if resumed is None:
        return [await broker.find_offset(topic, number, start) for number in partitions]
    known = offsets_in(resumed)
    if len(known) > len(partitions):
        raise InvalidArgument("the id is that of a stream with more partitions")
    return known + [
        await broker.find_offset(topic, number, Start(StartAt.EARLIEST))
        for number in partitions[len(known) :]
    ]


def interests(topic: str, partitions: Iterable[int], start: Start) -> list[Interest]:
    """Return the wish to read some partitions of a topic."""
    return [Interest(topic=topic, partition=number, start=start) for number in partitions]


async def partitions_of(broker: Broker, topic: str) -> list[int]:
    """Return the numbers of a topic's partitions; raises `NotFound`."""
    return [one.number for one in (await broker.describe_topic(topic)).partitions]
