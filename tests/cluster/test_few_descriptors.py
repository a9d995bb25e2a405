"""A node that may open few files, and a crowd that opens connections to it."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import subprocess
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.command_line import COMMAND, environment, eventually, free_port_base

from angarium.client import Client
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import Iterator

ALLOWED = 160
"""Descriptors of the node: enough for its own files, and a crowd takes the rest at once."""

CROWD = 400
TOPICS = 12
"""Made while the crowd is there: each needs files of its own."""


@contextmanager
def node_of(folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start one node that may have `ALLOWED` descriptors."""
    words = ["serve", "--form", "--data", "data", "--wire-port", str(port)]
    words += ["--grpc-port", str(port + 1), "--http-port", str(port + 2)]
    limited = ["/bin/sh", "-c", f'ulimit -n {ALLOWED} && exec "$@"', "sh", *COMMAND, *words]
    log = folder / "log"
    with (
        log.open("wb") as stderr,
        subprocess.Popen(limited, cwd=folder, env=environment(), stderr=stderr) as node,
    ):
        try:
            eventually(lambda: '"serving"' in log.read_text() or node.poll() is not None)
            yield node
            node.terminate()
            assert node.wait(timeout=120) == 0, log.read_text()[-4_000:]
        finally:
            node.kill()


class Crowd:
    """Connections that say nothing, and come again when they are cut."""

    def __init__(self, ports: tuple[int, ...]) -> None:
        self._ports = ports
        self._open: list[socket.socket] = []

    def press(self) -> None:
        """Have as many as possible."""
        self._open = [one for one in self._open if not _is_cut(one)]
        while len(self._open) < CROWD:
            for port in self._ports:
                one = socket.socket()
                one.setblocking(False)
                with suppress(BlockingIOError):
                    one.connect(("127.0.0.1", port))
                self._open.append(one)

    def leave(self) -> None:
        for one in self._open:
            one.close()


def _is_cut(one: socket.socket) -> bool:
    try:
        return one.recv(4_096) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def ready(connection: http.client.HTTPConnection) -> tuple[int, str]:
    """Ask an existing connection whether its node is ready."""
    connection.request("GET", "/readyz")
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def descriptors_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def cpu_ticks(pid: int) -> int:
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:  # noqa: PTH123
        words = stat.read().rpartition(")")[2].split()
    return int(words[11]) + int(words[12])


def test_a_crowd_of_connections_neither_ends_a_node_nor_stops_those_who_are_there(
    tmp_path: Path,
) -> None:
    port = free_port_base()
    address = f"127.0.0.1:{port}"

    async def story(node: subprocess.Popen[bytes], crowd: Crowd) -> None:
        loop = asyncio.get_running_loop()
        async with Client(address) as client:
            await client.create_topic("orders", partitions=2)
            await client.publish("orders", b"before", mode=DeliveryMode.CONSISTENT)
            first = http.client.HTTPConnection("127.0.0.1", port + 2, timeout=60)
            with closing(first):
                assert ready(first)[0] == 200
                stop = loop.time() + 4.0
                published = 0
                reasons = ""
                while loop.time() < stop or not reasons or published < 100:
                    assert loop.time() < stop + 90, "it never said why it is limited"
                    await asyncio.to_thread(crowd.press)
                    # Existing connections go on, and the log has its files.
                    await client.publish("orders", b"%d" % published, mode=DeliveryMode.CONSISTENT)
                    if published < TOPICS:
                        await client.create_topic(f"made-{published}")
                    published += 1
                    status, said = await asyncio.to_thread(ready, first)
                    if status != 200:
                        assert "refuses new clients" in said, said
                        assert f"of {ALLOWED} descriptors" in said
                        reasons = said
                    assert node.poll() is None
                assert descriptors_of(node.pid) < ALLOWED
                # While nothing is asked of it, the crowd that waits costs it nothing.
                await asyncio.sleep(1.0)
                before = cpu_ticks(node.pid)
                await asyncio.sleep(2.0)
                assert cpu_ticks(node.pid) - before < 0.5 * 2 * os.sysconf("SC_CLK_TCK")
                crowd.leave()
                while (await asyncio.to_thread(ready, first))[0] != 200:
                    assert loop.time() < stop + 180, "it is not ready again"
                    await asyncio.sleep(0.1)
            async with Client(address) as new:
                found = [record async for record in new.read("orders")]
            assert len(found) == published + 1

    with node_of(tmp_path, port) as node, ExitStack() as leaving:
        crowd = Crowd((port, port + 1, port + 2))
        leaving.callback(crowd.leave)
        asyncio.run(story(node, crowd))


def test_a_client_that_is_refused_for_want_of_descriptors_is_told_why(tmp_path: Path) -> None:
    port = free_port_base()
    with node_of(tmp_path, port) as node, ExitStack() as open_ones:
        # Each has asked something, so none makes room for the next one.
        refusal: dict[str, str] = {}
        for _ in range(ALLOWED):
            one = http.client.HTTPConnection("127.0.0.1", port + 2, timeout=60)
            open_ones.callback(one.close)
            one.request("GET", "/healthz")
            answer = one.getresponse()
            body = answer.read()
            if answer.status == 503:
                refusal = json.loads(body)
                break
            assert answer.status == 200
        assert refusal["code"] == "RESOURCE_EXHAUSTED"
        assert "descriptors" in refusal["detail"]
        assert node.poll() is None
