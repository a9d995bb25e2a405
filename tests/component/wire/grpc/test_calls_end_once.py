"""A call ends once: with an answer, its deadline, its client, or what was wrong with it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest
from tests.component.wire.grpc.serving import ByHand, Serving, serving
from tests.on_a_loop import eventually
from tests.unit.wire.http2.client_bytes import data, reset

from angarium.wire.grpc import CallEnded, Method, ReadyAnswer, streaming, unary
from angarium.wire.grpc.messages import framed
from angarium.wire.http2 import ErrorCode
from angarium.wire.http2 import frames as h2

if TYPE_CHECKING:
    from tests.component.wire.running import Runner

    from angarium.wire.grpc import Call, Requests

NO_GZIP = b"\1\0\0\0\3abc"


class Patient:
    """A handler that waits for ever, and tells what became of it."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.read: list[bytes] = []

    async def unary(self, request: bytes, _: Call) -> bytes:
        return await self._wait()

    async def streaming(self, requests: Requests, _: Call) -> bytes:
        try:
            while found := await requests.together():
                self.read += found
        except CallEnded:
            self.told.append("ended")
            raise
        except asyncio.CancelledError:
            self.told.append("cancelled")
            raise
        return await self._wait()

    async def _wait(self) -> bytes:
        self.told.append("begun")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.told.append("cancelled")
            raise
        return b"never"


@pytest.fixture
def patient() -> Patient:
    return Patient()


def kinds(patient: Patient) -> dict[str, Method]:
    return {"/unary": unary(patient.unary), "/streaming": streaming(patient.streaming)}


async def begun(it: Serving, client: ByHand, path: str, *more: tuple[bytes, bytes]) -> None:
    client.call(1, *more, path=path)
    client.say(data(1, framed(b"x"), ends=path == "/unary"))


@pytest.mark.parametrize("path", ["/unary", "/streaming"])
def test_a_call_whose_deadline_has_passed_is_told_so_and_its_handler_cancelled(
    run: Runner, patient: Patient, path: str
) -> None:
    async def story() -> None:
        async with serving(kinds(patient)) as it:
            client = await it.dialled()
            await begun(it, client, path, (b"grpc-timeout", b"50m"))
            assert (await client.trailers(1))[b"grpc-status"] == b"4"
            await eventually(lambda: patient.told[-1:] == ["cancelled"])
            assert it.server.calls == it.server.received_bytes == 0

    run(story())


@pytest.mark.parametrize("path", ["/unary", "/streaming"])
def test_a_call_whose_handler_is_cancelled_by_somebody_else_ends(run: Runner, path: str) -> None:
    async def cancelled(*_: object) -> bytes:
        waited_for: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        waited_for.cancel()
        return await waited_for

    async def story() -> None:
        methods = {"/unary": unary(cancelled), "/streaming": streaming(cancelled)}
        async with serving(methods) as it:
            client = await it.dialled()
            await begun(it, client, path)
            assert (await client.trailers(1))[b"grpc-status"] == b"1"
            assert it.server.calls == 0

    run(story())


def test_each_of_many_calls_ends_at_its_own_deadline(run: Runner, patient: Patient) -> None:
    async def story() -> None:
        async with serving(kinds(patient)) as it:
            client = await it.dialled()
            numbers = range(1, 41, 2)
            for number in numbers:
                timeout = b"60S" if number % 4 == 1 else b"%dm" % (10 + 5 * number)
                client.call(number, (b"grpc-timeout", timeout), path="/unary")
                client.say(data(number, framed(b"x"), ends=True))
            for number in numbers:
                if number % 4 == 3:
                    assert (await client.trailers(number))[b"grpc-status"] == b"4"
            assert it.server.calls == len(numbers) // 2

    run(story())


def test_an_answer_made_ready_is_one_whatever_was_said_before(run: Runner) -> None:
    ready = ReadyAnswer(b"ready")

    def plain(_: bytes, call: Call) -> None:
        call.finish_with(ready)
        call.finish_with(ready)

    def begun(_: bytes, call: Call) -> None:
        call.begin((("x-first", "1"),))
        plain(b"", call)

    def trailing(_: bytes, call: Call) -> None:
        call.set_trailing_metadata((("x-last", "2"),))
        plain(b"", call)

    async def story() -> None:
        methods = {"/plain": unary(plain), "/begun": unary(begun), "/trailing": unary(trailing)}
        async with serving(methods) as it:
            for path in methods:
                call = it.unary(path)(b"")
                assert await call == b"ready"
                assert ("x-first", "1") in tuple(await call.initial_metadata()) or path != "/begun"
                assert ("x-last", "2") in tuple(await call.trailing_metadata()) or (
                    path != "/trailing"
                )
            assert it.server.calls == 0

    run(story())


def test_a_client_with_a_deadline_learns_of_it(run: Runner, patient: Patient) -> None:
    async def story() -> None:
        async with serving(unary(patient.unary)) as it:
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await it.unary()(b"x", timeout=0.2)
            assert failure.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            await eventually(lambda: patient.told == ["begun", "cancelled"])

    run(story())


def test_a_handler_knows_how_long_it_has(run: Runner) -> None:
    async def story() -> None:
        async def handler(_: bytes, call: Call) -> bytes:
            return str(call.time_remaining()).encode()

        async with serving(unary(handler)) as it:
            # Clients round a deadline up to what few digits can say: 100 s may be sent as 101.
            assert 0 < float(await it.unary()(b"", timeout=100)) <= 110
            assert await it.unary()(b"") == b"None"

    run(story())


