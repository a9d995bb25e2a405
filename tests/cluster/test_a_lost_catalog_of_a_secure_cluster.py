"""The catalog's majority is lost where everybody has to prove who they are, and all is recorded."""

from __future__ import annotations

import asyncio
import re
import shutil
from typing import TYPE_CHECKING

import pytest
from tests.certificates import CLUSTER, Folder
from tests.cluster.command_line import ran

from angarium.api.audit import AUDIT_TOPIC
from angarium.client import Client, ClientSettings
from angarium.client.login import LoginOptions
from angarium.security import Secret
from angarium.testing.cluster import eventually
from angarium.testing.cluster.cluster import ADMIN
from angarium.testing.reserved_port import HOST

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.cluster.running import ClusterOf, Run

    from angarium.testing.cluster import NodeProcess, ProcessCluster

PASSWORD = "alices password"
ALICE = LoginOptions(user="alice", password=Secret(PASSWORD))
CODE = re.compile(r"--confirm ([0-9a-f]{8})$", re.MULTILINE)
QUICK = {"recover_after_s": 2}
RECORDS = 10


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.pair("node", uri=f"angarium://{CLUSTER}/node/any")
    return made


def test_a_secure_cluster_goes_on_with_one_disk_and_records_who_did_it(
    run: Run, cluster_of: ClusterOf, folder: Folder, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with cluster_of(3, tls=folder.path, users=True, settings=QUICK) as cluster:
            survivor, *dead = cluster.ids
            home = cluster.nodes[survivor]
            settings = ClientSettings(tls=folder.options())
            async with Client(home.address, settings=settings, login=cluster.login) as client:
                roles = ["publisher", "subscriber"]
                await client.create_user(ALICE.user, password=PASSWORD, roles=roles)
                await client.create_join_token()
            await cluster.create_topic("orders")
            sent = [b"%d" % one for one in range(RECORDS)]
            async with Client(home.address, settings=settings, login=ALICE.login()) as alice:
                for value in sent:
                    await alice.publish("orders", value)
                assert await _taken(alice, 4) == sent[:4]
            await cluster.settled()
            for one in dead:
                cluster.nodes[one].kill()
                cluster.nodes[one].wait()
            home.kill()
            home.wait()
            words = ("cluster", "recover-catalog", "--data", str(home.data))
            own = ("--config", str(home.config))
            # One of the others lives: who asks as a node does hears it, and is refused.
            cluster.restart(dead[1])
            await eventually(_listening(cluster.nodes[dead[1]]), what="it lives")
            strange = await _command(folder, cluster, *words)
            assert "Who answers cannot be told" in strange, strange
            unsafe = CODE.search(strange)
            assert unsafe is not None
            known = await _command(folder, cluster, *words, *own, status=1)
            assert f"node {dead[1]} ({cluster.nodes[dead[1]].address}) of this cluster" in known
            assert "--confirm" not in known
            refused = await _command(
                folder, cluster, *words, *own, "--confirm", unsafe[1], status=None
            )
            assert "it is not lost" in refused
            cluster.nodes[dead[1]].kill()
            cluster.nodes[dead[1]].wait()
            kept = tmp_path / "kept"
            shutil.copytree(cluster.nodes[dead[0]].data, kept)
            for one in dead:
                cluster.nodes[one].wipe()
            told = (*words, *own)
            looked = await _command(folder, cluster, *told)
            code = CODE.search(looked)
            assert code is not None, looked
            wrong = await _command(folder, cluster, *told, "--confirm", "0" * 8, status=None)
            assert "confirms something else" in wrong
            await _command(folder, cluster, *told, "--confirm", code[1])
            again = await _command(folder, cluster, *told, "--confirm", code[1], status=None)
            assert "needs nobody else" in again
            home.start(join=[])
            await cluster.back(survivor)
            async with Client(home.address, settings=settings, login=cluster.login) as admin:
                # Nothing can be recorded yet; so what records are written to goes first.
                for topic in (AUDIT_TOPIC, "orders"):
                    await _recover(admin, topic)
                assert await admin.list_join_tokens() == ()
                await admin.publish("orders", b"after")
            async with Client(home.address, settings=settings, login=ALICE.login()) as alice:
                assert await _taken(alice, RECORDS - 3) == [*sent[4:], b"after"]
                found = [bytes(one.value or b"") async for one in alice.read("orders")]
                assert found == [*sent, b"after"]
            del cluster.nodes[dead[1]]
            await cluster.add()
            returned = cluster.nodes[dead[0]]
            shutil.copytree(kept, returned.data, dirs_exist_ok=True)
            cluster.restart(dead[0])
            await eventually(_ended(returned), what="the dead is refused")
            assert "was recovered as" in returned.last_words()
            listed = await _command(folder, cluster, "audit", "list")
            assert listed.count("recover the catalog") == 1, listed
            for topic in (AUDIT_TOPIC, "orders"):
                assert listed.count(f'{{"topic":"{topic}","partition":0,"code":') == 1, listed
            assert "all is sound" in await _command(folder, cluster, "audit", "verify")

    run(scenario())


async def _taken(client: Client, count: int) -> list[bytes]:
    """Have a group settle records; return them."""
    taken: list[bytes] = []
    async with client.group("billing").consume("orders") as records:
        async for record in records:
            taken.append(bytes(record.value or b""))
            await record.ack()
            if len(taken) == count:
                break
    return taken


async def _recover(client: Client, topic: str) -> None:
    """Go on with what is left of the one partition of a topic, as soon as that is possible."""

    async def code() -> str:
        return (await client.describe_recovery(topic, 0)).code

    await client.recover_partition(topic, 0, await eventually(code, what=f"{topic} may go on"))


async def _command(
    folder: Folder, cluster: ProcessCluster, *words: str, status: int | None = 0
) -> str:
    """Run a command as the administrator."""
    servers = cluster.nodes[cluster.ids[0]].address
    who = ADMIN.as_environment() | {"ANGARIUM_TLS_CA": str(folder.ca), "ANGARIUM_SERVERS": servers}
    done = await asyncio.to_thread(ran, folder.path, *words, **who)
    assert "Traceback" not in done.stderr, done.stderr
    assert status is None or done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def _listening(node: NodeProcess) -> Callable[[], Awaitable[bool]]:
    async def listening() -> bool:
        try:
            _, writer = await asyncio.open_connection(HOST, node.port.number)
        except OSError:
            return False
        writer.close()
        return True

    return listening


def _ended(node: NodeProcess) -> Callable[[], Awaitable[bool]]:
    async def ended() -> bool:
        return not node.is_running

    return ended
