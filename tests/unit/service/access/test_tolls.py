"""What principals use of their quotas: who waits, who is refused, and what is told."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from angarium.api.access import ANONYMOUS, Principal, Proof
from angarium.api.quotas import QuotaKind
from angarium.errors import QuotaExceeded, Unreachable
from angarium.ids import NodeId
from angarium.security.quotas import RATES, Limit
from angarium.security.shares import Use
from angarium.service.access import sharing as sharing_module
from angarium.service.access import tolls as tolls_module
from angarium.service.access.presences import Presences
from angarium.service.access.sharing import Sharing
from angarium.service.access.tolls import DELAY_S_MAX, Toll, Tolls, key_of
from angarium.telemetry.throttling import ThrottleMeters
from angarium.wire import packed
from angarium.wire.operations.quotas import QuotaUseAnswer, UsedHere

ALICE = Principal(name="alice", proof=Proof.PASSWORD)


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def limits(**amounts: int) -> dict[QuotaKind, Limit]:
    return {QuotaKind(kind): Limit(amount, "a test") for kind, amount in amounts.items()}


def made(**amounts: int) -> tuple[Toll, Clock, ThrottleMeters]:
    clock, meters = Clock(), ThrottleMeters()
    toll = Tolls(meters, clock).of(ALICE, limits(**amounts))
    assert toll is not None
    return toll, clock, meters


def test_backpressure_comes_first_and_a_refusal_with_the_time_to_come_again_then() -> None:
    toll, clock, meters = made(requests=10)
    rests = [toll.take_request() for _ in range(20)]
    assert rests[:10] == [0.0] * 10
    assert rests[10] == pytest.approx(0.1)
    assert rests[19] == pytest.approx(1.0)
    toll.take_request()
    with pytest.raises(QuotaExceeded, match="'alice' has used up 10 a second") as refused:
        toll.take_request()
    assert refused.value.limit == "requests"
    assert refused.value.retry_after == pytest.approx(1.1)
    clock.now += refused.value.retry_after
    assert toll.begin_request() == 0
    assert meters.refused[QuotaKind.REQUESTS] == 1
    assert meters.delayed[QuotaKind.REQUESTS] == 11
    assert meters.seconds[QuotaKind.REQUESTS] == pytest.approx(sum(rests) + DELAY_S_MAX)


def test_a_publish_costs_bytes_and_records_and_the_scarcer_one_decides() -> None:
    toll, clock, meters = made(bytes_in=1_000, publishes=10)
    toll.take_publish(100, 11)
    assert toll.rest_s() == pytest.approx(0.1)
    clock.now += 0.1
    toll.take_publish(1_400, 1)
    assert toll.rest_s() == pytest.approx(0.4)
    assert meters.delayed[QuotaKind.PUBLISHES] == meters.delayed[QuotaKind.BYTES_IN] == 1
    assert toll.must_wait()
    clock.now += 0.5
    assert not toll.must_wait()


def test_what_came_to_nothing_and_is_tried_again_is_charged_once() -> None:
    toll, _, _ = made(bytes_in=1_000)
    for _ in range(50):
        toll.take_publish(900, 1)
        toll.take_back(900, 1)
    assert not toll.must_wait()


def test_another_limit_counts_at_once_and_shares_stay_in_proportion() -> None:
    toll, clock, _ = made(bytes_in=1_000)
    toll.set_share(QuotaKind.BYTES_IN, 500)
    toll.set_limits(limits(bytes_in=2_000, requests=5), nodes=5)
    assert toll.share(QuotaKind.BYTES_IN) == 1_000
    assert toll.share(QuotaKind.REQUESTS) == 1, "an equal share to begin with"
    toll.take_publish(10_000, 1)
    toll.set_limits(limits(requests=5))
    assert not toll.must_wait()
    assert toll.share(QuotaKind.BYTES_IN) is None
    clock.now += 1


def test_who_has_no_limit_has_no_toll_and_everybody_one_of_its_own() -> None:
    tolls = Tolls(ThrottleMeters(), Clock())
    assert tolls.of(ALICE, {}) is None
    mine = tolls.of(ALICE, limits(requests=1))
    token = Principal(name="alice", proof=Proof.TOKEN, token="ci")
    assert tolls.of(token, limits(requests=1)) is mine, "one user, whatever the proof"
    claimed = Principal(name="alice", proof=Proof.JWT)
    other = tolls.of(claimed, limits(requests=1))
    assert mine is not None
    assert other is not None
    assert other is not mine
    for _ in range(3):
        mine.begin_request()
    assert other.begin_request() == 0


def test_of_very_many_principals_the_last_ones_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tolls_module, "TOLLS_MAX", 3)
    tolls = Tolls(ThrottleMeters(), Clock())
    for number in range(10):
        tolls.of(Principal(name=f"user {number}"), limits(requests=1))
    tolls.of(Principal(name="user 7"), limits(requests=1))
    tolls.of(Principal(name="user 10"), limits(requests=1))
    assert [key for key, _ in tolls.items()] == ["user:user 9", "user:user 7", "user:user 10"]


def test_those_who_wait_go_in_the_order_in_which_they_came() -> None:
    """Timers that end together must not let a later publish of a producer overtake."""
    toll, clock, _ = made(bytes_in=1_000)
    went: list[int] = []

    async def publish(number: int) -> None:
        await toll.pay_publish(1 if number else 1_001, 1)
        went.append(number)

    async def main() -> None:
        # The clock stands: all but the first wait about as long, which is no time at all here.
        async with asyncio.TaskGroup() as tasks:
            for number in range(20):
                tasks.create_task(publish(number))

    asyncio.run(main())
    assert went == list(range(20))
    assert toll.must_wait()
    clock.now += 1
    assert not toll.must_wait()


def test_one_who_gives_up_while_it_waits_holds_nobody_up() -> None:
    toll, _, _ = made(bytes_in=1_000)
    went: list[str] = []

    async def publish(name: str) -> None:
        await toll.pay_publish(1, 1)
        went.append(name)

    async def main() -> None:
        toll.take_publish(1_005, 1)
        first = asyncio.create_task(publish("first"))
        second = asyncio.create_task(publish("second"))
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert toll._last is None

    asyncio.run(main())
    assert went == ["second"]


def test_streams_are_slowed_down_and_never_refused() -> None:
    toll, clock, meters = made(bytes_out=1_000)

    async def main() -> None:
        toll.read(1_002)
        await toll.before_reading()
        toll.read(100_000)
        with pytest.raises(QuotaExceeded):
            await toll.before_reading()
        waiting = asyncio.create_task(toll.until_paid())
        await asyncio.sleep(0)
        assert not waiting.done()
        clock.now += 200
        await waiting

    asyncio.run(main())
    assert meters.refused[QuotaKind.BYTES_OUT] == 1
    assert meters.delayed[QuotaKind.BYTES_OUT] == 2


def test_metrics_have_a_series_for_each_kind_and_no_more() -> None:
    toll, _, meters = made(requests=1)
    for _ in range(3):
        toll.take_request()
    with pytest.raises(QuotaExceeded):
        toll.take_request()
    families = {one.name: one for one in meters.families()}
    assert set(families) == {
        "angarium_throttled_seconds_total",
        "angarium_throttled_total",
        "angarium_quota_refusals_total",
    }
    for family in families.values():
        assert [sample.labels for sample in family.samples] == [
            (("kind", kind.value),) for kind in QuotaKind
        ]


# --- places ---------------------------------------------------------------------------------------


def test_places_are_counted_for_everybody_and_refused_where_a_quota_says_so() -> None:
    tolls = Tolls(ThrottleMeters(), Clock())
    presences = Presences(tolls)
    leave = presences.enter(ALICE)
    assert presences.by_key() == {"user:alice": 1}
    toll = tolls.of(ALICE, limits(connections=3))
    assert toll is not None
    second = presences.enter(ALICE)
    toll.connections_elsewhere = 1
    with pytest.raises(QuotaExceeded, match="has used up 3"):
        presences.enter(ALICE)
    second()
    second()
    third = presences.enter(ALICE)
    third()
    leave()
    assert presences.by_key() == {}
    presences.enter(ANONYMOUS)
    assert presences.by_key() == {}, "everybody is nobody to count"


# --- shares ---------------------------------------------------------------------------------------


class Peers:
    """Other nodes, that tell what they are told to."""

    def __init__(self) -> None:
        self.told: dict[NodeId, QuotaUseAnswer | None] = {}
        self.asked = 0

    @property
    def ids(self) -> list[NodeId]:
        return list(self.told)

    def is_up(self, node: NodeId) -> bool:
        return node in self.told

    async def request(self, node: NodeId, *_: object, **__: object) -> Any:
        self.asked += 1
        answer = self.told[node]
        if answer is None:
            raise Unreachable("silent")
        content = packed(answer)
        return SimpleNamespace(unpack=lambda kind: _unpacked(content, kind))


def _unpacked(content: Any, kind: Any) -> Any:
    import msgspec

    return msgspec.msgpack.decode(content, type=kind)


def sharing(**amounts: int) -> tuple[Sharing, Toll, Peers, Clock]:
    clock = Clock()
    tolls, peers = Tolls(ThrottleMeters(), clock), Peers()
    toll = tolls.of(ALICE, limits(**amounts))
    assert toll is not None
    node = cast("Any", SimpleNamespace(peers=peers))
    return Sharing(node, tolls, Presences(tolls).by_key), toll, peers, clock


def test_nobody_is_asked_while_nothing_is_used_and_the_shares_are_equal() -> None:
    found, toll, peers, _ = sharing(bytes_in=900)
    peers.told = {NodeId(2): QuotaUseAnswer(), NodeId(3): QuotaUseAnswer()}
    asyncio.run(found.look(1.0))
    assert peers.asked == 0
    assert toll.share(QuotaKind.BYTES_IN) == pytest.approx(300)
    assert found.used_here() == QuotaUseAnswer()


def test_what_is_used_here_and_nowhere_else_may_be_used_here() -> None:
    found, toll, peers, _ = sharing(bytes_in=900)
    peers.told = {NodeId(2): QuotaUseAnswer(), NodeId(3): None}
    toll.take_publish(300, 1)
    asyncio.run(found.look(1.0))
    assert peers.asked == 2
    assert toll.share(QuotaKind.BYTES_IN) == pytest.approx(900 * (0.9 + 0.1 / 3))
    (told,) = found.used_here().used
    assert (told.key, told.rates[QuotaKind.BYTES_IN]) == ("user:alice", 150.0)


def test_what_others_use_is_theirs_and_believed_for_a_while_when_they_fall_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, toll, peers, _ = sharing(bytes_in=900)
    theirs = QuotaUseAnswer((UsedHere("user:alice", {QuotaKind.BYTES_IN: 300.0}, (), 4),))
    peers.told = {NodeId(2): theirs}
    toll.take_publish(600, 1)
    asyncio.run(found.look(1.0))
    assert toll.share(QuotaKind.BYTES_IN) == pytest.approx(450)
    assert toll.connections_elsewhere == 4
    assert found.used_by(ALICE)[QuotaKind.BYTES_IN] == pytest.approx(600)
    assert found.used_by(ALICE)[QuotaKind.CONNECTIONS] == 4
    peers.told = {NodeId(2): None}
    toll.take_publish(600, 1)
    asyncio.run(found.look(1.0))
    # What was used here is measured anew (450 a second now), what there is remembered.
    assert toll.share(QuotaKind.BYTES_IN) == pytest.approx(45 + 810 * 450 / 750)
    monkeypatch.setattr(sharing_module, "KNOWN_S_MAX", 0.0)
    asyncio.run(found.look(1.0))
    assert toll.share(QuotaKind.BYTES_IN) == pytest.approx(900 * 0.95)
    peers.told = {}
    asyncio.run(found.look(1.0))
    assert toll.share(QuotaKind.BYTES_IN) == 900


def test_a_share_that_was_not_enough_is_told_to_have_been_so() -> None:
    found, toll, _, _ = sharing(requests=2)
    for _ in range(3):
        toll.take_request()
    asyncio.run(found.look(1.0))
    (told,) = found.used_here().used
    assert told.pressed == (QuotaKind.REQUESTS,)
    assert toll.uses[QuotaKind.REQUESTS] == Use(1.5, is_pressed=True)
    asyncio.run(found.look(1.0))
    assert toll.uses[QuotaKind.REQUESTS] == Use(0.75, is_pressed=False)
    assert set(toll.uses) == set(RATES)


def test_nodes_call_a_user_alike_and_a_claimed_name_otherwise() -> None:
    assert key_of(ALICE) == key_of(Principal(name="alice", proof=Proof.CERTIFICATE))
    assert key_of(Principal(name="alice", proof=Proof.JWT)) == "jwt:alice"
