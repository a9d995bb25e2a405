"""A follower that has not got as far as somebody knows asks the leader instead of saying no."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from angarium.api import FetchRequest, Start, StartAt
from angarium.errors import NotLeader, OffsetOutOfRange, TooStale
from angarium.ids import NodeId, Offset, RaftGroupId
from angarium.node.replicas import Replicas
from angarium.service.fetching import HEARD_OF_MS, READER_S, Fetching
from angarium.wire.operations import FetchAnswer, FetchHeader

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
    *,
    leads: bool,
    lacks: str = "",
    has_uncommitted: bool = False,
    leader: int | None = 2,
    regions: dict[int, Any] | None = None,
    request: Any = None,
) -> Fetching:
    """Return the fetching of a node from which no other one can be asked, unless by `request`."""
    regions = regions or {}
    replica = OneReplica(leads=leads, lacks=lacks, has_uncommitted=has_uncommitted)
    host = SimpleNamespace(replicas={GROUP: replica})
    node: Any = SimpleNamespace(
        id=NodeId(1),
        leader_of=lambda _: leader,
        replicas=Replicas(cast("Node", SimpleNamespace(host=host))),
        catalog=SimpleNamespace(find=lambda _: None, member=regions.get),
        config=SimpleNamespace(request_timeout_s=1.0, region="eu"),
        peers=SimpleNamespace(request=request, is_up=lambda node: node in regions),
        silence_ms=lambda _: 0 if leads else 70,
        round_trip_ms=lambda node: 80.0 if node == 3 else 1.0,
        now=lambda: 0,
    )

    async def partition(*_: object) -> object:
        return SimpleNamespace(group=GROUP, replicas=(NodeId(1), NodeId(2)), readers=(NodeId(3),))

    async def asked(_: object) -> NodeId:
        if request is not None and leader is not None:
            return NodeId(leader)
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


# --- regions ------------------------------------------------------------------------------------


def in_region(name: str) -> Any:
    return SimpleNamespace(labels=SimpleNamespace(region=name))


class Elsewhere:
    """Other nodes; each answers with where its log ends."""

    def __init__(self, end: int, *, fails: bool = False) -> None:
        self.asked: list[tuple[int, FetchHeader]] = []
        self.end = end
        self.fails = fails

    async def __call__(
        self, node: int, _: object, header: FetchHeader, *, timeout_s: float
    ) -> object:
        assert timeout_s > 0
        self.asked.append((node, header))
        if self.fails:
            raise NotLeader("nobody leads")
        answer = FetchAnswer(Offset(0), Offset(self.end), (), NodeId(node), "there", 5)
        return SimpleNamespace(read=lambda _: answer, payload=b"")


def test_a_node_without_a_replica_asks_the_nearest_one() -> None:
    others = Elsewhere(end=10)
    near = {2: in_region("us"), 3: in_region("eu")}
    fetching = fetching_on(leads=False, lacks="is empty", regions=near, request=others)
    result = asyncio.run(fetching.fetch(fetched_at(0)))
    assert [node for node, _ in others.asked] == [3], "the one in its region, not the leader"
    assert others.asked[0][1].forwarded
    assert (result.node, result.region, result.staleness_ms) == (3, "there", 5)
    near = {2: in_region("us"), 3: in_region("us")}
    fetching = fetching_on(leads=False, lacks="is empty", regions=near, request=others)
    asyncio.run(fetching.fetch(fetched_at(0)))
    assert others.asked[-1][0] == 2, "the one with the shorter way"


def test_a_forwarded_read_goes_to_the_leader_and_not_round_and_round() -> None:
    others = Elsewhere(end=10)
    near = {2: in_region("us"), 3: in_region("eu")}
    fetching = fetching_on(leads=False, lacks="is empty", regions=near, request=others)
    request = FetchRequest(topic="orders", partition=0, offset=Offset(0), forwarded=True)
    asyncio.run(fetching.fetch(request))
    assert [node for node, _ in others.asked] == [2]


def test_an_answer_says_who_served_and_how_old_it_may_be() -> None:
    result = asyncio.run(fetching_on(leads=False).fetch(fetched_at(3)))
    assert (result.node, result.region, result.staleness_ms) == (1, "eu", 70)
    assert asyncio.run(fetching_on(leads=True).fetch(fetched_at(3))).staleness_ms == 0


def test_a_leader_in_another_region_is_not_asked_about_the_very_end() -> None:
    far = {2: in_region("us")}
    follower = fetching_on(leads=False, has_uncommitted=True, regions=far)
    assert asyncio.run(follower.fetch(fetched_at(10))).end_offset == END
    near = {2: in_region("eu")}
    follower = fetching_on(leads=False, has_uncommitted=True, regions=near)
    with pytest.raises(NotLeader):
        asyncio.run(follower.fetch(fetched_at(10)))


def reading(**bounds: Any) -> FetchRequest:
    return FetchRequest(topic="orders", partition=0, offset=Offset(0), **bounds)


def test_a_reader_never_sees_less_than_it_knows_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("angarium.service.fetching.LAG_MS_MAX", 20)
    others = Elsewhere(end=13)
    follower = fetching_on(leads=False, request=others)
    assert asyncio.run(follower.fetch(reading(at_least=Offset(9)))).node == 1
    assert asyncio.run(follower.fetch(reading(at_least=Offset(12)))).node == 2
    leader = fetching_on(leads=True)
    assert asyncio.run(leader.fetch(reading(at_least=Offset(12)))).end_offset == END


def test_a_follower_that_gets_there_in_time_answers_for_itself() -> None:
    async def main() -> None:
        follower = fetching_on(leads=False)
        replica: Any = follower._node.replicas.full(GROUP)
        asked = asyncio.create_task(follower.fetch(reading(at_least=Offset(12))))
        await asyncio.sleep(0)
        replica.end_offset = Offset(13)
        follower.announce(GROUP)
        assert (await asked).node == 1

    asyncio.run(main())


def test_a_bound_is_kept_by_asking_the_leader_where_it_ends() -> None:
    others = Elsewhere(end=10)
    follower = fetching_on(leads=False, request=others)

    async def main() -> None:
        first = await follower.fetch(reading(max_staleness_ms=10_000))
        assert (first.node, len(others.asked)) == (1, 1), "its records stay where they are"
        assert others.asked[0][1].fresh, "a leader that makes sure that it leads"
        second = await follower.fetch(reading(max_staleness_ms=10_000))
        assert second.staleness_ms >= 0
        assert len(others.asked) == 1, "it is known for a while"
        nothing_older = await follower.fetch(reading(max_staleness_ms=0))
        assert (nothing_older.node, len(others.asked)) == (2, 3), "that takes the leader itself"

    asyncio.run(main())


def test_what_lacks_records_the_leader_has_is_not_called_fresh(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("angarium.service.confirming.ASK_S_MAX", 0.05)
    others = Elsewhere(end=13)
    follower = fetching_on(leads=False, request=others)
    result = asyncio.run(follower.fetch(reading(max_staleness_ms=10_000)))
    assert result.node == 2, "the leader answers instead"


def test_if_nobody_is_new_enough_that_is_said() -> None:
    follower = fetching_on(leads=False, request=Elsewhere(end=10, fails=True))
    with pytest.raises(TooStale, match="does not answer"):
        asyncio.run(follower.fetch(reading(max_staleness_ms=100)))
    with pytest.raises(TooStale):
        asyncio.run(follower.fetch(reading(max_staleness_ms=100, forwarded=True)))
