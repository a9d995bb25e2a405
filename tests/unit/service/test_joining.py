"""Who needs a join token, and what is refused before anything is written."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.unit.service.access.asked_service import MemoryCatalog

from angarium.errors import JoinRefused
from angarium.ids import Incarnation, Micros, NodeId
from angarium.machine.catalog import JoinTokenPut, NodeJoin, NodeRegister
from angarium.node.release import BOUND_NAMES_LEVEL, JOIN_TOKENS_LEVEL
from angarium.security.tokens import is_join_token, is_token, new_join_token, token_digest
from angarium.service.joining import joined
from angarium.wire.operations import JoinHeader

WHERE = (("wire", "10.0.0.1:7400"),)


class Scene:
    """A node that lets others in, and what it had its catalog do."""

    def __init__(self, *, asks: bool = True, level: int = JOIN_TOKENS_LEVEL) -> None:
        self.catalog = MemoryCatalog(level=level)
        member = NodeRegister(incarnation=Incarnation(1), addresses=WHERE, level_max=9)
        asyncio.run(self.catalog.submit(member))
        asyncio.run(
            self.catalog.submit(
                NodeRegister(incarnation=Incarnation(2), addresses=WHERE, level_max=9)
            )
        )
        self.entries: list[object] = []
        self.caught_up = 0
        self.warned: list[object] = []
        submit = self.catalog.submit

        async def noted(command: Any) -> Any:
            self.entries.append(command)
            return await submit(command)

        async def catch_up() -> None:
            self.caught_up += 1

        async def not_alive(_: object) -> None:
            pass

        async def warn(command: object) -> None:
            self.warned.append(command)

        self.catalog.submit = noted  # type: ignore[method-assign]
        self.catalog.catch_up = catch_up  # type: ignore[method-assign]
        self.now = Micros(1_000)
        self._node = SimpleNamespace(
            catalog=self.catalog,
            config=SimpleNamespace(asks_for_join_tokens=asks),
            admission=SimpleNamespace(check_not_alive=not_alive, warn=warn),
            now=lambda: self.now,
        )

    def token(self, *, until: int = 2_000) -> str:
        secret = new_join_token().reveal()
        put = JoinTokenPut(digest=token_digest(secret), until=Micros(until))
        asyncio.run(self.catalog.submit(put))
        self.entries.clear()
        return secret

    def ask(
        self, token: str = "", *, incarnation: int = 7, node: int | None = None, name: str = ""
    ) -> NodeId:
        header = JoinHeader(
            None if node is None else NodeId(node),
            Incarnation(incarnation),
            WHERE,
            level_max=9,
            token=token,
        )
        copies = SimpleNamespace(check_replacement=self._unlike)
        asked = joined(cast("Any", self._node), cast("Any", copies), header, name)
        return asyncio.run(asked).node

    async def _unlike(self, *_: object) -> None:
        pass


def test_without_authentication_nobody_needs_one() -> None:
    scene = Scene(asks=False)
    assert scene.ask() == 3
    assert isinstance(scene.entries[-1], NodeRegister)


def test_below_the_level_that_has_them_a_node_comes_in_as_before() -> None:
    scene = Scene(level=JOIN_TOKENS_LEVEL - 1)
    assert scene.ask() == 3
    assert isinstance(scene.entries[-1], NodeRegister)


def test_a_token_is_used_up_by_the_entry_that_lets_the_node_in() -> None:
    scene = Scene()
    token = scene.token()
    assert scene.ask(token) == 3
    assert isinstance(scene.entries[-1], NodeJoin)
    assert token not in repr(scene.entries)
    with pytest.raises(JoinRefused, match=r"by node 3.*cluster invite"):
        scene.ask(token, incarnation=8)
    assert len(scene.entries) == 1


def test_a_member_that_tells_where_it_is_now_needs_none() -> None:
    scene = Scene()
    assert scene.ask(incarnation=1, node=1) == 1
    assert scene.ask(incarnation=2) == 2


@pytest.mark.parametrize(
    ("incarnation", "node"), [(7, None), (7, 1), (2, 1)], ids=["new", "replaced", "another's data"]
)
def test_nobody_else_is_let_in_without_one_and_nothing_is_written(
    incarnation: int, node: int | None
) -> None:
    scene = Scene()
    with pytest.raises(JoinRefused, match="--join-token-file"):
        scene.ask(incarnation=incarnation, node=node)
    assert scene.entries == []


@pytest.mark.parametrize(
    "text",
    [new_join_token().reveal(), "x", "angj_" + "A" * 1_000_000, "é"],
    ids=["well formed", "short", "long", "not ASCII"],
)
def test_a_forged_one_is_looked_up_and_not_written(text: str) -> None:
    scene = Scene()
    scene.token()
    with pytest.raises(JoinRefused, match="unknown") as caught:
        scene.ask(text)
    assert scene.entries == []
    assert scene.caught_up == int(is_join_token(text)), "the leader is asked for those alone"
    assert text not in str(caught.value) or len(text) == 1


def test_one_whose_time_is_up_is_refused_without_an_entry() -> None:
    scene = Scene()
    token = scene.token(until=900)
    with pytest.raises(JoinRefused, match="expired"):
        scene.ask(token)
    assert scene.entries == []


def test_a_join_token_stands_for_nobody() -> None:
    token = new_join_token()
    assert is_join_token(token.reveal())
    assert not is_token(token.reveal())
    assert token.reveal() not in repr(token)


def bound_scene() -> Scene:
    """Return one without authentication whose nodes 1 and 2 are bound to the NAMEs a and b."""
    scene = Scene(asks=False, level=BOUND_NAMES_LEVEL)
    for node, name in ((1, "a"), (2, "b")):
        scene.ask(incarnation=node, node=node, name=name)
    scene.entries.clear()
    return scene


def test_another_nodes_certificate_is_refused_before_anything_is_written() -> None:
    scene = bound_scene()
    for incarnation, node in ((1, 1), (1, None), (7, 1)):
        with pytest.raises(JoinRefused, match=r"NAME a.*cluster invite"):
            scene.ask(incarnation=incarnation, node=node, name="b")
    assert scene.entries == []
    assert len(scene.warned) == 3
    assert scene.ask(incarnation=1, node=1, name="a") == 1
    assert scene.ask(incarnation=9, name="c") == 3, "without authentication a new one needs nothing"


def test_a_token_lets_a_node_have_another_name_also_without_authentication() -> None:
    scene = bound_scene()
    assert scene.ask(scene.token(), incarnation=1, node=1, name="c") == 1
    assert isinstance(scene.entries[-1], NodeJoin)
    with pytest.raises(JoinRefused, match="NAME c"):
        scene.ask(incarnation=1, node=1, name="a")


def test_below_the_level_no_name_is_written() -> None:
    scene = Scene(asks=False, level=BOUND_NAMES_LEVEL - 1)
    scene.ask(incarnation=1, node=1, name="a")
    [entry] = scene.entries
    assert isinstance(entry, NodeRegister)
    assert entry.name == ""
