"""A follower that has not got as far as somebody knows asks the leader instead of saying no."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from angarium.api import FetchRequest, Start, StartAt
from angarium.errors import NotLeader, OffsetOutOfRange
from angarium.ids import Offset, RaftGroupId
from angarium.node.replicas import Replicas
from angarium.service.fetching import Fetching

if TYPE_CHECKING:
    from angarium.node.node import Node
    from angarium.service.topics import Topics

GROUP = RaftGroupId(1)
END = Offset(10)


class OneReplica:
    """Ten records, on a leader or a follower."""

    def __init__(self, *, leads: bool, lacks: str = "") -> None:
        self.may_serve = leads
        self.shortfall = lambda: lacks
        self.end_offset = END
        self.partition = SimpleNamespace(
            log=SimpleNamespace(start_offset=Offset(0), end_offset=END, offset_at=self._offset_at)
        )

    def _offset_at(self, time: int) -> Offset:
        """Each record has its offset for its time."""
        return min(Offset(time), END)

    def fetch(self, offset: Offset, *, bytes_max: int) -> list[memoryview]:
        if offset > END:
            raise OffsetOutOfRange(offset=offset, start=Offset(0), end=END)
        return []


def fetching_on(*, leads: bool, lacks: str = "") -> Fetching:
    """Return the fetching of a node from which no other one can be asked."""
    host = SimpleNamespace(replicas={GROUP: OneReplica(leads=leads, lacks=lacks)})
    node: Any = SimpleNamespace(
        replicas=Replicas(cast("Node", SimpleNamespace(host=host))),
        catalog=SimpleNamespace(find=lambda _: None),
        config=SimpleNamespace(request_timeout_s=1.0),
        peers=SimpleNamespace(request=None),
        now=lambda: 0,
    )

    async def partition(*_: object) -> object:
        return SimpleNamespace(group=GROUP)

    async def leader(_: object) -> None:
        raise NotLeader("the leader would be asked")

    topics = SimpleNamespace(partition=partition, leader=leader)
    return Fetching(cast("Node", node), cast("Topics", topics))


def fetched_at(offset: int) -> FetchRequest:
    return FetchRequest(topic="orders", partition=0, offset=Offset(offset))


def test_a_follower_asks_the_leader_for_what_it_has_not_got_yet() -> None:
    with pytest.raises(NotLeader):
        asyncio.run(fetching_on(leads=False).fetch(fetched_at(11)))


def test_a_follower_answers_for_itself_up_to_its_end() -> None:
    assert asyncio.run(fetching_on(leads=False).fetch(fetched_at(10))).end_offset == END


def test_a_leader_says_what_has_never_been() -> None:
    with pytest.raises(OffsetOutOfRange):
        asyncio.run(fetching_on(leads=True).fetch(fetched_at(11)))


def test_a_replica_that_lacks_records_answers_nobody() -> None:
    # It would say that there is nothing where ten records are.
    with pytest.raises(NotLeader):
        asyncio.run(fetching_on(leads=False, lacks="is empty").fetch(fetched_at(0)))


def found_at(fetching: Fetching, start: Start) -> Offset:
    return asyncio.run(fetching.find_offset("orders", 0, start))


def test_a_follower_finds_times_that_it_has_records_of() -> None:
    follower = fetching_on(leads=False)
    assert found_at(follower, Start(StartAt.TIMESTAMP, 7)) == 7
    assert found_at(follower, Start(StartAt.EARLIEST)) == 0


@pytest.mark.parametrize("start", [Start(StartAt.TIMESTAMP, 11), Start(StartAt.LATEST)])
def test_a_follower_does_not_know_what_lies_at_the_end(start: Start) -> None:
    # What it lacks yet may have been appended before that time.
    with pytest.raises(NotLeader):
        found_at(fetching_on(leads=False), start)
    assert found_at(fetching_on(leads=True), start) == END
