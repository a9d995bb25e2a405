"""A lookout asks everybody, hears what is gone, and goes on when somebody cannot be asked."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest
from tests.on_a_loop import eventually, run

from angarium.addresses import Address
from angarium.discovery import lookout as module
from angarium.discovery.lookout import Lookout
from angarium.discovery.port import ADDRESSES_MAX, DiscoveryFailed, Found, found
from angarium.discovery.static import StaticDiscovery
from angarium.retrying import Backoff

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

ONE, OTHER = Address("10.0.0.1", 7400), Address("10.0.0.2", 7400)


class Told:
    """Says what it was told to, and fails where it was told None."""

    name = "somebody"

    def __init__(self, *answers: tuple[Address, ...] | None) -> None:
        self.answers: asyncio.Queue[tuple[Address, ...] | None] = asyncio.Queue()
        for one in answers:
            self.answers.put_nowait(one)

    async def find(self) -> Found:
        answer = await self.answers.get()
        if answer is None:
            raise DiscoveryFailed("somebody cannot be asked")
        return found(answer)

    async def follow(self) -> AsyncGenerator[Found, None]:
        while True:
            yield await self.find()


@pytest.fixture(autouse=True)
def without_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSES", Backoff(first_s=0.001, longest_s=0.001))


def test_what_the_settings_list_is_gone_all_the_same_where_somebody_says_so() -> None:
    async def story() -> None:
        somebody = Told((ONE, OTHER), (OTHER,))
        lookout = Lookout([StaticDiscovery([ONE]), somebody])
        gone: list[Address] = []
        lookout.on_gone = gone.extend
        following = asyncio.create_task(lookout.run())
        await eventually(lambda: gone == [ONE])
        following.cancel()

    run(story())


def test_that_nobody_can_be_asked_says_nothing_about_nodes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        somebody = Told((ONE, OTHER), None, None, (ONE,))
        lookout = Lookout([somebody])
        heard: list[tuple[str, list[Address]]] = []
        lookout.on_back = lambda places: heard.append(("back", sorted(places)))
        lookout.on_gone = lambda places: heard.append(("gone", sorted(places)))
        following = asyncio.create_task(lookout.run())
        await eventually(lambda: len(heard) == 2)
        assert heard == [("back", [ONE, OTHER]), ("gone", [OTHER])]
        somebody.answers.put_nowait((ONE, OTHER))
        await eventually(lambda: heard[2:] == [("back", [OTHER])])
        following.cancel()

    with caplog.at_level(logging.INFO):
        run(story())
    warnings = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert len(warnings) == 1, "the same reason is said once"
    assert "can be asked again" in caplog.text


def test_a_mistake_in_an_adapter_ends_nothing() -> None:
    class Mad(Told):
        async def find(self) -> Found:
            await super().find()
            raise UnicodeError("not foreseen")

    async def story() -> None:
        mad = Mad((ONE,), (ONE,), (ONE,))
        lookout = Lookout([mad])
        following = asyncio.create_task(lookout.run())
        await eventually(mad.answers.empty)
        assert not following.done()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)  # it would take the next answer
        mad.answers.put_nowait((ONE,))
        look = await lookout.look()
        assert str(look.failures[0]) == ("somebody was not understood (UnicodeError: not foreseen)")

    run(story())


def test_somebody_who_takes_too_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        look = await Lookout([StaticDiscovery([ONE]), Told()]).look()
        assert look.addresses == (ONE,)
        assert str(look.failures[0]) == "somebody did not answer within 0.01 s"

    monkeypatch.setattr(module, "LOOK_S_MAX", 0.01)
    run(story())


def test_an_answer_keeps_its_bounds() -> None:
    many = [Address("10.0.0.1", port) for port in range(2 * ADDRESSES_MAX)]
    answer = found([*many, *many])
    assert len(answer.addresses) == ADDRESSES_MAX
    assert all(one.port for one in answer.addresses), "nobody listens at port 0"
