"""Only a process on a copy of the folder can make a node believe that it is one of two."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from angarium.ids import NodeId
from angarium.log.memory_disk import MemoryDisk
from angarium.node.rivals import Rivals
from angarium.wire import Hello, Role, Server
from angarium.wire.errors import NodeIsAlive
from angarium.wire.handlers import Handlers
from angarium.wire.operations import Operation, SameFolderAnswer, SameFolderHeader

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.node.node import Node
    from angarium.wire import Request

HOST = "127.0.0.1"


def rivals(disk: MemoryDisk, *, process: int) -> Rivals:
    config = SimpleNamespace(tls=None)
    addresses = {"wire": f"{HOST}:1"}
    node = SimpleNamespace(id=NodeId(3), process=process, addresses=addresses, config=config)
    found = Rivals(cast("Node", node), disk)
    found.load()
    return found


def look(ours: Rivals, answer: Callable[[bytes], SameFolderAnswer]) -> None:
    """Let a node ask somebody who answers like this."""

    async def scenario() -> None:
        async def handle(request: Request) -> None:
            request.answer(answer(request.read(SameFolderHeader).nonce))

        server = await Server.listen(
            host=HOST,
            port=0,
            greeting=lambda: Hello(role=Role.PEER, node=3),
            welcome=lambda _: Handlers(requests={int(Operation.SAME_FOLDER): handle}),
        )
        try:
            await ours.look_at(f"{HOST}:{server.port}")
        finally:
            await server.drain(timeout_s=1.0)

    asyncio.run(scenario())


def test_a_process_on_a_copy_of_the_folder_is_believed() -> None:
    disk = MemoryDisk()
    ours, theirs = rivals(disk, process=1), rivals(disk, process=2)
    with pytest.raises(NodeIsAlive, match="this data folder is a copy"):
        look(ours, theirs.prove)


def test_somebody_who_does_not_know_the_folders_secret_is_not() -> None:
    ours, stranger = rivals(MemoryDisk(), process=1), rivals(MemoryDisk(), process=2)
    look(ours, stranger.prove)


def test_what_this_node_said_itself_proves_nothing_in_the_mouth_of_another() -> None:
    ours = rivals(MemoryDisk(), process=1)
    look(ours, ours.prove)
    look(ours, lambda nonce: SameFolderAnswer(2, ours.prove(nonce).proof))