@pytest.mark.parametrize("path", ["/unary", "/streaming"])
def test_a_call_that_its_client_cancels_is_cancelled(
    run: Runner, patient: Patient, path: str
) -> None:
    async def story() -> None:
        async with serving(kinds(patient)) as it:
            call = it.stream(path)
            await call.write(b"x")
            await call.done_writing()
            await eventually(lambda: patient.told == ["begun"])
            assert it.server.calls == 1
            call.cancel()
            await eventually(lambda: patient.told == ["begun", "cancelled"])
            assert it.server.calls == it.server.received_bytes == 0

    run(story())


def test_a_stream_that_its_client_cancels_is_cancelled_where_it_reads(
    run: Runner, patient: Patient
) -> None:
    async def story() -> None:
        async with serving(kinds(patient)) as it:
            call = it.stream("/streaming")
            await call.write(b"x")
            await eventually(lambda: patient.read == [b"x"])
            call.cancel()
            await eventually(lambda: len(patient.told) == 1)
            assert patient.told[0] in ("ended", "cancelled")
            assert it.server.calls == it.server.received_bytes == 0

    run(story())


def test_a_client_that_vanishes_cancels_its_calls(run: Runner, patient: Patient) -> None:
    async def story() -> None:
        async with serving(kinds(patient)) as it:
            client = await it.dialled()
            await begun(it, client, "/unary")
            await eventually(lambda: patient.told == ["begun"])
            client.close()
            await eventually(lambda: patient.told == ["begun", "cancelled"])
            assert it.server.calls == 0

    run(story())


def test_requests_that_are_no_messages_end_the_call_and_its_handler(
    run: Runner, patient: Patient
) -> None:
    async def story() -> None:
        async with serving(kinds(patient)) as it:
            client = await it.dialled()
            client.call(1, (b"grpc-encoding", b"gzip"), path="/streaming")
            client.say(data(1, framed(b"good")))
            await it.round_trips(client)
            client.say(data(1, NO_GZIP), data(1, framed(b"more")))
            assert (await client.trailers(1))[b"grpc-status"] == b"3"
            await eventually(lambda: patient.told == ["cancelled"])
            assert it.server.calls == it.server.received_bytes == 0

    run(story())


def test_a_handler_that_goes_on_does_not_make_a_failed_call_good(run: Runner) -> None:
    async def story() -> None:
        async def stubborn(requests: Requests, _: Call) -> bytes:
            with suppress(asyncio.CancelledError):
                await requests.together()
            return b"all is well"

        async with serving(streaming(stubborn)) as it:
            client = await it.dialled()
            client.call(1, (b"grpc-encoding", b"gzip"))
            client.say(data(1, NO_GZIP))
            assert (await client.trailers(1))[b"grpc-status"] == b"3"
            assert it.server.calls == 0

    run(story())


def test_what_is_read_after_the_end_is_not_counted_twice(run: Runner) -> None:
    async def story() -> None:
        done = asyncio.Event()

        async def late(requests: Requests, _: Call) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                assert await requests.together() == [b"whole"]
                done.set()

        async with serving(streaming(late)) as it:
            client = await it.dialled()
            client.call(1)
            client.say(data(1, framed(b"whole") + framed(b"in part")[:-1]))
            await eventually(lambda: it.server.received_bytes > 0)
            client.say(reset(1))
            await done.wait()
            assert it.server.received_bytes == it.server.calls == 0

    run(story())


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/unary", b"", b"3"),
        ("/unary", framed(b"one") + framed(b"two"), b"3"),
        ("/unary", framed(b"cut")[:-1], b"3"),
        ("/streaming", framed(b"cut")[:-1], b"3"),
        ("/unary", b"\0\xff\xff\xff\xff", b"8"),
        ("/streaming", b"\0\xff\xff\xff\xff", b"8"),
        ("/streaming", NO_GZIP, b"13"),
        ("/nowhere", framed(b"x"), b"12"),
    ],
)
def test_what_is_wrong_with_a_request_is_told(
    run: Runner, patient: Patient, path: str, body: bytes, status: bytes
) -> None:
    async def story() -> None:
        async with serving(kinds(patient)) as it:
            client = await it.dialled()
            client.call(1, path=path)
            client.say(data(1, body, ends=True))
            assert (await client.trailers(1))[b"grpc-status"] == status
            await eventually(lambda: it.server.calls == it.server.received_bytes == 0)

    run(story())


def test_a_handler_that_writes_to_a_call_that_is_over_hears_of_it(run: Runner) -> None:
    async def story() -> None:
        heard: list[str] = []

        async def handler(_: Requests, call: Call) -> None:
            try:
                while True:
                    await call.write(bytes(1_000))
            except CallEnded:
                heard.append("ended")
                raise
            except asyncio.CancelledError:
                heard.append("cancelled")
                raise

        async with serving(streaming(handler)) as it:
            client = await it.dialled()
            client.call(1)
            client.say(data(1, framed(b""), ends=True))
            await client.frame(h2.DATA)
            client.say(reset(1))
            await eventually(lambda: heard)
            client.call(3)
            client.say(h2.reset_frame(3, ErrorCode.CANCEL))
            await it.round_trips(client)
            assert it.server.calls == 0

    run(story())
