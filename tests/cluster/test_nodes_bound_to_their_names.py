"""A node's number belongs to the NAME in its certificate, and its addresses to the node itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.certificates import CLUSTER, Folder

from angarium.errors import JoinRefused
from angarium.ids import Incarnation, NodeId
from angarium.node.joining import cluster_name
from angarium.security.tls import CertificateFiles, NodeTls, UntrustedNode
from angarium.testing.cluster import eventually
from angarium.testing.cluster.forgery import ANOTHER_PROCESS, greet, who_is
from angarium.testing.reserved_port import HOST
from angarium.wire import Hello, Role, dial
from angarium.wire.operations import JoinHeader, Operation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.running import ClusterOf, Run

    from angarium.testing.cluster import ProcessCluster
    from angarium.testing.cluster.processes import NodeProcess

ELSEWHERE = f"{HOST}:9"
"""Where an attacker would have clients go."""


class Named(Folder):
    """Certificates of which each node has one of its own, in a folder of its own name."""

    def __init__(self, path: Path, *nodes: str) -> None:
        super().__init__(path)
        for node in nodes:
            self.name(node, node)

    def name(self, node: str, name: str) -> None:
        """Give a node a new certificate for NAME."""
        (self.path / node).mkdir(exist_ok=True)
        own = Folder(self.path / node, self.authority)
        own.pair("node", uri=f"angarium://{CLUSTER}/node/{name}")

    def stolen(self, node: str) -> NodeTls:
        """Return what a thief of a node's key dials with."""
        folder = self.path / node
        return NodeTls(
            CertificateFiles(
                certificate=folder / "node.crt", key=folder / "node.key", authorities=self.ca
            )
        )


@pytest.fixture
def folder(tmp_path: Path) -> Named:
    (tmp_path / "tls").mkdir()
    return Named(tmp_path / "tls", "a", "b", "c", "d")


async def joins(there: NodeProcess, tls: NodeTls | None, node: int, incarnation: int) -> None:
    """Ask to be let in as a node that is elsewhere now; raises why not."""
    connection = await dial(
        host=HOST, port=there.port.number, hello=Hello(role=Role.CLIENT), tls=tls
    )
    try:
        wish = JoinHeader(
            NodeId(node), Incarnation(incarnation), (("wire", ELSEWHERE),), "", "", "", 1, 99
        )
        await connection.request(Operation.JOIN, wish, timeout_s=30.0)
    finally:
        await connection.close()


async def addresses(cluster: ProcessCluster) -> dict[int, str]:
    """Return where clients are led, as every running node says."""
    told = []
    for one in cluster.running:
        status = await cluster.contact(one).status()
        told.append({int(node.id): node.addresses["wire"] for node in status.nodes})
    assert all(one == told[0] for one in told), told
    return told[0]


def test_a_stolen_certificate_moves_no_other_node(
    run: Run, cluster_of: ClusterOf, folder: Named
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, tls=folder.path) as cluster:
            first, _, third = cluster.ids
            victim = who_is(cluster.nodes[first])
            thief = folder.stolen("c")
            before = await addresses(cluster)
            for asked in cluster.ids:
                there = cluster.nodes[asked]
                with pytest.raises(JoinRefused, match="NAME"):
                    await joins(there, thief, first, victim.incarnation)
                # Nor with an empty disk, nor with the certificate that it belongs to.
                with pytest.raises(JoinRefused, match="NAME"):
                    await joins(there, thief, first, 12_345)
            assert await addresses(cluster) == before
            await cluster.settled()

            # While the node is down its number is still not to be had by another certificate.
            cluster.nodes[first].kill()
            for asked in (cluster.ids[1], third):
                there = cluster.nodes[asked]
                with pytest.raises(UntrustedNode, match="NAME"):
                    await greet(
                        there,
                        tls=thief,
                        cluster=cluster_name(victim),
                        node=victim.node_id,
                        incarnation=victim.incarnation,
                        process=ANOTHER_PROCESS,
                    )

                async def is_refused(there: NodeProcess = there) -> bool:
                    # Until another node leads the catalog, it may be busy electing.
                    with pytest.raises(JoinRefused, match="NAME"):
                        await joins(there, thief, first, victim.incarnation)
                    return True

                await eventually(is_refused, within_s=60.0, what="the join is refused")
            cluster.restart(first)
            await cluster.back(first)
            await cluster.settled()
            assert await addresses(cluster) == before

    run(scenario())
