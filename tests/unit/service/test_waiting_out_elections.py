"""What is repeated in a client's place, and what is not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from angarium.errors import AngariumError, InvalidArgument, NotLeader, OutcomeUnknown
from angarium.retrying import Backoff
from angarium.service import patience
from angarium.service.patience import patient, patiently

if TYPE_CHECKING:
    from collections.abc import Callable


class Attempts:
    """Fails as told, then succeeds."""

    def __init__(self, *failures: AngariumError) -> None:
        self.count = 0
        self._failures = list(failures)

    async def __call__(self, *_: object) -> str:
        self.count += 1
        if self._failures:
            raise self._failures.pop(0)
        return "done"


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PAUSES", Backoff(first_s=1e-6, longest_s=1e-6))


def test_what_changed_nothing_is_repeated_until_there_is_a_leader() -> None:
    attempts = Attempts(NotLeader(), NotLeader(), NotLeader())
    assert asyncio.run(patiently(attempts)) == "done"
    assert attempts.count == 4


@pytest.mark.parametrize("failure", [OutcomeUnknown("perhaps"), InvalidArgument("never")])
def test_what_may_have_happened_or_never_will_is_told_at_once(failure: AngariumError) -> None:
    attempts = Attempts(failure)
    with pytest.raises(type(failure)):
        asyncio.run(patiently(attempts))
    assert attempts.count == 1


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE_S", -1.0)
    with pytest.raises(NotLeader):
        asyncio.run(patiently(Attempts(NotLeader(), NotLeader())))


class Beginning:
    """A broker that takes a publish without a task, and finds out later that it does not lead."""

    def __init__(self, *failures: AngariumError) -> None:
        self.publish = Attempts(*failures[1:])
        self._first = failures[0]

    def begin_publish(self, _: object, answer: Callable[[object], None]) -> bool:
        asyncio.get_running_loop().call_soon(answer, self._first)
        return True


@pytest.mark.parametrize(
    ("failures", "told"),
    [
        ([NotLeader(), NotLeader()], "done"),
        ([InvalidArgument("never")], InvalidArgument),
        ([NotLeader(), OutcomeUnknown("perhaps")], OutcomeUnknown),
    ],
)
def test_a_publish_without_a_task_is_repeated_all_the_same(
    failures: list[AngariumError], told: object
) -> None:
    async def answered() -> object:
        broker: Any = patient(cast("Any", Beginning(*failures)))
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        assert broker.begin_publish(None, answer.set_result)
        return await answer

    found = asyncio.run(answered())
    assert found == told if isinstance(told, str) else type(found) is told
