"""The life of a process: parts start in order, stop in the opposite one, and failures are told."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import pytest

from angarium.app import serving
from angarium.app.serving import Signals, run_until_stopped

if TYPE_CHECKING:
    from collections.abc import Callable


class Diary:
    """Parts that write down what happens to them."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def part(self, name: str, on_start: Callable[[], object] | None = None) -> DiaryPart:
        return DiaryPart(self, name, on_start)


class DiaryPart:
    def __init__(self, diary: Diary, name: str, on_start: Callable[[], object] | None) -> None:
        self._diary, self._name, self._on_start = diary, name, on_start

    async def start(self) -> None:
        self._diary.lines.append(f"start {self._name}")
        if self._on_start is not None:
            outcome = self._on_start()
            if asyncio.isfuture(outcome):
                await outcome

    async def stop(self) -> None:
        self._diary.lines.append(f"stop {self._name}")


def run(*parts: DiaryPart, then: Callable[[Signals], None] | None = None) -> Signals:
    async def life() -> Signals:
        signals = Signals(on_debug=lambda: "DEBUG")
        if then is not None:
            asyncio.get_running_loop().call_later(0.01, then, signals)
        await asyncio.wait_for(run_until_stopped(lambda _: parts, signals), timeout=60)
        return signals

    return asyncio.run(life())


def send(number: int) -> Callable[[Signals], None]:
    return lambda _: os.kill(os.getpid(), number)


@pytest.fixture(autouse=True)
def keep_signal_handlers() -> object:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_parts_start_in_order_and_a_signal_stops_them_in_the_opposite_one(number: int) -> None:
    diary = Diary()
    run(diary.part("node"), diary.part("door"), then=send(number))
    assert diary.lines == ["start node", "start door", "stop door", "stop node"]


def test_a_part_that_cannot_start_stops_what_runs_and_tells_why() -> None:
    diary = Diary()

    def burst() -> None:
        raise OSError("the port is taken")

    with pytest.raises(OSError, match="the port is taken"):
        run(diary.part("node"), diary.part("door", burst))
    assert diary.lines == ["start node", "start door", "stop door", "stop node"]


def test_a_signal_during_a_start_that_hangs_stops_the_process() -> None:
    diary = Diary()
    hang = diary.part("node", lambda: asyncio.get_running_loop().create_future())
    run(hang, diary.part("door"), then=send(signal.SIGTERM))
    assert diary.lines == ["start node", "stop node"]


def test_a_part_that_gives_up_ends_the_process_with_its_reason() -> None:
    diary = Diary()
    with pytest.raises(RuntimeError, match="the disk lies"):
        run(diary.part("node"), then=lambda signals: signals.fail(RuntimeError("the disk lies")))
    assert diary.lines == ["start node", "stop node"]


def test_a_stop_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "STOP_SECONDS_MAX", 0.05)
    diary = Diary()
    part = diary.part("node")
    part.stop = asyncio.Event().wait  # type: ignore[method-assign,assignment]
    run(diary.part("disk"), part, then=send(signal.SIGTERM))
    assert diary.lines == ["start disk", "start node", "stop disk"]


def test_the_first_signal_gives_the_next_one_back_its_own_meaning() -> None:
    run(Diary().part("node"), then=send(signal.SIGTERM))
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
