"""The board: whoever reaches the broker sees every pipeline, and can tell it to stop."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from typing import TYPE_CHECKING

import pytest

from angarium.errors import NotFound, PreconditionFailed
from angarium.pipelines.board import BELIEVED_S, Board, State, Status

if TYPE_CHECKING:
    from angarium import SyncClient

POSTS = """
import sys, time
from angarium import SyncClient
from angarium.pipelines.board import Board, State, Status
with SyncClient(sys.argv[1]) as client:
    board = Board(client)
    name = sys.argv[2]
    while not board.is_told_to_stop(name):
        board.post(Status(name=name, kind="mirror", state=State.RUNNING, lag=7), at_once=True)
        time.sleep(0.05)
    board.post(Status(name=name, kind="mirror", state=State.STOPPED))
"""


def state_of(board: Board, name: str) -> State | None:
    return next((one.state for one in board.statuses() if one.name == name), None)


def wait_for(board: Board, name: str, state: State) -> None:
    deadline = time.monotonic() + 60
    while state_of(board, name) is not state:
        assert time.monotonic() < deadline, f"{name} is not {state}"
        time.sleep(0.05)


def test_a_pipeline_whose_process_was_killed_is_lost_and_not_running(
    client: SyncClient, servers: str
) -> None:
    name = f"mirror-{uuid.uuid4().hex}"
    running = subprocess.Popen([sys.executable, "-c", POSTS, servers, name])
    try:
        wait_for(Board(client), name, State.RUNNING)
        with pytest.raises(PreconditionFailed, match=f"{name} runs already, as process"):
            Board(client).refuse_second(name)
        Board(client).refuse_second("another")
    finally:
        running.kill()
        running.wait(60)
    # It still says that it runs, and may be started again at once: its process is gone.
    assert state_of(Board(client), name) is State.RUNNING
    Board(client).refuse_second(name)
    later = Board(client, wall_clock=lambda: time.time() + BELIEVED_S + 1)
    assert state_of(later, name) is State.LOST
    with pytest.raises(NotFound, match=f"no pipeline {name} is running"):
        later.stop(name)


def test_a_pipeline_in_another_process_is_seen_and_stopped_by_the_command(
    client: SyncClient, servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from angarium.cli.main import main

    name = f"mirror-{uuid.uuid4().hex}"
    running = subprocess.Popen([sys.executable, "-c", POSTS, servers, name])
    try:
        wait_for(Board(client), name, State.RUNNING)
        assert main(["pipeline", "status", name, "--servers", servers, "--format", "json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["name"], told["kind"], told["state"]) == (name, "mirror", "running")
        assert told["lag"] == 7
        assert told["where"].endswith(f":{running.pid}")
        assert main(["pipeline", "list", "--servers", servers]) == 0
        assert any(
            line.split()[:3] == [name, "mirror", "running"]
            for line in capsys.readouterr().out.splitlines()
        )
        assert main(["pipeline", "stop", name, "--servers", servers]) == 0
        running.wait(60)
        wait_for(Board(client), name, State.STOPPED)
    finally:
        running.kill()
        running.wait(60)


def test_a_line_is_renewed_now_and_then_and_at_once_when_something_changes(
    client: SyncClient,
) -> None:
    now = [0.0]
    board = Board(client, clock=lambda: now[0])
    name = f"sql-{uuid.uuid4().hex}"

    def lines() -> int:
        return sum(record.key == name.encode() for record in client.read("angarium-pipelines"))

    for at in (0.0, 1.0, 4.0, 5.5, 6.0):
        now[0] = at
        board.post(Status(name=name, state=State.RUNNING, batch=int(at)))
    assert lines() == 2
    board.post(Status(name=name, state=State.FAILED, error="gone"))
    assert lines() == 3
