"""When an early answer is held back, and when not."""

from __future__ import annotations

import asyncio

import pytest

from angarium.api import PublishRequest
from angarium.batch import encode
from angarium.modes import DeliveryMode
from angarium_compat.pacing import ALONE_AFTER, PROBE_EVERY, Pacing


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []

    async def pause(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr("angarium_compat.pacing.asyncio.sleep", pause)
    return found


def request(records: int, mode: DeliveryMode) -> PublishRequest:
    batch = encode([b"x"] * records)
    return PublishRequest(topic="t", partition=0, batches=(batch,), mode=mode)


def answered(requests: list[PublishRequest]) -> None:
    async def story() -> None:
        known = Pacing()
        for one in requests:
            await known.answer(one)

    asyncio.run(story())


def test_records_that_came_together_hold_the_answer_back(pauses: list[float]) -> None:
    answered([request(5, DeliveryMode.EVENTUAL)] * 3)
    assert len(pauses) == 3


def test_who_publishes_one_by_one_is_held_back_seldom(pauses: list[float]) -> None:
    answered([request(1, DeliveryMode.EVENTUAL)] * (2 * PROBE_EVERY))
    assert len(pauses) == 2


def test_a_few_single_records_do_not_end_a_crowd(pauses: list[float]) -> None:
    crowd, single = request(5, DeliveryMode.EVENTUAL), request(1, DeliveryMode.EVENTUAL)
    answered([crowd, *[single] * (ALONE_AFTER + 5)])
    assert len(pauses) == 1 + ALONE_AFTER


def test_a_promise_that_takes_its_time_is_not_held_back(pauses: list[float]) -> None:
    answered([request(5, DeliveryMode.CONSISTENT), request(5, DeliveryMode.PERFORMANCE)])
    assert not pauses
