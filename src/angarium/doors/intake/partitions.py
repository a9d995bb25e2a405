"""Where a record goes when its producer does not say.

With a key: where the key's hash says, so that one key keeps one partition for as long as the number
of partitions stays. Without: in turn. What a topic looks like is remembered for a little while, so
that a publish costs no second request; a topic that has just been given more partitions is noticed
after `AGE_MAX_S` at the latest.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from angarium.api import TopicConfig
from angarium.batch import key_hash
from angarium.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.api import Broker
    from angarium.ids import TopicId

AGE_MAX_S: Final = 2.0
"""How long a topic's shape is believed; then it is asked for again."""

TOPICS_MAX: Final = 10_000
"""Topics remembered. At the bound the one remembered longest is forgotten, and asked for again."""


@dataclass(slots=True, kw_only=True)
class TopicShape:
    """What a door has to know about a topic."""

    partitions: int
    batch_bytes_max: int
    read_at: float
    turn: int
    """The partition that received the last record without a key."""
    id: TopicId | None = None
    """None of a topic that is not there yet."""

    def __post_init__(self) -> None:
        assert self.partitions > 0

    def partition_for(self, key: bytes | None) -> int:
        """Return the partition for a record with this key."""
        if key is not None:
            return key_hash(key) % self.partitions
        self.turn = (self.turn + 1) % self.partitions
        return self.turn


class TopicShapes:
    """The shapes of topics, each asked for when it is needed."""

    def __init__(self, broker: Broker, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._broker = broker
        self._clock = clock
        self._shapes: dict[str, TopicShape] = {}

    def known(self, topic: str) -> TopicShape | None:
        """Return what is remembered of `topic`, unless that is too old."""
        shape = self._shapes.get(topic)
        if shape is not None and self._clock() - shape.read_at < AGE_MAX_S:
            return shape
        return None

    async def of(self, topic: str) -> TopicShape:
        """Return the shape of `topic`, from memory or from the broker.

        A topic that does not exist looks like a fresh one with a single partition: the publish
        itself decides whether it is made or refused.
        """
        return self.known(topic) or await self._read(topic)

    def forget(self, topic: str) -> None:
        """Ask again next time: the topic has turned out to be another one."""
        self._shapes.pop(topic, None)

    async def _read(self, topic: str) -> TopicShape:
        read_at = self._clock()
        try:
            info = await self._broker.describe_topic(topic)
        except NotFound:
            default = TopicConfig()
            return TopicShape(
                partitions=1, batch_bytes_max=default.batch_bytes_max, read_at=read_at, turn=0
            )
        before = self._shapes.get(topic)
        shape = TopicShape(
            partitions=max(1, len(info.partitions)),
            batch_bytes_max=info.config.batch_bytes_max,
            read_at=read_at,
            turn=before.turn if before else 0,
            id=info.id,
        )
        if before is None and len(self._shapes) >= TOPICS_MAX:
            del self._shapes[next(iter(self._shapes))]
        self._shapes[topic] = shape
        return shape
