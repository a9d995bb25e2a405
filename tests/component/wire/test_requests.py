"""Requests over a real socket: answers, errors, deadlines, cancellation, limits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.component.wire.running import joined
from tests.on_a_loop import eventually

from angarium.errors import InvalidArgument, LimitExceeded, NotLeader, OutcomeUnknown
from angarium.wire import (
    ConnectionLost,
    DeadlineExceeded,
    Handlers,
    Request,
    Unreachable,
    UnsupportedOperation,
    WireLimits,
)

if TYPE_CHECKING:
    from tests.component.wire.running import Runner

ECHO, WAIT, FAIL = 16, 17, 18


class Ask(msgspec.Struct):
    text: str


class Reply(msgspec.Struct):
    text: str
    count: int


def echo(request: Request) -> None:
    ask = request.read(Ask)
    request.answer(Reply(ask.text, len(request.payload)), (request.payload,))


async def wait_for_ever(request: Request) -> None:
    del request
    await asyncio.get_running_loop().create_future()


def not_leader(request: Request) -> None:
    raise NotLeader("ask node 3", leader=3)


SERVES = Handlers(requests={ECHO: echo, WAIT: wait_for_ever, FAIL: not_leader})


def test_a_request_brings_its_answer_with_header_and_payload(run: Runner) -> None:
    async def main() -> None:
        async with joined(SERVES) as (client, _):
            answer = await client.request(ECHO, Ask("hi"), (b"pay", b"load"), timeout_s=30)
            assert answer.read(Reply) == Reply("hi", 7)
            assert bytes(answer.payload) == b"payload"

    run(main())


def test_both_sides_may_ask(run: Runner) -> None:
    async def main() -> None:
        async with joined(SERVES, client_serves=SERVES) as (client, server):
            answers = await asyncio.gather(
                *(side.request(ECHO, Ask("x"), timeout_s=30) for side in (client, server) * 20)
            )
            assert len(answers) == 40

    run(main())


def test_many_requests_at_once_each_get_their_own_answer(run: Runner) -> None:
    async def main() -> None:
        async with joined(SERVES) as (client, _):
            bodies = [bytes([number % 256]) * (number * 97 % 9000) for number in range(300)]
            answers = await asyncio.gather(
                *(client.request(ECHO, Ask("x"), (body,), timeout_s=30) for body in bodies)
            )
            assert [bytes(answer.payload) for answer in answers] == bodies

    run(main())


def test_a_large_payload_goes_there_and_back(run: Runner) -> None:
    async def main() -> None:
        body = bytes(range(256)) * (5 * 4096)
        async with joined(SERVES) as (client, _):
            answer = await client.request(ECHO, Ask("x"), (body,), timeout_s=30)
            assert answer.payload == body

    run(main())


def test_an_error_in_a_handler_is_raised_at_the_caller(run: Runner) -> None:
    async def fails_later(request: Request) -> None:
        await asyncio.sleep(0)
        raise NotLeader("later", leader=5)

    async def main() -> None:
        async with joined(Handlers(requests={1: not_leader, 2: fails_later})) as (client, _):
            for operation, leader in ((1, 3), (2, 5)):
                with pytest.raises(NotLeader) as caught:
                    await client.request(operation, timeout_s=30)
                assert caught.value.leader == leader

    run(main())


def test_a_malformed_header_and_an_unknown_operation_are_told_apart(run: Runner) -> None:
    async def main() -> None:
        async with joined(SERVES) as (client, _):
            with pytest.raises(InvalidArgument, match="Ask"):
                await client.request(ECHO, b"\xc1", timeout_s=30)
            with pytest.raises(UnsupportedOperation, match="999"):
                await client.request(999, timeout_s=30)
            await client.request(ECHO, Ask("still here"), timeout_s=30)

    run(main())


def test_a_mistake_in_a_handler_harms_nobody_else(run: Runner) -> None:
    def broken(request: Request) -> None:
        raise ZeroDivisionError

    async def main() -> None:
        async with joined(Handlers(requests={1: broken, ECHO: echo})) as (client, _):
            with pytest.raises(Exception, match="unexpected error") as caught:
                await client.request(1, timeout_s=30)
            assert getattr(caught.value, "code", "") == "INTERNAL"
            await client.request(ECHO, Ask("still here"), timeout_s=30)

    run(main())


def test_an_answer_may_be_given_later_from_elsewhere(run: Runner) -> None:
    async def main() -> None:
        taken: list[Request] = []
        async with joined(Handlers(requests={1: taken.append})) as (client, _):
            asking = asyncio.ensure_future(client.request(1, timeout_s=30))
            await eventually(lambda: taken)
            assert taken[0].is_waited_for
            assert taken[0].answer(b"done")
            assert (await asking).header == b"done"
            assert not taken[0].answer(b"twice")
            assert not taken[0].fail(NotLeader())

    run(main())


def test_a_late_answer_is_an_unknown_outcome_and_the_other_side_hears_of_it(run: Runner) -> None:
    async def main() -> None:
        taken: list[Request] = []
        cancelled: list[bool] = []

        def take(request: Request) -> None:
            taken.append(request)
            request.on_cancel(lambda: cancelled.append(True))

        async with joined(Handlers(requests={1: take, ECHO: echo})) as (client, _):
            with pytest.raises(DeadlineExceeded) as caught:
                await client.request(1, timeout_s=0.02)
            assert isinstance(caught.value, OutcomeUnknown)
            await eventually(lambda: cancelled)
            assert not taken[0].answer(b"too late")
            await client.request(ECHO, Ask("still here"), timeout_s=30)

    run(main())


def test_deadlines_end_in_their_own_order(run: Runner) -> None:
    async def main() -> None:
        async with joined(SERVES) as (client, _):
            ended: list[float] = []

            async def ask(timeout_s: float) -> None:
                with pytest.raises(DeadlineExceeded):
                    await client.request(WAIT, timeout_s=timeout_s)
                ended.append(timeout_s)

            await asyncio.gather(*(ask(timeout_s) for timeout_s in (0.3, 0.02, 0.15)))
            assert ended == [0.02, 0.15, 0.3]

    run(main())


def test_a_cancelled_caller_cancels_the_handler(run: Runner) -> None:
    async def main() -> None:
        states: list[str] = []

        async def handler(request: Request) -> None:
            states.append("started")
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                states.append("cancelled")
                raise

        async with joined(Handlers(requests={1: handler})) as (client, _):
            asking = asyncio.ensure_future(client.request(1, timeout_s=30))
            await eventually(lambda: states)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await eventually(lambda: states == ["started", "cancelled"])

    run(main())


def test_a_handler_that_forgets_to_answer_answers_with_nothing(run: Runner) -> None:
    async def silent(request: Request) -> None:
        await asyncio.sleep(0)

    async def main() -> None:
        async with joined(Handlers(requests={1: silent})) as (client, _):
            answer = await client.request(1, timeout_s=30)
            assert (answer.header, bytes(answer.payload)) == (b"", b"")

    run(main())


def test_too_many_requests_are_refused_on_both_sides_by_name(run: Runner) -> None:
    async def main() -> None:
        few = WireLimits(requests_in_flight_max=3)
        async with joined(SERVES, limits=few, client_limits=WireLimits()) as (client, server):
            waiting = [asyncio.ensure_future(client.request(WAIT, timeout_s=30)) for _ in range(3)]
            await eventually(lambda: len(server._serving) == 3)
            with pytest.raises(LimitExceeded, match="requests_in_flight_max"):
                await client.request(WAIT, timeout_s=30)
            waiting[0].cancel()
            await asyncio.gather(waiting[0], return_exceptions=True)
            await client.request(ECHO, Ask("room again"), timeout_s=30)
            for task in waiting:
                task.cancel()
        async with joined(SERVES, limits=WireLimits(), client_limits=few) as (client, _):
            waiting = [asyncio.ensure_future(client.request(WAIT, timeout_s=30)) for _ in range(3)]
            await eventually(lambda: len(client._calls.waiting) == 3)
            with pytest.raises(LimitExceeded, match="requests_in_flight_max"):
                await client.request(ECHO, Ask("x"), timeout_s=30)
            for task in waiting:
                task.cancel()

    run(main())


def test_what_is_larger_than_the_other_side_takes_is_refused_here(run: Runner) -> None:
    async def main() -> None:
        small = WireLimits(frame_bytes_max=100_000, header_bytes_max=70_000)
        async with joined(SERVES, limits=small, client_limits=WireLimits()) as (client, _):
            with pytest.raises(LimitExceeded, match="frame_bytes_max"):
                await client.request(ECHO, Ask("x"), (bytes(100_000),), timeout_s=30)
            with pytest.raises(LimitExceeded, match="header_bytes_max"):
                await client.request(ECHO, Ask("x" * 80_000), timeout_s=30)
            await client.request(ECHO, Ask("x"), (bytes(50_000),), timeout_s=30)

    run(main())


def test_an_answer_larger_than_the_caller_takes_becomes_a_failure(run: Runner) -> None:
    def huge(request: Request) -> None:
        request.answer(b"", (bytes(200_000),))

    async def main() -> None:
        small = WireLimits(frame_bytes_max=100_000, header_bytes_max=70_000)
        async with joined(
            Handlers(requests={1: huge}), limits=WireLimits(), client_limits=small
        ) as (client, _):
            with pytest.raises(LimitExceeded, match="frame_bytes_max"):
                await client.request(1, timeout_s=30)

    run(main())


def test_when_the_connection_is_lost_every_request_ends_with_an_unknown_outcome(
    run: Runner,
) -> None:
    async def main() -> None:
        async with joined(SERVES) as (client, server):
            waiting = [asyncio.ensure_future(client.request(WAIT, timeout_s=30)) for _ in range(5)]
            await eventually(lambda: len(server._serving) == 5)
            server._abort()
            ends = await asyncio.gather(*waiting, return_exceptions=True)
            assert {type(end) for end in ends} == {ConnectionLost}
            await server.wait_closed()
            assert not server._tasks
            with pytest.raises(Unreachable):
                await client.request(ECHO, Ask("x"), timeout_s=30)
            assert not client.send(1, b"")
            assert client.messages_dropped == 1

    run(main())
