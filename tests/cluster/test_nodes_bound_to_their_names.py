"""A node's number belongs to the NAME in its certificate, and its addresses to the node itself."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from tests.certificates import CLUSTER, Folder

from angarium.api.audit import AUDIT_TOPIC
from angarium.client import Client, ClientSettings
from angarium.doors.status import Exit
from angarium.errors import JoinRefused
from angarium.ids import Incarnation
from angarium.node.joining import cluster_name
from angarium.node.release import BOUND_NAMES_LEVEL, Release
from angarium.security.tls import CertificateFiles, NodeTls, UntrustedNode
from angarium.testing.cluster import eventually
from angarium.testing.cluster.forgery import (
    ANOTHER_PROCESS,
    ELSEWHERE,
    greet,
    join_elsewhere,
    who_is,
)
from angarium.testing.cluster.other_release import program
from angarium.testing.cluster.processes import SMALL
from angarium.wire.errors import AddressDisputed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.running import ClusterOf, Run

    from angarium.testing.cluster import ProcessCluster
    from angarium.testing.cluster.processes import NodeProcess


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


async def addresses(cluster: ProcessCluster) -> list[dict[int, str]]:
    """Return where clients are led, as each running node says."""
    statuses = [await cluster.contact(one).status() for one in cluster.running]
    return [{int(node.id): node.addresses["wire"] for node in status.nodes} for status in statuses]


async def are_where_they_are(cluster: ProcessCluster) -> None:
    """Wait until clients are led to where nodes are, by every node."""
    where = {int(one): cluster.nodes[one].address for one in cluster.ids}

    async def told() -> bool:
        return await addresses(cluster) == [where] * len(cluster.running)

    await eventually(told, within_s=60.0, what="clients are led to where nodes are")


def test_a_stolen_certificate_moves_no_other_node(
    run: Run, cluster_of: ClusterOf, folder: Named
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, tls=folder.path) as cluster:
            first, _, third = cluster.ids
            victim = who_is(cluster.nodes[first])
            thief = folder.stolen("c")
            await are_where_they_are(cluster)
            for asked in cluster.ids:
                there = cluster.nodes[asked]
                with pytest.raises(JoinRefused, match="NAME"):
                    await join_elsewhere(there, first, victim.incarnation, tls=thief)
                # Nor with an empty disk.
                with pytest.raises(JoinRefused, match="NAME"):
                    await join_elsewhere(there, first, Incarnation(12_345), tls=thief)
            await cluster.settled()
            await are_where_they_are(cluster)

            said = cluster.nodes[first].log.read_text(encoding="utf-8")
            assert f"node 1 was to be registered at wire={ELSEWHERE} as c, and is at wire=" in said

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
                        await join_elsewhere(there, first, victim.incarnation, tls=thief)
                    return True

                await eventually(is_refused, within_s=60.0, what="the join is refused")
            cluster.restart(first)
            await cluster.back(first)
            await cluster.settled()
            await are_where_they_are(cluster)

    run(scenario())


@pytest.mark.parametrize("with_tls", [True, False])
def test_a_node_that_answers_is_not_registered_elsewhere_unasked(
    run: Run, cluster_of: ClusterOf, folder: Named, with_tls: bool
) -> None:
    """With the node's own certificate, or without TLS, its incarnation was all that it took."""

    async def scenario() -> None:
        async with cluster_of(3, tls=folder.path if with_tls else None) as cluster:
            thief = folder.stolen("a") if with_tls else None
            first = cluster.ids[0]
            process = cluster.nodes[first]
            victim = who_is(process)
            await are_where_they_are(cluster)
            for asked in cluster.ids:
                with pytest.raises(AddressDisputed, match="answers at"):
                    await join_elsewhere(cluster.nodes[asked], first, victim.incarnation, tls=thief)
            await are_where_they_are(cluster)
            # The node that it is about says so, with both addresses.
            said = process.log.read_text(encoding="utf-8")
            assert f"to be registered at wire={ELSEWHERE}" in said
            assert f"is at wire={process.address}: refused" in said

            # It may move itself: also all at once, and to a port that another one had.
            await cluster.move_all()
            for one in cluster.ids:
                await cluster.back(one)
            await cluster.stop_all()
            cluster.rotate_ports()
            joined = [node.address for node in cluster.nodes.values()]
            for one in cluster.ids:
                cluster.nodes[one].start(join=joined)
            for one in cluster.ids:
                await cluster.back(one)
            await cluster.settled()

            await are_where_they_are(cluster)
            assert f"is registered at wire={process.address} now, and was at wire=" in (
                process.log.read_text(encoding="utf-8")
            )

    run(scenario())


