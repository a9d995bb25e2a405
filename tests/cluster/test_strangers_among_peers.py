"""Nobody becomes a peer by saying so, nobody takes a living node's place, and nothing forged ends
a process or a term."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import pytest
from msgspec import UNSET

from angarium.doors.status import Exit
from angarium.errors import AngariumError
from angarium.ids import Incarnation
from angarium.node.joining import cluster_name
from angarium.testing.cluster import Load, eventually
from angarium.testing.cluster.forgery import forge, greet, greet_as, who_is
from angarium.testing.cluster.processes import NodeProcess
from angarium.testing.cluster.waiting import now_micros
from angarium.testing.reserved_port import HOST
from angarium.wire import HandshakeRefused, Hello, Role, Unreachable, dial
from angarium.wire.errors import NodeIsAlive, NotRegistered
from angarium.wire.operations import JoinHeader, Operation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.running import ClusterOf, Run

    from angarium.wire import Connection


def test_nobody_becomes_a_peer_by_saying_so(run: Run, cluster_of: ClusterOf) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            first, second, _ = cluster.ids
            cluster_id = cluster_name(who_is(cluster.nodes[first]))
            with pytest.raises(HandshakeRefused):
                await greet(cluster.nodes[first])
            with pytest.raises(HandshakeRefused):
                await greet(cluster.nodes[first], cluster=cluster_id)
            with pytest.raises(NotRegistered):
                await greet(cluster.nodes[first], cluster=cluster_id, node=77, incarnation=5)
            with pytest.raises(AngariumError):  # by the leader for good, by the others for now
                await greet(cluster.nodes[first], cluster=cluster_id, node=second, incarnation=5)

            # Not even with everything that is in its folder, while it lives itself.
            known = who_is(cluster.nodes[second])

            async def is_found_out() -> bool:
                with pytest.raises(AngariumError) as refused:
                    await greet_as(cluster.nodes[first], known)
                return isinstance(refused.value, NodeIsAlive)

            await eventually(is_found_out, within_s=60.0, what="the copy is found out")
            await cluster.settled()

    run(scenario())


def test_forged_frames_end_neither_processes_nor_terms(run: Run, cluster_of: ClusterOf) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders")
            first, second, third = cluster.ids
            async with Load(cluster, topic="orders", partitions=1, producers=2) as load:
                await load.acknowledged_after(now_micros())
                # The one whose name is used is down: there is nobody to find the stranger out.
                cluster.nodes[third].kill()
                forged = who_is(cluster.nodes[third])
                for node in (first, second):
                    there = cluster.nodes[node]

                    async def greets(there: NodeProcess = there) -> Connection:
                        return await greet_as(there, forged)

                    stranger = await eventually(greets, within_s=60.0, what="it is let in")
                    forge(stranger, there, forged, load.groups.values())
                    await stranger.close()
                await load.acknowledged_after(now_micros())
                for node in (first, second):
                    there = cluster.nodes[node]
                    assert there.is_running

                    async def says_so(there: NodeProcess = there) -> bool:
                        return "was not believed" in there.log.read_text(encoding="utf-8")

                    await eventually(says_so, what="the log tells of it")
                cluster.restart(third)
                await cluster.back(third)
                await cluster.settled(topics=["orders"])
                verdict = await load.conclude()
            assert verdict.violations == []

    run(scenario())


def test_joining_under_a_living_nodes_id_is_refused(run: Run, cluster_of: ClusterOf) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            for asked in cluster.ids:
                for taken in cluster.ids:
                    client = await dial(
                        host=HOST,
                        port=cluster.nodes[asked].port.number,
                        hello=Hello(role=Role.CLIENT),
                    )
                    join = JoinHeader(
                        taken, Incarnation(12_345), (("wire", "127.0.0.1:1"),), "", "", "", 1, 99
                    )
                    with pytest.raises(NodeIsAlive) as refused:
                        await client.request(Operation.JOIN, join, timeout_s=30.0)
                    assert "stop it first" in str(refused.value)
                    await client.close()
            await cluster.settled()
            assert cluster.running == cluster.ids

            # One that is down, and has lost its data, is let in under its id as ever.
            last = cluster.ids[2]
            cluster.nodes[last].kill()
            cluster.nodes[last].wipe()
            cluster.restart(last)
            await cluster.back(last)
            await cluster.settled()

    run(scenario())


def test_clients_are_not_told_what_makes_a_node_known(run: Run, cluster_of: ClusterOf) -> None:
    async def scenario() -> None:
        async with cluster_of(1) as cluster:
            (node,) = cluster.nodes.values()
            client = await dial(host=HOST, port=node.port.number, hello=Hello(role=Role.CLIENT))
            told = client.peer.hello
            assert told.cluster == cluster_name(who_is(node))
            assert (told.incarnation, told.process, told.log_end) == (0, UNSET, UNSET)
            await client.close()

    run(scenario())


@pytest.mark.parametrize("comes_back", ["where it was", "elsewhere"])
def test_a_node_that_was_down_is_not_ended_by_who_spoke_in_its_name(
    run: Run, cluster_of: ClusterOf, comes_back: str
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            *others, third = cluster.ids
            process = cluster.nodes[third]
            process.kill()
            forged = who_is(process)
            strangers = []
            for node in others:
                there = cluster.nodes[node]

                async def greets(there: NodeProcess = there) -> Connection:
                    return await greet_as(there, forged)

                strangers.append(await eventually(greets, within_s=60.0, what="it is let in"))
            if comes_back == "elsewhere":
                # Nobody can tell the two apart: the node waits, and says so.
                cluster.move(third)
                cluster.restart(third)

                async def says_so() -> bool:
                    assert process.is_running
                    return "another process says that it is this node" in process.last_words()

                await eventually(says_so, within_s=60.0, what="the node says who keeps it out")
                for stranger in strangers:
                    await stranger.close()
            else:
                cluster.restart(third)
            await cluster.back(third)
            await cluster.settled()
            assert process.is_running

            async def are_cut() -> bool:
                return not any(stranger.is_open for stranger in strangers)

            await eventually(are_cut, what="who spoke in its name is cut off")

    run(scenario())


@pytest.mark.parametrize("nodes", [1, 3])
def test_a_copied_folder_of_a_living_node_is_no_second_node(
    run: Run, cluster_of: ClusterOf, tmp_path: Path, nodes: int
) -> None:
    async def scenario() -> None:
        async with cluster_of(nodes) as cluster:
            node = cluster.ids[-1]
            original = cluster.nodes[node]
            original.terminate()
            await asyncio.to_thread(original.wait)
            copied = tmp_path / "copy"
            shutil.copytree(original.data, copied)
            cluster.restart(node)
            await cluster.back(node)
            await cluster.settled()

            copy = NodeProcess(name="copy", folder=tmp_path, data=copied)
            copy.start(join=[cluster.nodes[cluster.ids[0]].address])
            try:
                assert await asyncio.to_thread(lambda: copy.wait(within_s=60.0)) == Exit.CONFLICT
            finally:
                copy.end()
            assert "this data folder is a copy" in copy.last_words().splitlines()[-1]
            assert original.is_running
            await cluster.settled()

    run(scenario())


def test_a_node_that_is_removed_while_it_runs_hears_of_it_and_ends(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(4) as cluster:
            gone = cluster.ids[3]
            helper = cluster.contact(cluster.ids[0])

            async def is_removed() -> bool:
                await helper.remove(gone)
                return len((await helper.status()).nodes) == 3

            await eventually(is_removed, within_s=60.0, what="the node is removed")
            process = cluster.nodes[gone]
            assert await asyncio.to_thread(lambda: process.wait(within_s=60.0)) == Exit.REMOVED
            sentence = process.last_words().splitlines()[-1]
            assert "was removed from its cluster" in sentence
            assert "Traceback" not in process.last_words()

            # Starting it again changes nothing, and its id is not to be had any more.
            cluster.restart(gone)
            assert await asyncio.to_thread(lambda: process.wait(within_s=60.0)) == Exit.REMOVED
            process.wipe()
            cluster.restart(gone)
            assert await asyncio.to_thread(lambda: process.wait(within_s=60.0)) == Exit.REMOVED
            with pytest.raises(Unreachable):
                await cluster.contact(gone).status()

    run(scenario())
