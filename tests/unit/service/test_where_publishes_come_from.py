"""From which region a publish comes, as its partition's leader counts it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from angarium.api import PublishRequest
from angarium.batch import encode
from angarium.ids import Micros, NodeId, RaftGroupId, TopicId
from angarium.machine.catalog import Partition, Topic, TopicSettings
from angarium.node.origins import UNKNOWN, Origins
from angarium.service.publishing import Publisher

if TYPE_CHECKING:
    from angarium.wire.operations import PublishHeader

GROUP = RaftGroupId(7)
ME, LEADER = NodeId(1), NodeId(2)


def a_node(*, leads: bool, follows: bool = True) -> Any:
    """Return a node in `eu`, with one topic."""
    settings = TopicSettings(leaders_follow=follows)
    topic = Topic(TopicId(1), "t", settings, (GROUP,), Micros(0))
    headers: list[PublishHeader] = []

    async def request(_: NodeId, __: object, header: PublishHeader, *___: Any, **____: Any) -> Any:
        headers.append(header)
        return SimpleNamespace(read=lambda _: SimpleNamespace(acks=()))

    return SimpleNamespace(
        id=ME,
        now=Micros(1).__int__,
        config=SimpleNamespace(region="eu", request_timeout_s=1.0),
        catalog=SimpleNamespace(
            find=lambda _: topic,
            partition=lambda *_: Partition(GROUP, topic.id, 0, (ME, LEADER), ()),
        ),
        replicas=SimpleNamespace(leading=lambda _: object() if leads else None),
        origins=Origins(),
        quorum=SimpleNamespace(check=lambda _: None),
        driver=SimpleNamespace(publish=lambda *_: None),
        peers=SimpleNamespace(request=request),
        headers=headers,
    )


def a_publish(region: str | None) -> PublishRequest:
    batch = bytes(encode([b"value"]))
    return PublishRequest(topic="t", partition=0, batches=(batch,), region=region)


def publisher(node: Any) -> Publisher:
    async def find_or_make(_: str) -> None:
        pass

    async def partition(name: str, number: int) -> Partition:
        found: Partition = node.catalog.partition(name, number)
        return found

    async def leader(_: Partition) -> NodeId:
        return LEADER

    topics: Any = SimpleNamespace(find_or_make=find_or_make, partition=partition, leader=leader)
    dispatcher: Any = None
    return Publisher(node, topics, dispatcher)


CASES = pytest.mark.parametrize(
    ("region", "counted"), [("us", "us"), (None, "eu"), ("", UNKNOWN)], ids=str
)


@CASES
def test_a_leader_counts_the_publishers_region_or_its_own(region: str | None, counted: str) -> None:
    node = a_node(leads=True)
    assert publisher(node).begin(a_publish(region), lambda _: None)
    assert node.origins._now == {GROUP: {counted: 1}}


@CASES
def test_who_passes_a_publish_on_says_where_it_comes_from(region: str | None, counted: str) -> None:
    node = a_node(leads=False)
    asyncio.run(publisher(node).publish(a_publish(region)))
    assert [one.region for one in node.headers] == [counted]
    assert node.origins._now == {}


def test_nothing_is_counted_where_leaders_do_not_follow() -> None:
    node = a_node(leads=True, follows=False)
    assert publisher(node).begin(a_publish("us"), lambda _: None)
    assert node.origins._now == {}