def test_a_node_that_was_registered_elsewhere_while_it_was_paused_takes_its_place_back(
    run: Run, cluster_of: ClusterOf
) -> None:
    """Without TLS, a node that does not answer can be spoken for; it notices, and says so."""

    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            asked, paused = cluster.ids[:2]
            process = cluster.nodes[paused]
            process.pause()

            async def joins() -> bool:  # the catalog may have to elect another leader first
                incarnation = who_is(process).incarnation
                await join_elsewhere(cluster.nodes[asked], paused, incarnation)
                return True

            await eventually(joins, within_s=60.0, what="the paused node is registered elsewhere")
            process.resume()
            await are_where_they_are(cluster)
            await cluster.settled()
            said = process.log.read_text(encoding="utf-8")
            moved = f"is registered at wire={ELSEWHERE} now, and was at wire={process.address}"
            assert f"{moved} before; this process did not ask for that" in said

    run(scenario())


def test_audit_records_say_where_a_node_was_and_where_it_was_to_be(
    run: Run, cluster_of: ClusterOf, folder: Named
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, tls=folder.path, users=True) as cluster:
            first = cluster.ids[0]
            process = cluster.nodes[first]
            victim, there = who_is(process), cluster.nodes[cluster.ids[1]]
            before = process.address
            with pytest.raises(JoinRefused, match="NAME"):
                await join_elsewhere(there, first, victim.incarnation, tls=folder.stolen("c"))
            with pytest.raises(AddressDisputed):
                await join_elsewhere(there, first, victim.incarnation, tls=folder.stolen("a"))
            process.terminate()
            await asyncio.to_thread(process.wait)
            cluster.move(first)
            cluster.restart(first)
            await cluster.ready(first)
            after = process.address
            recorded: dict[str, list[str]] = {}
            servers = [node.address for node in cluster.nodes.values()]
            settings = ClientSettings(tls=folder.options())
            wanted = {
                "join": [f"wire={ELSEWHERE}, before: wire={before}"] * 2,
                "change addresses": [f"wire={after}, before: wire={before}"],
            }
            async with (
                Client(*servers, settings=settings, login=cluster.login) as client,
                asyncio.timeout(60.0),
                client.subscribe(AUDIT_TOPIC, start="earliest") as records,
            ):
                async for one in records:
                    record = json.loads(one.value or b"{}")
                    is_about = record.get("resource") == str(first)
                    if is_about and "before: " in record.get("details", ""):
                        recorded.setdefault(record["what"], []).append(record["details"])
                    if recorded == wanted:
                        break

    run(scenario())


def test_a_removed_name_and_a_removed_disk_do_not_come_back_by_themselves(
    run: Run, cluster_of: ClusterOf, folder: Named
) -> None:
    async def scenario() -> None:
        async with cluster_of(4, tls=folder.path) as cluster:
            gone = cluster.ids[3]
            process = cluster.nodes.pop(gone)
            removed = who_is(process)
            helper = cluster.contact(cluster.ids[0])

            async def is_removed() -> bool:
                await helper.remove(gone)
                return len((await helper.status()).nodes) == 3

            await eventually(is_removed, within_s=60.0, what="the node is removed")
            assert await asyncio.to_thread(lambda: process.wait(within_s=60.0)) == Exit.REMOVED
            members = [cluster.nodes[one].address for one in cluster.ids]
            # Not with what it had, under no number, and whatever certificate is shown.
            for name, why in (
                (process.name, "was removed from the cluster with node 4"),
                ("a", "before it was removed"),
            ):
                with pytest.raises(JoinRefused, match=why):
                    await join_elsewhere(
                        cluster.nodes[cluster.ids[0]],
                        None,
                        removed.incarnation,
                        tls=folder.stolen(name),
                    )
            # With an empty folder, like a pod that is scaled away and back, it needs a token.
            process.wipe()
            process.id = None
            process.start(join=members)
            assert await asyncio.to_thread(lambda: process.wait(within_s=60.0)) == Exit.DENIED
            assert "was removed from the cluster with node 4" in process.last_words()
            process.join_token = await helper.join_token()
            process.start(join=members)
            assert await cluster._know(process) == 5
            await cluster.settled()

    run(scenario())


