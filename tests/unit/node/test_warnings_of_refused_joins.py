"""A join that is refused has the member it is about asked, but not as often as joins come."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.on_a_loop import run

from angarium.ids import Incarnation, Index, NodeId, Term
from angarium.machine.catalog import CatalogMachine, Form, NodeRegister, encode
from angarium.node import admission as page
from angarium.node.admission import Admission
from angarium.node.bindings import WARN_S

if TYPE_CHECKING:
    import pytest

JOINS = 50


def test_a_member_is_asked_once_in_a_while_and_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine, now, asked = CatalogMachine(), [100.0], list[NodeId | None]()
    commands: list[Any] = [Form(cluster="one", level=8)]
    commands += [
        NodeRegister(incarnation=Incarnation(one), addresses=(), level_max=9) for one in (1, 2)
    ]
    for index, command in enumerate(commands, 1):
        machine.apply(Index(index), Term(1), encode(command))

    async def check_own(command: NodeRegister) -> None:
        asked.append(command.node)
        await asyncio.sleep(0)

    node: Any = SimpleNamespace(
        id=NodeId(9),
        host=SimpleNamespace(catalog=SimpleNamespace(catalog=SimpleNamespace(machine=machine))),
        bindings=SimpleNamespace(check_own=check_own),
    )
    monkeypatch.setattr(page, "_now", lambda: now[0])

    def join(number: int) -> NodeRegister:
        return NodeRegister(node=NodeId(number), incarnation=Incarnation(number), addresses=())

    async def story() -> None:
        admission = Admission(node)
        await asyncio.gather(*(admission.warn(join(1 + one % 2)) for one in range(JOINS)))
        assert asked == [1]
        for one in range(JOINS):
            await admission.warn(join(1 + one % 3))
        assert asked == [1, 2]  # 3 is no member
        now[0] += WARN_S
        await admission.warn(join(1))
        assert asked == [1, 2, 1]
        assert admission._warned.keys() == {1}

    run(story())
