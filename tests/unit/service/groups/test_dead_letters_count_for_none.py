"""A leader stores dead letters in a task of its own, whichever call made it do so."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from angarium.errors import NotFound
from angarium.lending.letters import Publish
from angarium.machine.catalog import Maker, TopicCreate, TopicSettings
from angarium.service.groups.dead_letters import DeadLetters
from angarium.service.makers import counting_for, current_maker

if TYPE_CHECKING:
    from angarium.api import TopicConfig
    from angarium.lending.letters import Burial
    from angarium.service.own_node import OwnNode
    from angarium.service.publishing import Publisher
    from angarium.service.topics import Topics

ALICE = Maker("user:alice:1", "alice")


def test_what_a_leader_creates_for_a_letter_is_not_the_callers() -> None:
    submitted: list[TopicCreate] = []
    makers: list[Maker | None] = []

    async def submit(command: TopicCreate) -> None:
        submitted.append(command)

    async def find(name: str) -> None:
        raise NotFound(name)

    async def publish(_: object) -> None:
        makers.append(current_maker())

    def settings(_: TopicConfig) -> TopicSettings:
        return TopicSettings()

    node = SimpleNamespace(
        catalog=SimpleNamespace(submit=submit), config=SimpleNamespace(request_timeout_s=60.0)
    )
    letters = DeadLetters(
        cast("OwnNode", node),
        cast("Topics", SimpleNamespace(find=find, settings=settings)),
        cast("Publisher", SimpleNamespace(publish=publish)),
    )

    async def scene() -> None:
        done = asyncio.Event()

        def burial() -> Any:
            yield Publish("team-a.letters", (b"",))
            done.set()

        with counting_for(lambda: ALICE):
            letters.carry_out(cast("Burial", burial()))
            assert current_maker() is ALICE
        await done.wait()

    asyncio.run(scene())
    assert [(one.name, one.maker) for one in submitted] == [("team-a.letters", None)]
    assert makers == [None]