def test_another_name_for_a_number_takes_a_join_token(
    run: Run, cluster_of: ClusterOf, folder: Named
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, tls=folder.path) as cluster:
            last = cluster.ids[2]
            process = cluster.nodes[last]
            # A running node keeps the NAME it began with, whatever is put in its files.
            folder.name(process.name, "other")

            async def says_so() -> bool:
                return "a renewed certificate keeps its name" in process.last_words()

            await eventually(says_so, within_s=60.0, what="the node refuses the certificate")
            process.terminate()
            await asyncio.to_thread(process.wait)
            cluster.restart(last)

            async def is_kept_out() -> bool:
                return f"is bound to the NAME {process.name}" in process.last_words()

            await eventually(is_kept_out, within_s=60.0, what="the node says why it is kept out")
            process.terminate()
            await asyncio.to_thread(process.wait)
            process.join_token = await (await cluster.someone()).join_token()
            cluster.restart(last)
            await cluster.ready(last)
            await cluster.settled()
            # From here on it is known by that NAME, and by the former one no more.
            process.join_token = ""
            process.terminate()
            await asyncio.to_thread(process.wait)
            cluster.restart(last)
            await cluster.ready(last)
            folder.name("d", process.name)
            with pytest.raises(JoinRefused, match="NAME other"):
                await join_elsewhere(
                    cluster.nodes[cluster.ids[0]],
                    last,
                    who_is(process).incarnation,
                    tls=folder.stolen("d"),
                )

    run(scenario())


def test_a_node_that_is_alone_lets_itself_have_another_name(
    run: Run, cluster_of: ClusterOf, folder: Named
) -> None:
    async def scenario() -> None:
        async with cluster_of(1, tls=folder.path) as cluster:
            [only] = cluster.ids
            process = cluster.nodes[only]
            token = await cluster.contact(only).join_token()
            folder.name("a", "other")
            for brought, said in (("", "is bound to the NAME a"), (token, "member")):
                process.terminate()
                await asyncio.to_thread(process.wait)
                process.join_token = brought
                process.start()
                await cluster.ready(only)

                async def says_so(said: str = said) -> bool:
                    return said in process.last_words()

                await eventually(says_so, within_s=60.0, what="the node says what it is")
            # Another node dials it under the NAME that it has now.
            added = await cluster.add()
            await cluster.settled()
            assert added == 2

    run(scenario())


def test_nodes_of_before_are_bound_when_the_level_is_raised(
    run: Run, cluster_of: ClusterOf, folder: Named
) -> None:
    async def scenario() -> None:
        before = program(Release(software="0.8", level_max=BOUND_NAMES_LEVEL - 1))
        async with cluster_of(3, tls=folder.path, program=before) as cluster:
            first = cluster.ids[0]
            victim = who_is(cluster.nodes[first])
            for one in cluster.ids:
                cluster.nodes[one].terminate()
                await asyncio.to_thread(cluster.nodes[one].wait)
                cluster.nodes[one].program = SMALL
                cluster.restart(one)
                await cluster.back(one)
                await cluster.settled()
            # Below the level it is as it was before: the incarnation is enough.
            assert (await cluster.contact(first).status()).feature_level < BOUND_NAMES_LEVEL
            await join_elsewhere(
                cluster.nodes[first], first, victim.incarnation, tls=folder.stolen("c")
            )
            cluster.nodes[first].terminate()
            await asyncio.to_thread(cluster.nodes[first].wait)
            cluster.restart(first)
            await cluster.back(first)
            await cluster.settled()

            async def raised() -> bool:
                return await cluster.contact(first).raise_level() >= BOUND_NAMES_LEVEL

            await eventually(raised, within_s=60.0, what="the level is raised")

            async def is_bound() -> bool:
                try:
                    await join_elsewhere(
                        cluster.nodes[first], first, victim.incarnation, tls=folder.stolen("c")
                    )
                except AddressDisputed:
                    return False  # not yet
                except JoinRefused as refused:
                    return "NAME a" in str(refused)
                return False

            await eventually(is_bound, within_s=60.0, what="the node is bound to its NAME")
            await cluster.settled()

    run(scenario())
