"""A node that has not heard yet of added partitions asks before it says that there are none."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from angarium.api import PublishRequest
from angarium.errors import NotFound, no_partition
from angarium.service.publishing import Publisher
from angarium.service.topics import Topics
from angarium.service.transactions.transaction_calls import TransactionCalls


class LaggingCatalog:
    """Knows of two partitions until it catches up, of which there are four."""

    def __init__(self) -> None:
        self._count = 2
        self.caught_up = 0

    def find(self, name: str) -> Any:
        return SimpleNamespace(name=name, groups=tuple(range(1, self._count + 1)))

    topic = find

    def partition(self, name: str, number: int) -> Any:
        if number >= self._count:
            raise no_partition(name, self._count, number)
        return number

    async def catch_up(self) -> None:
        self.caught_up += 1
        self._count = 4


def _topics(catalog: LaggingCatalog) -> Topics:
    return Topics(cast("Any", SimpleNamespace(catalog=catalog)), cast("Any", None))


def test_a_partition_that_was_added_elsewhere_is_found() -> None:
    catalog = LaggingCatalog()
    assert asyncio.run(_topics(catalog).partition("t", 1)) == cast("Any", 1)
    assert not catalog.caught_up, "what is known is not asked for"
    assert asyncio.run(_topics(catalog).partition("t", 3)) == cast("Any", 3)


def test_one_that_is_not_there_is_refused_when_that_is_certain() -> None:
    catalog = LaggingCatalog()
    with pytest.raises(NotFound, match="0 to 3, not 4"):
        asyncio.run(_topics(catalog).partition("t", 4))


def test_a_publish_to_one_is_forwarded_and_not_refused() -> None:
    catalog = LaggingCatalog()
    node: Any = SimpleNamespace(catalog=catalog, replicas=SimpleNamespace(leading=lambda _: None))
    publisher = Publisher(node, Topics(node, cast("Any", None)), cast("Any", None))
    forwarded: list[object] = []

    async def forward(_: PublishRequest, partition: object) -> Any:
        forwarded.append(partition)
        return ()

    publisher._forward = forward  # type: ignore[assignment]
    request = PublishRequest(topic="t", partition=3, batches=(b"batch",))
    asyncio.run(publisher.publish(request))
    assert forwarded == [3]


def test_transactions_find_one_as_well() -> None:
    node: Any = SimpleNamespace(catalog=LaggingCatalog())
    calls = TransactionCalls(node, Topics(node, cast("Any", None)))
    assert asyncio.run(calls._partition("t", 3)) == cast("Any", 3)
