"""A new node comes in with a join token where everybody has to prove who they are."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from tests.certificates import CLUSTER, Folder
from tests.cluster.command_line import COMMAND, environment

from angarium.client import Client, ClientSettings
from angarium.doors.status import Exit
from angarium.errors import JoinRefused
from angarium.ids import Incarnation
from angarium.security.tls import NodeTls
from angarium.security.tokens import new_join_token
from angarium.testing.cluster import eventually
from angarium.testing.cluster.cluster import ADMIN
from angarium.testing.cluster.forgery import who_is
from angarium.testing.reserved_port import HOST
from angarium.wire import Hello, Role, dial
from angarium.wire.operations import JoinHeader, Operation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.running import ClusterOf, Run

    from angarium.api import ClusterStatus
    from angarium.testing.cluster import NodeProcess, ProcessCluster

ENDS_S_MAX = 120.0


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.pair("node", uri=f"angarium://{CLUSTER}/node/any")
    return made


async def status_of(cluster: ProcessCluster) -> ClusterStatus:
    return await (await cluster.someone()).status()


async def refused(node: NodeProcess, why: str) -> None:
    """Wait until a node has given up, and see that it says why."""

    async def has_ended() -> bool:
        return not node.is_running

    await eventually(has_ended, within_s=ENDS_S_MAX, what="the node gives up")
    assert node.exit_status == Exit.DENIED, node.last_words()
    assert why in node.last_words()
    assert not (node.data / "identity").exists(), "it became nobody"


async def command(cluster: ProcessCluster, folder: Folder, *words: str) -> str:
    """Run the command as the administrator."""
    who = ADMIN.as_environment() | {"ANGARIUM_TLS_CA": str(folder.ca)}
    servers = {"ANGARIUM_SERVERS": cluster.nodes[cluster.ids[0]].address}
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *words,
        env=environment() | who | servers,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, errors
    return out.decode()


def test_one_token_lets_one_node_in_whoever_else_has_it(
    run: Run, cluster_of: ClusterOf, folder: Folder
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, tls=folder.path, users=True) as cluster:
            token = (await command(cluster, folder, "cluster", "invite")).strip()
            members = cluster._addresses()
            # Two ask at once, with one token, and different nodes.
            pair = [cluster.prepare(), cluster.prepare()]
            for node, member in zip(pair, members, strict=False):
                node.join_token = token
                node.start(join=[member])

            async def one_is_in() -> bool:
                return len((await status_of(cluster)).nodes) == 4

            await eventually(one_is_in, within_s=ENDS_S_MAX, what="one of two is let in")

            async def one_has_ended() -> NodeProcess | None:
                return next((node for node in pair if not node.is_running), None)

            loser = await eventually(one_has_ended, within_s=ENDS_S_MAX, what="the other gives up")
            assert loser is not None
            await refused(loser, "used already, by node 4")
            assert len((await status_of(cluster)).nodes) == 4
            listed = json.loads(
                await command(cluster, folder, "--format", "json", "cluster", "invitations")
            )
            assert [one["used_by"] for one in listed][-1] == 4
            assert token not in json.dumps(listed)
            table = await command(cluster, folder, "cluster", "invitations")
            assert "used by node 4" in table
            # Nor does it help to be of an age: withdrawn, forged, missing.
            second = (
                await command(cluster, folder, "cluster", "invite", "--expires", "1h")
            ).strip()
            await command(cluster, folder, "cluster", "uninvite", str(listed[-1]["id"] + 1))
            for text, why in (
                (second, "unknown, was withdrawn, or has expired"),
                (new_join_token().reveal(), "`angarium cluster invite` makes another one"),
                ("x" * 200, "unknown"),
                ("", "comes into this cluster with a join token"),
            ):
                stranger = cluster.prepare()
                stranger.join_token = text
                stranger.start(join=members)
                await refused(stranger, why)
                if text:
                    assert text not in stranger.log.read_text()
            after = await status_of(cluster)
            assert len(after.nodes) == 4
            for one in cluster.nodes.values():
                logged = one.log.read_text()
                assert token not in logged
                assert second not in logged

    run(scenario())


def test_a_replaced_disk_needs_a_token_and_a_node_with_its_data_needs_none(
    run: Run, cluster_of: ClusterOf, folder: Folder
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, tls=folder.path, users=True) as cluster:
            settings = ClientSettings(tls=folder.options())
            addresses = cluster._addresses()
            async with Client(*addresses, settings=settings, login=cluster.login) as client:
                await client.create_topic("orders", partitions=1)
                for number in range(20):
                    await client.publish("orders", b"%d" % number)
                # Every address changes, and all find each other without any token.
                for node in cluster.nodes.values():
                    node.join_token = ""
            await cluster.move_all()
            for one in cluster.ids:
                await cluster.ready(one)
            last = cluster.ids[-1]
            node = cluster.nodes[last]
            node.terminate()
            await asyncio.to_thread(node.wait)
            node.wipe()
            cluster.restart(last)
            await refused(node, "comes into this cluster with a join token")
            await cluster.invite(node)
            cluster.restart(last)
            await cluster.ready(last, within_s=ENDS_S_MAX)
            await cluster.settled()
            status = await status_of(cluster)
            assert [one.id for one in status.nodes] == [1, 2, 3]
            addresses = cluster._addresses()
            async with Client(*addresses, settings=settings, login=cluster.login) as client:

                async def has_all() -> bool:
                    found = await client.describe_topic("orders")
                    return found.partitions[0].end_offset == 20

                await eventually(has_all, within_s=ENDS_S_MAX, what="all 20 records are told of")

    run(scenario())


def test_without_certificates_a_token_is_what_lets_a_trusted_node_in(
    run: Run, cluster_of: ClusterOf, tmp_path: Path
) -> None:
    """`trust_peers` goes without certificates, not without an invitation."""

    async def scenario() -> None:
        async with cluster_of(2, users=True) as cluster:
            first = cluster.nodes[cluster.ids[0]]
            stranger = await dial(host=HOST, port=first.port.number, hello=Hello(role=Role.CLIENT))
            wish = JoinHeader(None, Incarnation(7), (("wire", f"{HOST}:1"),), "", "", "", 1, 99)
            with pytest.raises(JoinRefused, match="angarium cluster invite"):
                await stranger.request(Operation.JOIN, wish, timeout_s=30.0)
            # Not even in the place of a node that is there, or of one that is down.
            known = who_is(cluster.nodes[cluster.ids[1]])
            for incarnation in (known.incarnation + 1, who_is(first).incarnation):
                instead = JoinHeader(
                    known.node_id,
                    Incarnation(incarnation),
                    (("wire", f"{HOST}:1"),),
                    "",
                    "",
                    "",
                    1,
                    99,
                )
                with pytest.raises(JoinRefused):
                    await stranger.request(Operation.JOIN, instead, timeout_s=30.0)
            await stranger.close()
            assert len((await status_of(cluster)).nodes) == 2
            assert await cluster.add() == 3

    run(scenario())


def test_a_certificate_of_a_node_alone_lets_nobody_in(
    run: Run, cluster_of: ClusterOf, folder: Folder
) -> None:
    async def scenario() -> None:
        async with cluster_of(1, tls=folder.path, users=True) as cluster:
            port = cluster.nodes[cluster.ids[0]].port.number
            tls = NodeTls(folder.files(folder.node("stolen")))
            thief = await dial(host=HOST, port=port, hello=Hello(role=Role.CLIENT), tls=tls)
            wish = JoinHeader(None, Incarnation(7), (("wire", f"{HOST}:1"),), "", "", "", 1, 99)
            with pytest.raises(JoinRefused):
                await thief.request(Operation.JOIN, wish, timeout_s=30.0)
            await thief.close()
            assert len((await status_of(cluster)).nodes) == 1

    run(scenario())
