"""What a reader asks of a topic: which partitions, and from where on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.api import Interest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.api import Broker, Start


def interests(topic: str, partitions: Iterable[int], start: Start) -> list[Interest]:
    """Return the wish to read some partitions of a topic."""
    return [Interest(topic=topic, partition=number, start=start) for number in partitions]


async def partitions_of(broker: Broker, topic: str) -> list[int]:
    """Return the numbers of a topic's partitions; raises `NotFound`."""
    return [one.number for one in (await broker.describe_topic(topic)).partitions]
