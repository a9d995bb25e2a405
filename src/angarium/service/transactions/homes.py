"""Where transactions are decided: the partitions of an internal topic, by name.

The topic is made when the first series is used. Its number of partitions is for ever, because a
name must find its home again; a request to alter or delete it is refused (`service.topics`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from angarium.api import TopicConfig
from angarium.api.transactions import HOMES_TOPIC
from angarium.errors import AlreadyExists, NotFound
from angarium.machine.catalog import TopicCreate
from angarium.machine.fingerprint import home_partition

if TYPE_CHECKING:
    from angarium.ids import RaftGroupId
    from angarium.machine.catalog import Topic
    from angarium.service.own_node import OwnNode
    from angarium.service.topics import Topics

HOMES: Final = 16
"""Partitions of that topic. A home decides thousands of transactions a second and remembers up to
`series_max` names, so a cluster remembers about 160,000; then the longest unused ones make room."""


class Homes:
    """Finds the home of a series."""

    def __init__(self, node: OwnNode, topics: Topics) -> None:
        self._node = node
        self._topics = topics

    async def of(self, name: str) -> RaftGroupId:
        """Return the group that decides for the series `name`."""
        topic = self._known() or await self._made()
        return topic.groups[home_partition(name, len(topic.groups))]

    def groups(self) -> tuple[RaftGroupId, ...]:
        """Return all homes, as far as this node knows; none before the first series."""
        topic = self._known()
        return () if topic is None else topic.groups

    def _known(self) -> Topic | None:
        try:
            return self._node.catalog.topic(HOMES_TOPIC)
        except NotFound:
            return None

    async def _made(self) -> Topic:
        await self._node.catalog.catch_up()
        known = self._known()
        if known is not None:
            return known
        settings = self._topics.settings(TopicConfig())
        with suppress(AlreadyExists):  # somebody else was faster
            await self._node.catalog.submit(
                TopicCreate(name=HOMES_TOPIC, partitions=HOMES, settings=settings, internal=True)
            )
        return self._node.catalog.topic(HOMES_TOPIC)
