"""A subscription at a replica that lacks what its subscriber knows of gets it from the leader."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from angarium.api import FetchRequest, FetchResult, Interest, Start, StartAt
from angarium.errors import InvalidArgument, NotLeader
from angarium.ids import NodeId, Offset, RaftGroupId
from angarium.service.subscribing import LocalSubscription

GROUP = RaftGroupId(1)


class Replica:
    """Has records up to `end_offset`."""

    def __init__(self, end: int) -> None:
        self.end_offset = Offset(end)


def subscription_on(replica: Replica, asked: list[FetchRequest]) -> LocalSubscription:
    """Return one on a node whose leader, asked for anything, has nothing left, or is lost."""

    async def fetch(request: FetchRequest) -> FetchResult:
        asked.append(request)
        if request.topic == "lost":
            raise NotLeader("nobody leads")
        return FetchResult(start_offset=Offset(0), end_offset=Offset(20))

    async def found(*_: object) -> object:
        return SimpleNamespace(group=GROUP)

    async def known() -> None:
        return None

    def nothing(*_: object) -> None:
        return None

    node: Any = SimpleNamespace(
        id=NodeId(1),
        replicas=SimpleNamespace(full=lambda _: replica, get=lambda _: replica),
    )
    fetching: Any = SimpleNamespace(fetch=fetch, stop_waiting=nothing, wait=nothing)
    dispatcher: Any = SimpleNamespace(listen=nothing, leave=nothing, known=known)
    topics: Any = SimpleNamespace(partition=found)
    return LocalSubscription(node, topics, fetching, dispatcher)


def _interest(at_least: int | None, topic: str = "t") -> Interest:
    known = None if at_least is None else Offset(at_least)
    start = Start(StartAt.OFFSET, 10)
    return Interest(topic=topic, partition=0, start=start, at_least=known)


@pytest.mark.parametrize(("at_least", "leader_is_asked"), [(None, False), (9, False), (10, True)])
def test_only_what_the_replica_lacks_is_asked_of_the_leader(
    at_least: int | None, leader_is_asked: bool
) -> None:
    asked: list[FetchRequest] = []

    async def story() -> None:
        subscription = subscription_on(Replica(10), asked)
        await subscription.add([_interest(at_least)])
        for _ in range(5):
            await asyncio.sleep(0)
        # From then on the replica is read again: whether it has come so far or not.
        assert len(subscription._ready) == 1
        await subscription.close()

    asyncio.run(story())
    assert [one.at_least for one in asked] == ([at_least] if leader_is_asked else [])


def test_it_ends_with_why_if_nobody_has_it() -> None:
    async def story() -> None:
        subscription = subscription_on(Replica(10), [])
        await subscription.add([_interest(10, "lost")])
        with pytest.raises(NotLeader):
            await anext(aiter(subscription))
        with pytest.raises(InvalidArgument, match="at_least is not negative"):
            await subscription.add([_interest(-1)])

    asyncio.run(story())
