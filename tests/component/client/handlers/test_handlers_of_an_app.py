"""An app calls handlers with the records of a group, and settles them."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import pytest
from tests.component.client.groups.fake_group import GROUP, fake_group
from tests.component.client.harness import settings

from angarium import App, Client, GroupRecord, Reject, Retry
from angarium.errors import InvalidArgument, PreconditionFailed
from angarium.kinds import GroupKind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.component.client.groups.fake_group import FakeGroup
    from tests.component.wire.running import Runner


class Order(msgspec.Struct):
    id: int
    drink: str = "tea"


@asynccontextmanager
async def prepared(values: list[bytes], **choices: Any) -> AsyncIterator[tuple[FakeGroup, App]]:
    """A group with records to handle, and an app that has nothing registered yet."""
    async with fake_group(**choices) as group:
        addresses = group.cluster.addresses
        async with Client(*addresses, settings=settings()) as client:
            if values:
                await client.publish_batch(
                    "t", values, keys=[b"k%d" % n for n in range(len(values))]
                )
        yield group, App(*addresses, settings=settings())


@asynccontextmanager
async def at_work(app: App) -> AsyncIterator[None]:
    serving = asyncio.create_task(app.serve())
    try:
        yield
    finally:
        app.stop()
        async with asyncio.timeout(60):
            await serving


def acked(group: FakeGroup, count: int) -> Callable[[], bool]:
    return lambda: len(group.acked) == count


def test_a_value_comes_in_the_shape_that_is_asked_for(run: Runner) -> None:
    async def story() -> None:
        async with prepared([b'{"id": 1}', b'{"id": 2, "drink": "cocoa"}']) as (group, app):
            seen: list[Any] = []

            @app.subscriber("t", group=GROUP)
            async def handle(order: Order, record: GroupRecord, client: Client) -> None:
                assert client is app.client
                seen.append((record.offset, order))

            async with at_work(app):
                await group.until(acked(group, 2))
            assert seen == [(0, Order(1)), (1, Order(2, "cocoa"))]

    run(story())


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (bytes, b"\xff", b"\xff"),
        (str, "tee für zwei".encode(), "tee für zwei"),
        (dict[str, int], b'{"a": 1}', {"a": 1}),
        (Any, b"as it is", b"as it is"),
    ],
)
def test_simple_values(run: Runner, hint: Any, value: bytes, expected: Any) -> None:
    async def story() -> None:
        async with prepared([value]) as (group, app):
            seen: list[Any] = []

            def handle(content: Any) -> None:
                seen.append(content)

            handle.__annotations__["content"] = hint
            app.subscriber("t", group=GROUP)(handle)
            async with at_work(app):
                await group.until(acked(group, 1))
            assert seen == [expected]

    run(story())


def test_a_plain_function_runs_in_a_thread(run: Runner) -> None:
    async def story() -> None:
        async with prepared([b"1", b"2", b"3"]) as (group, app):
            meeting = threading.Barrier(3, timeout=60)
            threads = set()

            @app.subscriber("t", group=GROUP, concurrency=3)
            def handle(record) -> None:  # type: ignore[no-untyped-def]
                assert record.value in (b"1", b"2", b"3")
                threads.add(threading.current_thread().name)
                meeting.wait()

            async with at_work(app):
                await group.until(acked(group, 3))
            assert len(threads) == 3

    run(story())


def test_so_many_are_worked_on_at_a_time(run: Runner) -> None:
    async def story() -> None:
        async with prepared([b"x"] * 40) as (group, app):
            now = most = 0

            @app.subscriber("t", group=GROUP, concurrency=8)
            async def handle(_: bytes) -> None:
                nonlocal now, most
                now += 1
                most = max(most, now)
                await asyncio.sleep(0.005)
                now -= 1

            async with at_work(app):
                await group.until(acked(group, 40))
            assert most == 8

    run(story())


def test_an_exception_is_the_reason_of_a_failure(run: Runner) -> None:
    async def story() -> None:
        async with prepared([b"1", b"not json"]) as (group, app):

            @app.subscriber("t", group=GROUP)
            async def handle(number: int, record: GroupRecord) -> None:
                if record.attempt == 1:
                    raise ValueError("no teapot")
                if record.attempt == 2:
                    raise Retry("later", delay=0.25)

            async with at_work(app):
                await group.until(lambda: acked(group, 1)() and len(group.reasons) > 5)
            assert group.reasons[0] == "ValueError: no teapot"
            assert "later" in group.reasons
            assert 250 in group.delays
            assert any(reason.startswith("DecodeError: ") for reason in group.reasons)

    run(story())


def test_an_answer_is_published_before_the_ack(run: Runner) -> None:
    async def story() -> None:
        async with prepared([b'{"id": 7}', b'{"id": 8}']) as (group, app):
            group.cluster.add_topic("receipts")

            @app.subscriber("t", group=GROUP, publish_to="receipts")
            async def handle(order: Order) -> dict[str, int] | None:
                return {"paid": order.id} if order.id == 7 else None

            async with at_work(app):
                await group.until(acked(group, 2))
            (receipt,) = group.cluster.topic("receipts").partitions[0].records()
            assert (receipt.key, receipt.value) == (b"k0", b'{"paid":7}')

    run(story())


def test_a_stream_keeps_its_order_whatever_the_concurrency(run: Runner) -> None:
    async def story() -> None:
        async with prepared([], kind=GroupKind.STREAM, partitions=3) as (group, app):
            async with Client(*group.cluster.addresses, settings=settings()) as client:
                for partition in range(3):
                    await client.publish_batch("t", [b"x"] * 50, partition=partition)
            seen: dict[int, list[int]] = {0: [], 1: [], 2: []}
            failed = []

            @app.subscriber("t", group=GROUP, kind="stream", concurrency=8)
            async def handle(record: GroupRecord) -> None:
                assert record.offset is not None
                if record.offset == 20 and record.attempt == 1:
                    failed.append(record.partition)
                    raise ValueError("not yet")
                await asyncio.sleep(0)
                seen[record.partition].append(record.offset)

            async with at_work(app):
                await group.until(acked(group, 150))
            assert seen == {partition: list(range(50)) for partition in range(3)}
            assert sorted(failed) == [0, 1, 2]

    run(story())


def test_stopping_finishes_what_is_being_worked_on(run: Runner) -> None:
    async def story() -> None:
        async with prepared([b"x"] * 10) as (group, app):
            begun, may_end, hooks = asyncio.Event(), asyncio.Event(), []
            app.on_start(lambda: hooks.append("start"))

            @app.on_stop
            async def stop() -> None:
                hooks.append("stop")

            @app.subscriber("t", group=GROUP, concurrency=2)
            async def handle(_: bytes) -> None:
                begun.set()
                await may_end.wait()

            serving = asyncio.create_task(app.serve())
            await begun.wait()
            app.stop()
            may_end.set()
            await serving
            assert len(group.acked) == 2
            await group.until(lambda: not group.leases)
            assert hooks == ["start", "stop"]

    run(story())


def test_a_second_stop_does_not_wait(run: Runner) -> None:
    async def story() -> None:
        async with prepared([b"x"]) as (group, app):
            begun = asyncio.Event()

            @app.subscriber("t", group=GROUP)
            async def handle(_: bytes) -> None:
                begun.set()
                await asyncio.Event().wait()

            serving = asyncio.create_task(app.serve())
            await begun.wait()
            app.stop()
            app.stop()
            async with asyncio.timeout(60):
                await serving
            assert not group.acked

    run(story())


def test_a_signal_drains(run: Runner) -> None:
    async def story() -> None:
        async with prepared([b"x"]) as (group, app):

            @app.subscriber("t", group=GROUP)
            async def handle(_: bytes) -> None:
                os.kill(os.getpid(), signal.SIGTERM)

            async with asyncio.timeout(60):
                await app.serve(signals=True)
            assert len(group.acked) == 1

    run(story())


def test_a_consumer_that_breaks_ends_the_app(run: Runner) -> None:
    async def story() -> None:
        async with prepared([]) as (group, app):
            group.closed = PreconditionFailed("this group is of another kind")

            @app.subscriber("t", group=GROUP)
            async def handle(_: bytes) -> None: ...

            with pytest.raises(PreconditionFailed):
                await app.serve()

    run(story())


def test_a_topic_that_is_not_there_is_waited_for_while_others_are_worked_on(
    run: Runner, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with prepared([b"now"]) as (group, app):
            seen: list[bytes] = []

            @app.subscriber("later", group=GROUP)
            async def wait_for_it(value: bytes) -> None:
                seen.append(value)

            @app.subscriber("t", group=GROUP)
            async def handle(value: bytes) -> None:
                seen.append(value)

            async with at_work(app):
                await group.until(lambda: seen == [b"now"])
                await group.until(lambda: "there is no topic 'later'" in caplog.text)
                group.cluster.add_topic("later")
                await app.client.publish("later", b"then")
                await group.until(lambda: seen == [b"now", b"then"])
            waits = [one for one in caplog.messages if "wait_for_it waits" in one]
            assert len(waits) == 1

    run(story())


def test_an_app_that_waits_for_a_topic_can_be_stopped(run: Runner) -> None:
    async def story() -> None:
        async with prepared([]) as (_, app):

            @app.subscriber("nowhere", group=GROUP)
            async def handle(_: bytes) -> None: ...

            async with at_work(app):
                await asyncio.sleep(0)

    run(story())


def test_an_app_makes_its_topics_if_it_is_told_to(run: Runner) -> None:
    async def story() -> None:
        async with prepared([]) as (group, _):
            app = App(*group.cluster.addresses, settings=settings(), create_topics=True)

            @app.subscriber("made", group=GROUP)
            async def handle(_: bytes) -> None: ...

            async with at_work(app):
                await group.until(lambda: "made" in group.cluster.topics and group.opened)

    run(story())


def test_what_is_rejected_is_not_tried_again(run: Runner) -> None:
    async def story() -> None:
        async with prepared([b"bad", b"good"]) as (group, app):
            attempts: list[int] = []

            @app.subscriber("t", group=GROUP)
            async def handle(value: bytes, record: GroupRecord) -> None:
                if value == b"bad":
                    attempts.append(record.attempt)
                    raise Reject("no such order")

            async with at_work(app):
                await group.until(acked(group, 2))
            assert attempts == [1]
            assert group.buried == {("t", 0, 0): "no such order"}

    run(story())


@pytest.mark.parametrize("is_async", [True, False])
def test_a_failure_is_logged_with_the_place_in_the_handler(
    run: Runner, caplog: pytest.LogCaptureFixture, *, is_async: bool
) -> None:
    def divide() -> None:
        _ = 1 / 0

    async def handle_async(_: bytes) -> None:
        divide()

    def handle_plain(_: bytes) -> None:
        divide()

    async def story() -> None:
        async with prepared([b"x"]) as (group, app):
            app.subscriber("t", group=GROUP)(handle_async if is_async else handle_plain)
            async with at_work(app):
                await group.until(lambda: group.reasons)

    run(story())
    assert "_ = 1 / 0" in caplog.text
    assert 'handler.py", line' not in caplog.text
    assert "concurrent/futures" not in caplog.text


def test_a_value_that_does_not_fit_is_told_without_a_traceback(
    run: Runner, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with prepared([b"no json"]) as (group, app):

            @app.subscriber("t", group=GROUP)
            async def handle(_: int) -> None: ...

            async with at_work(app):
                await group.until(lambda: group.reasons)

    run(story())
    assert "DecodeError" in caplog.text
    assert "Traceback" not in caplog.text


def test_models_of_pydantic_come_in_and_go_out(run: Runner) -> None:
    pydantic = pytest.importorskip("pydantic")
    model: Any = pydantic.create_model("Bill", id=(int, ...), sum=(float, 1.5))

    async def story() -> None:
        async with prepared([b'{"id": 7}']) as (group, app):
            group.cluster.add_topic("paid")

            async def one(bill: Any) -> Any:
                return {"bill": bill}

            async def many(bills: Any) -> Any: ...

            one.__annotations__["bill"] = model
            many.__annotations__["bills"] = list[model]
            app.subscriber("t", group=GROUP, publish_to="paid")(one)
            app.subscriber("t", group="other")(many)
            del app.handlers[1]
            async with at_work(app):
                await group.until(acked(group, 1))
            (paid,) = group.cluster.topics["paid"].partitions[0].values()
            assert msgspec.json.decode(paid or b"") == {"bill": {"id": 7, "sum": 1.5}}

    run(story())


def test_an_object_with_a_coroutine_to_call_is_a_handler(run: Runner) -> None:
    class Handling:
        seen: ClassVar[list[bytes]] = []

        async def __call__(self, value: bytes) -> None:
            self.seen.append(value)

    async def story() -> None:
        async with prepared([b"x"]) as (group, app):
            app.subscriber("t", group=GROUP)(Handling())
            async with at_work(app):
                await group.until(acked(group, 1))

    run(story())
    assert Handling.seen == [b"x"]


def test_what_cannot_be_a_handler_is_refused_when_it_is_registered() -> None:
    app = App("127.0.0.1:1")
    with pytest.raises(InvalidArgument, match="one value"):
        app.subscriber("t", group="g")(lambda_of(bytes, str))
    with pytest.raises(InvalidArgument, match="say what"):
        app.subscriber("t", group="g")(lambda value, record: None)
    with pytest.raises(InvalidArgument, match="concurrency"):
        app.subscriber("t", group="g", concurrency=0)
    with pytest.raises(InvalidArgument, match="at least one topic"):
        app.subscriber(group="g")
    with pytest.raises(InvalidArgument, match="not a kind of group"):
        app.subscriber("t", group="g", kind="qeue")(lambda record: None)
    with pytest.raises(InvalidArgument, match="credit of 0"):
        app.subscriber("t", group="g", credit=0)(lambda record: None)
    app.subscriber("t", group="keys", kind="key")(lambda record: None)
    app.subscriber("u", group="keys", kind=GroupKind.KEY)(lambda record: None)
    with pytest.raises(InvalidArgument, match="a group has one kind"):
        app.subscriber("t", group="keys", kind="stream")


async def yields(value: bytes) -> AsyncIterator[bytes]:
    yield value


def wants_more(value: bytes, *, price: int) -> None: ...


def wants_a_thread(value: threading.Thread) -> None: ...


def answers_never(value: bytes) -> None: ...


@pytest.mark.parametrize(
    ("function", "choices", "said"),
    [
        (yields, {}, "it is a generator"),
        (wants_more, {}, "nothing fills 'price'"),
        (wants_a_thread, {}, "cannot be read as Thread"),
        (answers_never, {"publish_to": "out"}, "it returns None"),
        (Order, {}, "a handler is a function"),
    ],
)
def test_a_function_that_could_never_work_is_refused(
    function: Any, choices: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidArgument, match=said):
        App("127.0.0.1:1").subscriber("t", group="g", **choices)(function)


def lambda_of(*hints: Any) -> Callable[..., None]:
    def handle(one: Any, two: Any) -> None: ...

    handle.__annotations__.update(zip(("one", "two"), hints, strict=True))
    return handle
