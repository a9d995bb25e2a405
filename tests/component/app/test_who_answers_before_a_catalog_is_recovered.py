"""Before a catalog is recovered: who lives is told from who does not, whatever is shown to it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import uvloop
from tests.certificates import Folder, authority

from angarium.app import recovered_catalog
from angarium.app.recovered_catalog import SOMEBODY, Looked, OtherNode
from angarium.ids import Index, NodeId, Term
from angarium.node.succession import End
from angarium.security.tls import Door, NodeTls
from angarium.testing.reserved_port import HOST, ReservedPort
from angarium.wire import Handlers, Hello, Role, Server

if TYPE_CHECKING:
    from pathlib import Path

CLUSTER_ID = "c1"


def test_who_does_not_believe_our_certificate_lives_all_the_same(tmp_path: Path) -> None:
    """It leaves without a word, which counted as nobody: with a certificate less was known."""
    folder = Folder(tmp_path)
    ours = NodeTls(folder.files(folder.node("ours")))
    foreign = NodeTls(folder.files(folder.node("foreign", whose=authority("somebody else"))))

    async def story() -> None:
        server = await Server.listen(
            host=HOST,
            port=0,
            greeting=lambda: Hello(role=Role.PEER, cluster=CLUSTER_ID, node=2),
            welcome=lambda _: Handlers(),
            tls=folder.node_tls().listener(Door.WIRE),
        )
        nobodys = ReservedPort()
        try:
            looked = _looked(server.port, nobodys.number)
            known = await recovered_catalog._asked(looked, ours)
            assert "node 2" in known.objection
            strange = await recovered_catalog._asked(looked, foreign)
        finally:
            nobodys.release()
            await server.drain(timeout_s=2.0)
        there, nobody = strange.others
        assert there.answers.startswith(SOMEBODY)
        assert nobody.answers == ""

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(story())


def _looked(*ports: int) -> Looked:
    return Looked(
        node=NodeId(1),
        cluster=CLUSTER_ID,
        end=End(Term(1), Index(1)),
        commit=Index(1),
        voters=(NodeId(1), NodeId(2), NodeId(3)),
        topics=0,
        users=0,
        changed_at=0,
        others=tuple(
            OtherNode(node=NodeId(number), address=f"{HOST}:{port}", votes=True, answers="")
            for number, port in enumerate(ports, 2)
        ),
        code="1f0a93c7",
    )
