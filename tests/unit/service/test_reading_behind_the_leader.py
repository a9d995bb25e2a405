"""A follower that has not got as far as somebody knows asks the leader instead of saying no."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from angarium.api import FetchRequest, Start, StartAt
from angarium.errors import NotLeader, OffsetOutOfRange
from angarium.ids import NodeId, Offset, RaftGroupId
from angarium.node.replicas import Replicas
from angarium.service.fetching import HEARD_OF_MS, READER_S, Fetching

if TYPE_CHECKING:
    from angarium.node.node import Node
    from angarium.service.topics import Topics

GROUP = RaftGroupId(1)
END = Offset(10)


class OneReplica:
    """Ten records, on a leader or a follower."""

    def __init__(self, *, leads: bool, lacks: str = "", has_uncommitted: bool = False) -> None:
        self.group = GROUP
        self.may_serve = leads
        self.has_uncommitted = has_uncommitted
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


def fetching_on(
    *, leads: bool, lacks: str = "", has_uncommitted: bool = False, leader: int | None = 2
) -> Fetching:
    """Return the fetching of a node from which no other one can be asked."""
    replica = OneReplica(leads=leads, lacks=lacks, has_uncommitted=has_uncommitted)
    host = SimpleNamespace(replicas={GROUP: replica})
    node: Any = SimpleNamespace(
        id=NodeId(1),
        leader_of=lambda _: leader,
        replicas=Replicas(cast("Node", SimpleNamespace(host=host))),
        catalog=SimpleNamespace(find=lambda _: None),
        config=SimpleNamespace(request_timeout_s=1.0),
        peers=SimpleNamespace(request=None),
        now=lambda: 0,
    )

    async def partition(*_: object) -> object:
        return SimpleNamespace(group=GROUP)

    async def asked(_: object) -> None:
        raise NotLeader("the leader would be asked")

    topics = SimpleNamespace(partition=partition, leader=asked)
    return Fetching(cast("Node", node), cast("Topics", topics))


def fetched_at(offset: int) -> FetchRequest:
    return FetchRequest(topic="orders", partition=0, offset=Offset(offset))


def test_a_follower_asks_the_leader_for_what_it_has_not_got_yet() -> None:
    with pytest.raises(NotLeader):
        asyncio.run(fetching_on(leads=False).fetch(fetched_at(11)))


def test_a_follower_answers_for_itself_up_to_its_end() -> None:
    assert asyncio.run(fetching_on(leads=False).fetch(fetched_at(10))).end_offset == END


def test_a_follower_asks_whether_what_it_has_more_is_committed() -> None:
    with pytest.raises(NotLeader):
        asyncio.run(fetching_on(leads=False, has_uncommitted=True).fetch(fetched_at(10)))
    ahead = fetching_on(leads=False, has_uncommitted=True)
    assert asyncio.run(ahead.fetch(fetched_at(9))).end_offset == END


@pytest.mark.parametrize("leader", [None, 1])
def test_where_nobody_leads_yet_a_replica_says_what_it_knows(leader: int | None) -> None:
    alone = fetching_on(leads=False, has_uncommitted=True, leader=leader)
    assert asyncio.run(alone.fetch(fetched_at(10))).end_offset == END


def test_a_leader_says_what_has_never_been() -> None:
    with pytest.raises(OffsetOutOfRange):
        asyncio.run(fetching_on(leads=True).fetch(fetched_at(11)))


def test_a_replica_that_lacks_records_answers_nobody() -> None:
    # It would say that there is nothing where ten records are.
    with pytest.raises(NotLeader):
        asyncio.run(fetching_on(leads=False, lacks="is empty").fetch(fetched_at(0)))


def test_whoever_waits_is_a_reader_and_for_a_while_whoever_was_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("angarium.service.fetching.time.monotonic", lambda: now)
    fetching = fetching_on(leads=False)
    assert not fetching.has_readers(GROUP)
    fetching.wait(GROUP, woken := lambda: None)
    assert fetching.has_readers(GROUP)
    fetching.stop_waiting(GROUP, woken)
    assert not fetching.has_readers(GROUP)
    fetching.wait(GROUP, woken)
    fetching.announce(GROUP)
    assert fetching.has_readers(GROUP), "it is back in a moment"
    now += READER_S
    assert not fetching.has_readers(GROUP)


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


@pytest.mark.parametrize("wait_ms", [1, 50, HEARD_OF_MS - 1])
def test_whoever_waits_too_short_to_hear_of_a_commit_is_sent_to_the_leader(wait_ms: int) -> None:
    """A heartbeat tells a follower what is committed, and may come later than that."""
    request = FetchRequest(topic="orders", partition=0, offset=END, wait_ms=wait_ms)
    with pytest.raises(NotLeader):
        asyncio.run(fetching_on(leads=False, has_uncommitted=True).fetch(request))
