"""A cluster whose nodes prove to each other what they are; nobody else gets a word in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.certificates import CLUSTER, Folder, authority

from angarium.client import Client, ClientSettings
from angarium.errors import AngariumError
from angarium.ids import Incarnation
from angarium.node.joining import cluster_name
from angarium.security.tls import ClientTls, NodeTls, UntrustedNode
from angarium.testing.cluster import eventually
from angarium.testing.cluster.forgery import who_is
from angarium.testing.reserved_port import HOST
from angarium.wire import Hello, Role, dial
from angarium.wire.errors import HandshakeRefused, TlsMismatch
from angarium.wire.operations import JoinHeader, Operation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.running import ClusterOf, Run

    from angarium.testing.cluster import ProcessCluster

RECORDS_PER_ROUND = 200
CHANGES = 3


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.pair("node", uri=f"angarium://{CLUSTER}/node/any")
    return made


def addresses(cluster: ProcessCluster) -> list[str]:
    return [node.address for node in cluster.nodes.values()]


def test_certificates_change_under_load_and_no_publish_fails(
    run: Run, cluster_of: ClusterOf, folder: Folder
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, tls=folder.path) as cluster:
            settings = ClientSettings(tls=folder.options())
            async with Client(*addresses(cluster), settings=settings) as client:
                await client.create_topic("orders", partitions=3)
                published = 0
                for change in range(CHANGES):
                    folder.pair("node", uri=f"angarium://{CLUSTER}/node/any")
                    until = asyncio.get_running_loop().time() + 1.5
                    while asyncio.get_running_loop().time() < until:
                        values = [f"{change}"] * RECORDS_PER_ROUND
                        await client.publish_batch("orders", values)
                        published += len(values)
                        # Somebody new comes in meanwhile, by whatever certificate is shown now.
                        async with Client(*addresses(cluster), settings=settings) as another:
                            await another.publish("orders", b"another")
                        published += 1
                # A node that comes back dials with the newest and is taken back by the others.
                first = cluster.ids[0]
                cluster.nodes[first].kill()
                cluster.restart(first)
                await cluster.back(first)
                await cluster.settled()
                read = 0
                async with client.subscribe("orders", start="earliest") as records:
                    async for _ in records:
                        read += 1
                        if read == published:
                            break
            for node in cluster.nodes.values():
                assert '"took new certificates"' in node.log.read_text(encoding="utf-8")

    run(scenario())


def test_nobody_without_a_node_certificate_is_taken_for_a_node(
    run: Run, cluster_of: ClusterOf, folder: Folder, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, tls=folder.path) as cluster:
            node = cluster.nodes[cluster.ids[0]]
            known = who_is(cluster.nodes[cluster.ids[1]])
            forged = Hello(
                role=Role.PEER,
                cluster=cluster_name(known),
                node=known.node_id,
                incarnation=known.incarnation,
                features={"machine": 99},
            )
            port = node.port.number
            # In plaintext, as a client, with a client's certificate, by another authority.
            with pytest.raises(TlsMismatch):
                await dial(host=HOST, port=port, hello=forged)
            alice = ClientTls(folder.options(folder.client("alice")))
            for tls in (ClientTls(folder.options()), alice):
                with pytest.raises(UntrustedNode, match="no node certificate of this cluster"):
                    await dial(host=HOST, port=port, hello=forged, tls=tls)
            beside = tmp_path / "beside"
            beside.mkdir()
            elsewhere = Folder(beside, authority("another authority"))
            stranger = NodeTls(elsewhere.files(elsewhere.node("evil")))
            with pytest.raises(HandshakeRefused):
                await dial(host=HOST, port=port, hello=forged, tls=stranger)

            # A client may be one, and may not ask to be let in.
            client = await dial(host=HOST, port=port, hello=Hello(role=Role.CLIENT), tls=alice)
            wish = JoinHeader(None, Incarnation(7), (("wire", f"{HOST}:1"),), "", "", "", 1, 99)
            with pytest.raises(UntrustedNode, match="no node certificate"):
                await client.request(Operation.JOIN, wish, timeout_s=30.0)
            await client.close()

            status = await cluster.contact(cluster.ids[0]).status()
            assert len(status.nodes) == 3
            await cluster.settled()

            # Somebody with a certificate of the cluster's own authority is let in.
            added = await cluster.add()
            assert added in cluster.ids

    run(scenario())


def test_a_node_without_tls_is_told_what_it_lacks(
    run: Run, cluster_of: ClusterOf, folder: Folder
) -> None:
    async def scenario() -> None:
        async with cluster_of(1, tls=folder.path) as cluster:
            node = cluster.prepare()
            node._tls = None
            node.start(join=[cluster.nodes[cluster.ids[0]].address])

            async def has_ended() -> bool:
                return not node.is_running

            await eventually(has_ended, within_s=60.0, what="the node gives up")
            assert "speaks TLS, and it was dialled without" in node.last_words()
            with pytest.raises(AngariumError):
                await dial(host=HOST, port=node.port.number, hello=Hello(role=Role.CLIENT))

    run(scenario())
