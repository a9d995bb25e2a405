"""`angarium up`: a newcomer's first five minutes, with real processes."""

from __future__ import annotations

import json
import os
import signal
import socket
from typing import TYPE_CHECKING

from tests.cluster.command_line import Up, angarium, eventually, free_port_base, is_alive

if TYPE_CHECKING:
    from pathlib import Path

READY = "Try next, in another terminal:"


def test_a_newcomer_publishes_kills_a_node_and_loses_nothing(tmp_path: Path) -> None:
    with Up(tmp_path) as up:
        up.wait_for(READY)
        pids = up.pids
        assert len(pids) == 3
        assert "topic demo: led by" in up.said()

        # Every command finds the cluster of this folder by itself.
        assert " consistent" in angarium(tmp_path, "pub", "demo", "hello").stdout
        lines = "".join(f"{number}\n" for number in range(5_000))
        angarium(tmp_path, "pub", "demo", "--key", "k", stdin=lines)

        os.kill(pids[1], signal.SIGKILL)
        up.wait_for("killed by SIGKILL")
        angarium(tmp_path, "pub", "demo", "after")
        found = angarium(tmp_path, "sub", "demo", "--no-follow", "--format", "json").stdout
        values = [json.loads(line)["value"] for line in found.splitlines()]
        assert sorted(values) == sorted(["hello", "after", *map(str, range(5_000))])

        angarium(tmp_path, "up", "--restart")
        eventually(lambda: len(up.pids) == 3 and up.pids[1] != pids[1])
        status = ("cluster", "status", "--format", "json")
        eventually(
            lambda: all(
                node["alive"] for node in json.loads(angarium(tmp_path, *status).stdout)["nodes"]
            )
        )
        pids = up.pids
        assert up.interrupt() == 0
        assert not any(map(is_alive, pids))

    # The data are still there the second time, although every port is another one.
    with Up(tmp_path) as up:
        up.wait_for(READY)
        found = angarium(tmp_path, "sub", "demo", "--no-follow", "--format", "raw").stdout
        assert sorted(found.splitlines()) == sorted(values)


def test_on_a_terminal_there_is_a_live_table_and_ctrl_c_leaves_no_process(tmp_path: Path) -> None:
    with Up(tmp_path, on_terminal=True) as up:
        up.wait_for(READY)
        up.wait_for("3 of 3 nodes alive")
        assert "\033[K" in up.said()
        angarium(tmp_path, "pub", "demo", "a", "b", "c")
        pids = up.pids

        second = angarium(tmp_path, "up", "--port-base", "1")
        assert "running in .angarium already" in second.stdout
        assert "cluster status --watch --servers 127.0.0.1:" in second.stdout

        os.kill(pids[2], signal.SIGSTOP)  # a node that hangs is stopped as well
        up.type_in(b"\x03")
        assert up.wait() == 0
        assert not any(map(is_alive, pids))
        assert "the data stay in .angarium" in up.said()


def test_killing_the_supervisor_leaves_no_process(tmp_path: Path) -> None:
    with Up(tmp_path) as up:
        up.wait_for(READY)
        pids = up.pids
        os.kill(pids[0], signal.SIGSTOP)
        up.process.kill()
        eventually(lambda: not any(map(is_alive, pids)))
        missing = angarium(tmp_path, "up", "--stop", status=2)
        assert "no cluster runs in .angarium" in missing.stderr


def test_a_taken_port_is_named_before_anything_starts(tmp_path: Path) -> None:
    base = free_port_base()
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", base + 11))
        other.listen()
        refused = angarium(tmp_path, "up", "--port-base", str(base), status=2)
    assert f"port {base + 11} is taken by another program" in refused.stderr
    assert "PORT_BASE=" in refused.stderr
    assert not list(tmp_path.glob(".angarium/node-*"))
