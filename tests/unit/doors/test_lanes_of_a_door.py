"""Single publishes that share calls: their order, their modes, and nobody pays for a neighbour."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.on_a_loop import eventually, run

from angarium.api import Ack
from angarium.batch import Batch, encode
from angarium.doors.intake.lanes import (
    GATHER_FROM,
    GATHER_SECONDS_MAX,
    MERGED_BYTES,
    Lane,
    LaneKey,
    Lanes,
    Placed,
    Waiting,
)
from angarium.doors.intake.outgoing import Outgoing, ProducerIdentity
from angarium.doors.intake.partitions import TopicShapes
from angarium.errors import InvalidArgument
from angarium.ids import Epoch, Offset, ProducerId, Sequence
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from angarium.ids import Buffer

KEY = LaneKey("orders", 0, None)
PRODUCER = ProducerIdentity(ProducerId(7), Epoch(0), Sequence(0))


class Log:
    """A partition that keeps calls, and refuses whatever holds a value it does not like."""

    def __init__(self) -> None:
        self.calls: list[tuple[DeliveryMode | None, list[list[bytes | None]]]] = []
        self.go = asyncio.Event()
        self._next = 0

    async def publish(
        self, topic: str, partition: int, batches: tuple[Buffer, ...], mode: DeliveryMode | None
    ) -> tuple[Ack, ...]:
        values = [list(Batch.parse(one).values()) for one in batches]
        self.calls.append((mode, values))
        await self.go.wait()
        if any(b"bad" in one for one in values):
            raise InvalidArgument("one of them is bad")
        acks = []
        for one in values:
            base = Offset(self._next)
            self._next += len(one)
            acks.append(
                Ack(
                    topic=topic,
                    partition=partition,
                    mode=mode or DeliveryMode.CONSISTENT,
                    base_offset=base,
                    next_offset=Offset(self._next),
                )
            )
        return tuple(acks)


class Outcomes:
    """What became of publishes, in the order in which they were told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def of(self, name: str) -> Any:
        def done(outcome: Placed | Exception) -> None:
            if isinstance(outcome, Exception):
                self.told.append((name, type(outcome).__name__))
            else:
                assert outcome.ack.base_offset is not None
                self.told.append((name, outcome.ack.base_offset + outcome.row))

        return done

    async def all_of(self, count: int) -> None:
        await eventually(lambda: len(self.told) >= count)


def opened() -> tuple[Log, Lanes, Outcomes]:
    log = Log()
    return log, Lanes(log.publish, TopicShapes(cast("Any", None)), gathers=False), Outcomes()


async def begun(log: Log, lanes: Lanes, outcomes: Outcomes) -> None:
    """Have one call under way, so that whatever comes now waits for it."""
    lanes.publish(KEY, Outgoing(b"first"), outcomes.of("first"))
    await eventually(lambda: log.calls)


def test_a_record_that_is_refused_takes_no_neighbour_with_it() -> None:
    async def check() -> None:
        log, lanes, outcomes = opened()
        await begun(log, lanes, outcomes)
        for value in (b"a", b"bad", b"b"):
            lanes.publish(KEY, Outgoing(value), outcomes.of(value.decode()))
        log.go.set()
        await outcomes.all_of(4)
        assert outcomes.told == [("first", 0), ("a", 1), ("bad", "InvalidArgument"), ("b", 2)]
        # Together first, as they waited together; then each on its own account.
        sent = [values for _, values in log.calls[1:]]
        assert sent == [[[b"a", b"bad", b"b"]], [[b"a"]], [[b"bad"]], [[b"b"]]]
        assert lanes.waiting_bytes == 0

    run(check())


def test_what_has_batches_or_an_identity_keeps_them_and_its_place() -> None:
    async def check() -> None:
        log, lanes, outcomes = opened()
        await begun(log, lanes, outcomes)
        lanes.publish(KEY, Outgoing(b"a"), outcomes.of("a"))
        lanes.publish(KEY, Outgoing(b"b"), outcomes.of("b"))
        batches = (encode([b"c", b"d"]), encode([b"e"]))
        lanes.queue(KEY, Waiting(None, batches, 100, None, outcomes.of("batches")))
        lanes.publish(KEY, Outgoing(b"f"), outcomes.of("f"), PRODUCER)
        lanes.publish(KEY, Outgoing(b"g"), outcomes.of("g"))
        log.go.set()
        await outcomes.all_of(6)
        assert log.calls[1] == (None, [[b"a", b"b"], [b"c", b"d"], [b"e"], [b"f"], [b"g"]])
        assert outcomes.told == [
            *(("first", 0), ("a", 1), ("b", 2), ("batches", 3), ("f", 6), ("g", 7)),
        ]

    run(check())


