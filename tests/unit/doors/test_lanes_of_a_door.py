"""Single publishes that share calls: their order, their modes, and nobody pays for a neighbour."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from tests.on_a_loop import eventually, run

from angarium.api import Ack
from angarium.batch import Batch, encode
from angarium.doors.intake import lanes as lanes_of_a_door
from angarium.doors.intake.lanes import MERGED_BYTES, LaneKey, Lanes, Placed, Waiting
from angarium.doors.intake.outgoing import Outgoing, ProducerIdentity
from angarium.doors.intake.partitions import TopicShapes
from angarium.errors import InvalidArgument
from angarium.ids import Epoch, Offset, ProducerId, Sequence
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.ids import Buffer

KEY = LaneKey("orders", 0, None)
PRODUCER = ProducerIdentity(ProducerId(7), Epoch(0), Sequence(0))


class Log:
    """A partition that keeps calls, and refuses whatever holds a value it does not like."""

    def __init__(self) -> None:
        self.calls: list[tuple[DeliveryMode | None, list[list[bytes | None]]]] = []
        self.go = asyncio.Event()
        self.is_leader = True
        self._next = 0

    async def publish(
        self,
        topic: str,
        partition: int,
        batches: tuple[Buffer, ...],
        mode: DeliveryMode | None,
        layout: int | None = None,
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

    def begin(
        self,
        topic: str,
        partition: int,
        batches: tuple[Buffer, ...],
        mode: DeliveryMode | None,
        layout: int | None,
        answer: Callable[[tuple[Ack, ...] | Exception], None],
    ) -> bool:
        """Do the same and call back; a leader that is elsewhere has to be asked."""
        if not self.is_leader:
            return False
        values = [list(Batch.parse(one).values()) for one in batches]
        if self.go.is_set() and any(b"bad" in one for one in values):
            self.calls.append((mode, values))
            raise InvalidArgument("one of them is bad")
        work = asyncio.ensure_future(self.publish(topic, partition, batches, mode))
        work.add_done_callback(lambda done: answer(done.exception() or done.result()))  # type: ignore[arg-type]
        return True


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


@pytest.fixture(params=["by tasks", "by calling back", "by tasks after all"], autouse=True)
def way(request: pytest.FixtureRequest) -> str:
    """How the broker takes publishes; it makes no difference to anybody."""
    WAY[0] = request.param
    return WAY[0]


WAY = [""]


def opened(*, gathers: bool = False) -> tuple[Log, Lanes, Outcomes]:
    log = Log()
    log.is_leader = WAY[0] == "by calling back"
    begin = None if WAY[0] == "by tasks" else log.begin
    shapes = TopicShapes(cast("Any", None))
    return log, Lanes(log.publish, shapes, begin=begin, gathers=gathers), Outcomes()


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


@pytest.mark.parametrize("mode", [None, DeliveryMode.EVENTUAL])
def test_those_who_were_answered_together_are_waited_for_and_go_together(
    mode: DeliveryMode | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes_of_a_door, "gather_s", lambda _: 1e6)
    monkeypatch.setattr(lanes_of_a_door, "EARLY_PAUSE_SECONDS", 1e6)
    key = msgspec.structs.replace(KEY, mode=mode)

    async def check() -> None:
        log, lanes, outcomes = opened(gathers=True)
        log.go.set()
        for name in "abcd":
            lanes.publish(key, Outgoing(name.encode()), outcomes.of(name))
        await outcomes.all_of(4)
        for name in "efgh":
            lanes.publish(key, Outgoing(name.encode()), outcomes.of(name))
            await asyncio.sleep(0)
        await outcomes.all_of(8)
        assert [len(batches[0]) for _, batches in log.calls] == [4, 4]
        assert lanes.waiting_records == lanes.waiting_bytes == 0

    run(check())


def test_a_mistake_of_one_who_is_told_blocks_nobody_else() -> None:
    async def check() -> None:
        log, lanes, outcomes = opened()
        log.go.set()
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)

        def broken(_: Placed | Exception) -> None:
            raise ZeroDivisionError

        lanes.publish(KEY, Outgoing(b"x"), broken)
        await eventually(lambda: log.calls)
        await eventually(lambda: not lanes.waiting_bytes)
        lanes.publish(KEY, Outgoing(b"y"), outcomes.of("y"))
        await outcomes.all_of(1)

    run(check())


@pytest.mark.parametrize("mode", [None, DeliveryMode.PERFORMANCE])
def test_after_other_answers_a_lane_waits_as_long_as_they_took(
    mode: DeliveryMode | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes_of_a_door, "gather_s", lambda _: 0.0)
    monkeypatch.setattr(lanes_of_a_door, "EARLY_PAUSE_SECONDS", 1e6)
    key = msgspec.structs.replace(KEY, mode=mode)

    async def check() -> None:
        log, lanes, outcomes = opened(gathers=True)
        log.go.set()
        for name in "abcd":
            lanes.publish(key, Outgoing(b"x"), outcomes.of(name))
        await outcomes.all_of(4)
        lanes.publish(key, Outgoing(b"x"), outcomes.of("e"))
        await outcomes.all_of(5)  # though three have not come back

    run(check())
