"""A node that has not heard yet of added partitions asks before it says that there are none."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from angarium.api import PublishRequest
from angarium.batch import encode
from angarium.errors import InvalidArgument, LayoutChanged, NotFound, no_partition
from angarium.ids import Micros, ProducerId, RaftGroupId, TopicId
from angarium.machine.catalog import Topic, TopicSettings
from angarium.machine.keys import identity_of
from angarium.service.publishing import Publisher
from angarium.service.topics import Topics
from angarium.service.transactions.transaction_calls import (
    TransactionCalls,
    _check_former,
    _check_layouts,
)


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


def test_keys_of_a_layout_that_ended_two_days_ago_are_asked_of_no_other_node() -> None:
    day = 24 * 3_600 * 1_000_000
    ended = 1_000_000
    topic = Topic(
        TopicId(1),
        "t",
        TopicSettings(),
        tuple(map(RaftGroupId, range(1, 5))),
        Micros(0),
        layouts=(2, 3, 4),
        begun=(Micros(0), Micros(0), Micros(ended)),
    )
    now = ended + 2 * day

    def begun(batch: bytearray, layout: int) -> list[str] | None:
        """Return the codes of what is answered at once; None: the leader is asked."""
        node: Any = SimpleNamespace(
            catalog=SimpleNamespace(find=lambda _: topic),
            replicas=SimpleNamespace(leading=lambda _: None),
            now=lambda: now,
        )
        publisher = Publisher(node, cast("Any", None), cast("Any", None))
        request = PublishRequest(topic="t", partition=0, batches=(batch,), layout=layout)
        acks: list[Any] = []
        return [one.code for one in acks[0]] if publisher.begin(request, acks.append) else None

    producer, sequence = identity_of(b"key", b"content")
    keyed = encode([b"x"], producer_id=producer, sequence=sequence)
    assert begun(keyed, layout=1) is None, "this node's clock may be a day ahead"
    now += 1
    assert begun(keyed, layout=1) == ["LAYOUT_CHANGED"]
    assert begun(keyed, layout=0) is None, "it was not noted when that one ended"
    assert begun(keyed, layout=2) is None, "it is in force"
    assert begun(encode([b"x"], producer_id=ProducerId(7)), layout=1) is None


@pytest.mark.parametrize(
    ("layout", "former"),
    [(None, ((0, 0),)), (1, ((0, 1),)), (1, ((0, -1),)), (99, tuple((0, n) for n in range(65)))],
)
def test_a_numbered_publish_asks_only_partitions_of_earlier_layouts(
    layout: int | None, former: tuple[tuple[int, int], ...]
) -> None:
    with pytest.raises(InvalidArgument):
        _check_former(layout, former)
    _check_former(2, ((0, 0), (1, 1)))
    _check_former(None, ())


@pytest.mark.parametrize(
    ("layout", "former"),
    [(2, ()), (2, ((0, 0),)), (1, ((2, 0),)), (1, ((4, 0),)), (1, ((-1, 0),))],
)
def test_a_numbered_publish_names_only_layouts_and_partitions_that_the_topic_had(
    layout: int, former: tuple[tuple[int, int], ...]
) -> None:
    topic = Topic(
        TopicId(1),
        "t",
        TopicSettings(),
        tuple(map(RaftGroupId, range(1, 5))),
        Micros(0),
        layouts=(2, 3, 4),
        unfenced=(0,),
    )
    with pytest.raises(LayoutChanged):
        _check_layouts(topic, layout, former)
    _check_layouts(topic, 1, ((0, 0), (1, 0)))
    _check_layouts(topic, None, ())
