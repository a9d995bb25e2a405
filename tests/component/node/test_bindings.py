"""A node that answers is asked before its registration changes."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from angarium.ids import Incarnation, Index, NodeId, Term
from angarium.machine.catalog import (
    BOUND_NAMES_LEVEL,
    CatalogMachine,
    Form,
    Labels,
    NodeRegister,
    encode,
)
from angarium.node.bindings import Bindings
from angarium.node.config import NodeConfig
from angarium.node.release import LEVEL_MAX
from angarium.testing.reserved_port import HOST, ReservedPort
from angarium.wire import Hello, Role, Server
from angarium.wire.errors import AddressDisputed
from angarium.wire.handlers import Handlers
from angarium.wire.operations import Operation, OwnRegistrationHeader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from angarium.node.node import Node
    from angarium.wire import Request

ASKED = NodeId(2)
EVIL = (("wire", f"{HOST}:9"),)


class Scene:
    """A node that leads the catalog, and another one whose registration is to change."""

    def __init__(self, folder: Path, *, level: int = BOUND_NAMES_LEVEL) -> None:
        self.machine = CatalogMachine()
        self._index = 0
        self._do(Form(cluster="one", level=level))
        self.own = self._node(folder / "1", NodeId(1), 101, f"{HOST}:1")

    def _do(self, command: Any) -> None:
        self._index += 1
        self.machine.apply(Index(self._index), Term(1), encode(command))

    def _node(self, folder: Path, node: NodeId, incarnation: int, address: str) -> Bindings:
        replica = SimpleNamespace(catalog=SimpleNamespace(machine=self.machine))
        self.again = 0

        def introduce_again() -> None:
            self.again += 1

        stub = SimpleNamespace(
            id=node,
            config=NodeConfig(data_directory=folder, region="r"),
            is_open=True,
            is_identified=True,
            host=SimpleNamespace(catalog=replica),
            peers=SimpleNamespace(connection=lambda _: None),
            addresses={"wire": address},
            greeting=lambda role: Hello(role=role, node=node, incarnation=incarnation),
            folder_identity=SimpleNamespace(incarnation=Incarnation(incarnation)),
            catalog=SimpleNamespace(is_current=True, introduce_again=introduce_again),
        )
        return Bindings(cast("Node", stub))

    def registration(self, address: str, **more: Any) -> NodeRegister:
        said: dict[str, Any] = {"addresses": (("wire", address),), "labels": Labels("r"), **more}
        release = self.own._node.config.release
        return NodeRegister(
            incarnation=Incarnation(102),
            level_min=release.level_min,
            level_max=release.level_max,
            **said,
        )

    def member(self, folder: Path, address: str) -> Bindings:
        """Register the other node, and return what it is."""
        self._do(NodeRegister(incarnation=Incarnation(101), addresses=(), level_max=9))
        self._do(self.registration(address))
        return self._node(folder / "2", ASKED, 102, address)

    def move(self, address: str) -> None:
        self._do(self.registration(address))


def ask(
    scene: Scene,
    command: Callable[[str], NodeRegister],
    folder: Path,
    *,
    answers_as: int = ASKED,
    answers_with: int = 102,
    is_there: bool = True,
) -> None:
    """Have the leader look at a registration, while the node answers or not."""

    async def scenario() -> None:
        bindings: list[Bindings] = []

        def handle(request: Request) -> None:
            request.answer(bindings[0].consents(request.read(OwnRegistrationHeader)))

        server = await Server.listen(
            host=HOST,
            port=0,
            greeting=lambda: Hello(role=Role.PEER, node=answers_as, incarnation=answers_with),
            welcome=lambda _: Handlers(requests={int(Operation.OWN_REGISTRATION): handle}),
        )
        address = f"{HOST}:{server.port}"
        bindings.append(scene.member(folder, address))
        try:
            if not is_there:
                await server.drain(timeout_s=1.0)
            await scene.own.check_own(command(address))
        finally:
            await server.drain(timeout_s=1.0)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "changed",
    [{"addresses": EVIL}, {"labels": Labels("elsewhere")}, {"level_max": 1}],
    ids=["addresses", "labels", "level"],
)
def test_a_node_that_answers_has_to_have_said_so(
    tmp_path: Path, changed: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(tmp_path)

    def forged(address: str) -> NodeRegister:
        fields: dict[str, Any] = {"addresses": (("wire", address),), "labels": Labels("r")}
        return NodeRegister(
            incarnation=Incarnation(102),
            level_min=1,
            **({"level_max": LEVEL_MAX} | fields | changed),
        )

    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(AddressDisputed, match="only the node itself"),
    ):
        ask(scene, forged, tmp_path)
    [said] = [one.getMessage() for one in caplog.records if "refused" in one.getMessage()]
    assert "node 2 was to be registered at wire=" in said


def test_what_it_says_itself_is_no_change(tmp_path: Path) -> None:
    ask(Scene(tmp_path), lambda address: Scene(tmp_path).registration(address), tmp_path)


@pytest.mark.parametrize(
    "answering",
    [{"is_there": False}, {"answers_as": 7}, {"answers_with": 7}],
    ids=["nothing listens", "another node", "not the node, though it says so"],
)
def test_one_that_is_gone_or_whose_address_has_another_owner_may_be_elsewhere(
    tmp_path: Path, answering: dict[str, Any]
) -> None:
    scene = Scene(tmp_path)
    command = scene.registration(EVIL[0][1])
    ask(scene, lambda _: command, tmp_path, **answering)


def test_below_the_level_it_is_not_asked(tmp_path: Path) -> None:
    scene = Scene(tmp_path, level=BOUND_NAMES_LEVEL - 1)
    command = scene.registration(EVIL[0][1])
    ask(scene, lambda _: command, tmp_path)


def test_an_address_where_nothing_listens_delays_no_registration_for_long(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    port = ReservedPort()
    scene.member(tmp_path, f"{HOST}:{port.number}")
    asyncio.run(scene.own.check_own(scene.registration(EVIL[0][1])))
    port.release()


def test_a_node_says_where_it_was_moved_to_and_registers_again_if_that_is_wrong(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(tmp_path)
    theirs = scene.member(tmp_path, f"{HOST}:2")
    told: list[object] = []
    theirs.on_moved = lambda *moved: told.append(moved)
    theirs.changed()
    assert not told
    scene.move(f"{HOST}:9")
    with caplog.at_level(logging.WARNING):
        theirs.changed()
    assert told == [(ASKED, (("wire", f"{HOST}:2"),), EVIL)]
    assert scene.again == 1
    assert f"node 2 is registered at wire={HOST}:9 now, and was at wire={HOST}:2" in caplog.text
    assert "did not ask for that" in caplog.text
    caplog.clear()
    scene.move(f"{HOST}:2")
    theirs.changed()
    assert scene.again == 1, "it is where it says"
    assert "did not ask for that" not in caplog.text
