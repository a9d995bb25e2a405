"""The topic of audit records: made when the first one is written, and kept as it should be."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from angarium.api import TopicConfig
from angarium.api.audit import AUDIT_TOPIC
from angarium.errors import AlreadyExists, PreconditionFailed
from angarium.machine.catalog import TopicAlter, TopicCreate
from angarium.service.topics import REPLICATION

if TYPE_CHECKING:
    from angarium.service.own_node import OwnNode
    from angarium.service.topics import Topics

BATCH_BYTES_MAX: Final = 8 << 20
"""More than the records that are written together can have."""


class AuditTopic:
    """Sees to it that the topic is there, with enough replicas and the retention that was set.

    A cluster is often formed by one node, which records that it made the first administrator. So
    its replicas become more as hosts join. Where nodes are set differently, the one that was
    started last decides on the retention.
    """

    def __init__(self, node: OwnNode, topics: Topics, *, retention_ms: int | None) -> None:
        self._node = node
        self._topics = topics
        self._config = TopicConfig(retention_ms=retention_ms, batch_bytes_max=BATCH_BYTES_MAX)
        self._is_made = False

    @property
    def is_there(self) -> bool:
        """Whether the topic is there, as far as this node knows."""
        return self._node.catalog.find(AUDIT_TOPIC) is not None

    async def made(self) -> None:
        """Have the topic, and have it as it should be."""
        if self._is_made and self.is_there:
            return
        catalog = self._node.catalog
        catalog.check_formed()
        if not self.is_there:
            await catalog.catch_up()
        if not self.is_there:
            settings = self._topics.settings(self._config)
            with suppress(AlreadyExists):  # somebody else was faster
                await catalog.submit(
                    TopicCreate(name=AUDIT_TOPIC, partitions=1, settings=settings, internal=True)
                )
        await self.tend()
        self._is_made = True

    def forget(self) -> None:
        """Look again whether it is there."""
        self._is_made = False

    async def tend(self) -> None:
        """Give the topic as many replicas as it should have by now, and its retention."""
        topic = self._node.catalog.topic(AUDIT_TOPIC)
        wanted = self._topics.settings(self._config)
        # Replicas never become fewer by themselves: a host that is away comes back.
        replication = max(topic.settings.replication, min(REPLICATION, wanted.replication))
        wanted = msgspec.structs.replace(wanted, replication=replication)
        if wanted == topic.settings:
            return
        with suppress(PreconditionFailed):  # a host less than there was a moment ago
            await self._node.catalog.submit(TopicAlter(topic=topic.id, settings=wanted))
