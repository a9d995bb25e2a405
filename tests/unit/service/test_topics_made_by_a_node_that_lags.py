"""A node that has not heard of a drain yet makes a topic with as many replicas as there can be."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from angarium.api import TopicConfig
from angarium.errors import PreconditionFailed
from angarium.service.topics import Topics

if TYPE_CHECKING:
    from angarium.machine.catalog import TopicCreate


class Made(Exception):
    """The topic is there: what follows is no matter of this test."""


class LaggingCatalog:
    """Knows three hosts until it catches up, of which two can be used."""

    def __init__(self) -> None:
        self._hosts = 3
        self.made: list[int] = []

    def hosts_by_region(self) -> Counter[str]:
        return Counter({"": self._hosts})

    async def catch_up(self) -> None:
        self._hosts = 2

    async def submit(self, command: TopicCreate) -> None:
        if command.settings.replication > 2:
            raise PreconditionFailed("3 hosts are needed, 2 can be used")
        self.made.append(command.settings.replication)
        raise Made


def create(catalog: LaggingCatalog, config: TopicConfig) -> None:
    node: Any = SimpleNamespace(catalog=catalog)
    topics = Topics(node, SimpleNamespace())  # type: ignore[arg-type]
    asyncio.run(topics.create("orders", partitions=1, config=config))


def test_as_many_replicas_as_there_can_be() -> None:
    catalog = LaggingCatalog()
    with pytest.raises(Made):
        create(catalog, TopicConfig())
    assert catalog.made == [2]


def test_what_was_asked_for_is_refused() -> None:
    catalog = LaggingCatalog()
    with pytest.raises(PreconditionFailed):
        create(catalog, TopicConfig(replication=3))
    assert not catalog.made
