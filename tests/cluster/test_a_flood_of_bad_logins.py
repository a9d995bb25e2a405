"""A thousand bad logins a second beside a good client, seen from outside: it notices little.

The guesser is another process, which tries as fast as this machine lets it. How fast that is, and
how long the good client waited, is printed; what is asserted are bounds that a busy machine keeps.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.busy_machine import slowness
from tests.cluster.command_line import environment, eventually
from tests.cluster.secured import ADMIN, PASSWORD, SecuredNode

from angarium.api import TopicConfig
from angarium.client import Client
from angarium.errors import AngariumError

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 5.0
RATE = 1_000.0
GUESSER = "127.0.0.2"
"""Another address of this machine: it is another source."""


async def admin_of(node: SecuredNode) -> Client:
    """Return the administrator's client, once the node has made the administrator."""
    deadline = time.monotonic() + 120
    while True:
        client = Client(node.address, user="admin", password=ADMIN)
        try:
            await client.connect()
        except AngariumError:
            await client.close()
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)
        else:
            return client


def guesser(node: SecuredNode, source: str, seconds: float) -> subprocess.Popen[str]:
    words = map(str, (node.wire, source, RATE, seconds))
    return subprocess.Popen(
        [sys.executable, "-m", "tests.cluster.guessing", *words],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("source", [GUESSER, "127.0.0.1"], ids=["elsewhere", "same-address"])
def test_a_good_clients_logins_and_publishes_stay_quick_and_memory_bounded(
    tmp_path: Path, source: str
) -> None:
    node = SecuredNode(tmp_path)

    async def scene() -> dict[str, Any]:
        admin = await admin_of(node)
        await admin.create_topic("orders", partitions=1, config=TopicConfig())
        await admin.create_user("alice", password=PASSWORD, roles=["publisher"])
        # She has logged in from here before: the guesser's failures do not concern her.
        async with Client(node.address, user="alice", password=PASSWORD) as alice:
            await alice.publish("orders", b"before")
            before = node.memory_bytes
            flood = guesser(node, source, SECONDS)
            logins: list[float] = []
            publishes: list[float] = []
            most = before
            try:
                while flood.poll() is None:
                    began = time.monotonic()
                    await alice.publish("orders", b"meanwhile")
                    publishes.append(time.monotonic() - began)
                    began = time.monotonic()
                    async with Client(node.address, user="alice", password=PASSWORD) as again:
                        await again.connect()
                    logins.append(time.monotonic() - began)
                    most = max(most, node.memory_bytes)
                    await asyncio.sleep(0.05)
            finally:
                told, _ = flood.communicate(timeout=120)
        await admin.close()
        return {
            "guesses": json.loads(told),
            "logins": sorted(logins),
            "publishes": sorted(publishes),
            "grown": most - before,
        }

    with node.running():
        found = asyncio.run(scene())
    guesses, logins, publishes = found["guesses"], found["logins"], found["publishes"]
    print(
        f"{guesses['tried'] / guesses['seconds']:.0f} bad logins/s; "
        f"login p50 {logins[len(logins) // 2] * 1e3:.0f} ms, longest {logins[-1] * 1e3:.0f} ms; "
        f"publish p50 {publishes[len(publishes) // 2] * 1e3:.0f} ms, "
        f"longest {publishes[-1] * 1e3:.0f} ms; "
        f"memory grew by {found['grown'] >> 20} MiB; {guesses}"
    )
    assert guesses["tried"] > 200
    assert "LET_IN" not in guesses
    # All were refused in words; nearly all of them without a check.
    refused = guesses.get("RESOURCE_EXHAUSTED", 0) + guesses.get("UNAUTHENTICATED", 0)
    assert refused >= 0.9 * guesses["tried"]
    assert guesses.get("UNAUTHENTICATED", 0) <= 60 + 60 * (guesses["seconds"] + 20)
    assert len(logins) >= 3, "the good client came in again and again"
    assert publishes[len(publishes) // 2] < 1.0 * slowness()
    assert logins[len(logins) // 2] < 5.0 * slowness()
    assert found["grown"] < 100 << 20


def test_one_line_of_the_log_tells_of_them_and_no_name_is_in_it_unescaped(tmp_path: Path) -> None:
    node = SecuredNode(tmp_path)
    with node.running():
        asyncio.run(_closed(node))
        flood = guesser(node, GUESSER, 2.0)
        flood.communicate(timeout=120)
        eventually((tmp_path / "node.log").exists)
    lines = (tmp_path / "node.log").read_text().splitlines()
    assert len(lines) < 100, "a flood does not fill the log"
    for line in lines:
        json.loads(line)


async def _closed(node: SecuredNode) -> None:
    await (await admin_of(node)).close()