def test_a_record_with_large_headers_goes_alone_instead_of_being_refused() -> None:
    async def check() -> None:
        log, lanes, outcomes = opened()
        await begun(log, lanes, outcomes)
        # As many bytes as a shared batch has, and as many names as make it larger than it seems.
        heavy = Outgoing(b"h", None, (("name", bytes(MERGED_BYTES)),))
        many = Outgoing(b"m", None, tuple((str(n), b"") for n in range(20_000)))
        for name, record in (("a", Outgoing(b"a")), ("heavy", heavy), ("many", many)):
            lanes.publish(KEY, record, outcomes.of(name))
        lanes.publish(KEY, Outgoing(b"b"), outcomes.of("b"))
        log.go.set()
        await outcomes.all_of(5)
        assert outcomes.told == [("first", 0), ("a", 1), ("heavy", 2), ("many", 3), ("b", 4)]

    run(check())


def test_modes_of_one_lane_take_turns_in_order() -> None:
    async def check() -> None:
        log, lanes, outcomes = opened()
        await begun(log, lanes, outcomes)
        eventual = DeliveryMode.EVENTUAL
        for name, mode in (("a", None), ("b", None), ("c", eventual), ("d", None)):
            waiting = Waiting(Outgoing(name.encode()), (), 100, mode, outcomes.of(name))
            lanes.queue(KEY, waiting)
        log.go.set()
        await outcomes.all_of(5)
        assert [name for name, _ in outcomes.told] == ["first", "a", "b", "c", "d"]
        assert log.calls[1:] == [
            (None, [[b"a", b"b"]]),
            (eventual, [[b"c"]]),
            (None, [[b"d"]]),
        ]

    run(check())


def a_record() -> Waiting:
    return Waiting(Outgoing(b"x"), (), 100, None, lambda _: None)


def test_a_lane_waits_no_longer_than_until_all_are_back() -> None:
    async def check() -> None:
        lane = Lane()
        gathering = asyncio.create_task(lane.gathered(2, seconds_max=1_000, pause_s=1_000))
        await asyncio.sleep(0)
        lane.add(a_record())
        await asyncio.sleep(0)
        assert not gathering.done()
        lane.add(a_record())
        await gathering

    run(check())


def test_a_lane_waits_while_they_come_back_and_no_longer() -> None:
    async def check() -> None:
        lane, loop = Lane(), asyncio.get_running_loop()

        def come(count: int) -> None:
            lane.add(a_record())
            if count:
                loop.call_soon(come, count - 1)  # so that one comes in every turn of the loop

        loop.call_soon(come, 500)
        await lane.gathered(1_000, seconds_max=1_000, pause_s=0.001)
        assert len(lane.waiting) == 501

    run(check())


def test_a_lane_does_not_wait_for_ever_for_those_who_keep_coming() -> None:
    async def check() -> None:
        lane, loop = Lane(), asyncio.get_running_loop()
        is_over = False

        def come() -> None:
            lane.add(a_record())
            if not is_over:
                loop.call_soon(come)

        come()
        await lane.gathered(1 << 40, seconds_max=0.005, pause_s=0.001)
        is_over = True

    run(check())


@pytest.mark.parametrize(
    ("mode", "most"),
    [
        (DeliveryMode.EVENTUAL, GATHER_SECONDS_MAX),
        (DeliveryMode.PERFORMANCE, 0.0),
        (DeliveryMode.CONSISTENT, 0.0),
        (None, 0.0),
    ],
)
def test_after_early_answers_a_lane_waits_for_as_long_as_its_clients_take(
    mode: DeliveryMode | None, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How long a call took says nothing of that if it was answered before anything was done.
    waits: list[float] = []

    async def gathered(_: Lane, count: int, *, seconds_max: float, pause_s: float) -> None:
        assert count == GATHER_FROM
        assert pause_s <= seconds_max
        waits.append(seconds_max)

    async def check() -> None:
        log, outcomes = Log(), Outcomes()
        log.go.set()
        lanes = Lanes(log.publish, TopicShapes(cast("Any", None)))
        key = KEY._replace(mode=mode)
        for number in range(GATHER_FROM):
            lanes.publish(key, Outgoing(b"x"), outcomes.of(str(number)))
        await outcomes.all_of(GATHER_FROM)
        await eventually(lambda: waits)

    monkeypatch.setattr(Lane, "gathered", gathered)
    monkeypatch.setattr("angarium.doors.intake.lanes.GATHER_SHARE", 0.0)
    run(check())
    assert waits == [most]
