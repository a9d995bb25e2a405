"""The requests of a streaming call are read one by one or together, and what was read is told."""

from __future__ import annotations

import asyncio

import pytest
from tests.on_a_loop import on_a_loop

from angarium.wire.grpc.requests import Requests


class Credited:
    """Requests, and how many bytes were told to be read."""

    def __init__(self) -> None:
        self.sizes: list[tuple[int, int]] = []
        self.requests = Requests(lambda travelled, kept: self.sizes.append((travelled, kept)))


async def waiting(task: asyncio.Task[object]) -> bool:
    """Tell whether a task still waits after it had every chance to go on."""
    for _ in range(5):
        await asyncio.sleep(0)
    return not task.done()


@on_a_loop
async def test_they_are_read_one_by_one() -> None:
    it = Credited()
    it.requests.add([b"one", b"two"], 20, 2 * 20)
    it.requests.add([b"three"], 10, 2 * 10)
    it.requests.end()
    assert [one async for one in it.requests] == [b"one", b"two", b"three"]


@on_a_loop
async def test_they_are_read_together() -> None:
    it = Credited()
    it.requests.add([b"one", b"two"], 20, 2 * 20)
    it.requests.add([b"three"], 10, 2 * 10)
    assert await it.requests.together() == [b"one", b"two", b"three"]
    it.requests.end()
    assert await it.requests.together() == []


@on_a_loop
async def test_what_was_read_is_told_when_nothing_is_left() -> None:
    it = Credited()
    it.requests.add([b"one", b"two"], 20, 2 * 20)
    assert await anext(it.requests) == b"one"
    assert it.sizes == []
    it.requests.add([b"three"], 10, 2 * 10)
    assert await anext(it.requests) == b"two"
    assert it.sizes == []
    assert await anext(it.requests) == b"three"
    assert it.sizes == [(30, 60)]
    it.requests.add([b"four", b"five"], 7, 2 * 7)
    await it.requests.together()
    assert it.sizes == [(30, 60)], "whoever reads several may take long over them"
    it.requests.end()
    assert await it.requests.together() == []
    assert it.sizes == [(30, 60), (7, 14)]
    assert await it.requests.together() == []
    assert it.sizes == [(30, 60), (7, 14)], "nothing is not told"


@pytest.mark.parametrize("together", [False, True])
def test_whoever_reads_waits_for_the_first(together: bool) -> None:
    @on_a_loop
    async def story() -> None:
        it = Credited()
        work = it.requests.together() if together else anext(it.requests)

        async def read() -> object:
            return await work

        task = asyncio.create_task(read())
        assert await waiting(task)
        it.requests.add([b"one"], 3, 2 * 3)
        assert await task == ([b"one"] if together else b"one")

    story()


@on_a_loop
async def test_whoever_waits_hears_of_the_end() -> None:
    it = Credited()
    task: asyncio.Task[object] = asyncio.create_task(it.requests.together())
    assert await waiting(task)
    it.requests.end()
    assert await task == []
    with pytest.raises(StopAsyncIteration):
        await anext(it.requests)


@on_a_loop
async def test_an_error_comes_behind_what_came_before_it() -> None:
    it = Credited()
    it.requests.add([b"one"], 3, 2 * 3)
    it.requests.end(ConnectionError("gone"))
    assert await anext(it.requests) == b"one"
    for _ in range(2):
        with pytest.raises(ConnectionError):
            await anext(it.requests)
        with pytest.raises(ConnectionError):
            await it.requests.together()


@on_a_loop
async def test_whoever_waits_hears_of_an_error() -> None:
    it = Credited()
    task: asyncio.Task[object] = asyncio.create_task(it.requests.together())
    assert await waiting(task)
    it.requests.end(ConnectionError("gone"))
    with pytest.raises(ConnectionError):
        await task


@on_a_loop
async def test_whoever_gave_up_waiting_loses_nothing() -> None:
    it = Credited()
    task: asyncio.Task[object] = asyncio.create_task(it.requests.together())
    assert await waiting(task)
    task.cancel()
    it.requests.add([b"one"], 3, 2 * 3)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await it.requests.together() == [b"one"]
