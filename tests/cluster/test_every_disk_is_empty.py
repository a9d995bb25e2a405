"""Nodes of which none has any data say so, instead of waiting for each other without a word."""

from __future__ import annotations

import http.client
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tests.cluster.command_line import Running, angarium, eventually, free_port_base

if TYPE_CHECKING:
    from pathlib import Path

HOST = "127.0.0.1"
PATIENCE_S = 60.0


def readyz(port: int) -> tuple[int, str]:
    """Return what `/readyz` answers; 0 while nobody does."""
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except OSError:
        return 0, ""
    finally:
        connection.close()


def serve(folder: Path, number: int, base: int, *words: str) -> Running:
    """Return node `number` of three, whose folder is empty and who joins the other two."""
    port = base + 10 * number
    others = ",".join(f"{HOST}:{base + 10 * one}" for one in (1, 2, 3) if one != number)
    doors = ("--wire-port", str(port), "--grpc-port", "off", "--http-port", str(port + 2))
    join = words or ("--join", others)
    return Running(folder, "serve", "--data", f"data-{number}", *doors, *join)


def test_nodes_that_all_lost_their_disks_say_so_and_what_to_do(tmp_path: Path) -> None:
    base = free_port_base() - 10

    def hears(number: int, text: str) -> None:
        eventually(lambda: text in readyz(base + 10 * number + 2)[1], seconds=PATIENCE_S)

    with ExitStack() as running:
        nodes = [running.enter_context(serve(tmp_path, one, base)) for one in (1, 2)]
        # The third may have what they lack, so nothing is certain yet.
        hears(1, "waits itself")
        hears(1, "cannot be reached")
        assert readyz(base + 12)[0] == 503

        nodes.append(running.enter_context(serve(tmp_path, 3, base)))
        for number in (1, 2, 3):
            hears(number, "nobody there holds the catalog")
        assert "put a data folder back from a backup" in readyz(base + 12)[1]
        nodes[0].wait_for("nobody there holds the catalog")
        asked = angarium(
            tmp_path, "cluster", "status", "--servers", f"{HOST}:{base + 10}", status=None
        )
        assert asked.returncode != 0
        assert "nobody there holds the catalog" in asked.stderr
        assert "start one node with --form" in asked.stderr

        # What they say to do helps: the others join whoever begins anew.
        nodes[0].process.terminate()
        nodes[0].wait()
        running.enter_context(serve(tmp_path, 1, base, "--form"))
        for number in (1, 2, 3):
            hears(number, "ok\n")
