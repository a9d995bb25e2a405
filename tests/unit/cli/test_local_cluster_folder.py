"""The folder of a local cluster: one owner, settings a node understands, ports that are free."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from angarium.app.sources import load_settings
from angarium.cli.complaints import Refusal
from angarium.cli.local.cluster import LocalCluster
from angarium.cli.local.folder import Folder, LocalNode, State
from angarium.cli.local.ports import check_ports
from angarium.ids import NodeId
from angarium.node.catalog import _REMOVED

if TYPE_CHECKING:
    from pathlib import Path


def test_a_folder_has_one_owner_at_a_time(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "cluster")
    assert not folder.is_locked()
    lock = folder.lock()
    assert lock is not None
    assert folder.is_locked()
    assert folder.lock() is None
    os.close(lock)
    assert not folder.is_locked()


def test_what_was_written_down_is_read_again_and_nonsense_counts_as_nothing(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.read_state() is None
    state = State(pid=7, nodes=(LocalNode(number=1, wire_port=7400, pid=8, id=1),))
    folder.write_state(state)
    assert folder.read_state() == state
    (tmp_path / "up.json").write_text("{", encoding="utf-8")
    assert folder.read_state() is None


def test_the_first_node_forms_and_the_others_join(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    nodes = folder.planned(3, 9000)
    settings = [
        load_settings(file=folder.write_settings(node, [one for one in nodes if one is not node]))
        for node in nodes
    ]
    assert [one.node.form for one in settings] == [True, False, False]
    assert [str(one) for one in settings[1].node.join] == ["127.0.0.1:9000", "127.0.0.1:9020"]
    ports = [
        (one.wire_port, one.grpc_port, one.http_port) for one in (each.listen for each in settings)
    ]
    assert ports == [(9000, 9001, 9002), (9010, 9011, 9012), (9020, 9021, 9022)]
    assert settings[2].node.data == tmp_path / "node-3"


def test_nodes_that_were_here_before_come_back_even_if_fewer_are_asked_for(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        (tmp_path / f"node-{number}").mkdir()
    assert [node.number for node in Folder(tmp_path).planned(1, 9000)] == [1, 2, 3]


def test_a_wiped_node_comes_back_as_who_it_was_and_never_forms_anew(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    known = tuple(LocalNode(number=n, wire_port=8990 + 10 * n, id=n) for n in (1, 2, 3))
    folder.write_state(State(pid=1, nodes=known))
    (tmp_path / "node-2").mkdir()
    (tmp_path / "node-2" / "identity").touch()
    nodes = folder.planned(3, 9000)
    first = load_settings(file=folder.write_settings(nodes[0], nodes[1:]))
    second = load_settings(file=folder.write_settings(nodes[1], [nodes[0], nodes[2]]))
    assert (first.node.form, first.node.id, len(first.node.join)) == (False, 1, 2)
    assert (second.node.id, len(second.node.join)) == (None, 2)


def test_too_many_ports_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="65535"):
        Folder(tmp_path).planned(100, 65_000)


def test_a_taken_port_is_named_with_a_way_out(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        base = port - 10
        with pytest.raises(Refusal) as refused:
            check_ports(Folder(tmp_path).planned(3, base), base)
    # Others may run beside this test, and have the ports next to it.
    assert re.match(rf"ports? .*\b{port}\b.* (is|are) taken", str(refused.value))
    assert "PORT_BASE=" in str(refused.value)


def test_a_node_that_was_removed_is_named_with_the_folder_to_take_away(tmp_path: Path) -> None:
    cluster: Any = LocalCluster.__new__(LocalCluster)
    cluster._folder = Folder(tmp_path)
    cluster._folder.write_state(State(pid=1, nodes=()))
    for said in (f"angarium: {_REMOVED.format(7)}", "angarium: there is no node 7"):
        cluster._nodes = {2: LocalNode(number=2, wire_port=7410, id=NodeId(7))}
        cluster._children = {2: SimpleNamespace(ending="ended", pid=1, last_lines=lambda _: [said])}  # noqa: B023
        hint = re.escape(f"`rm -r {tmp_path / 'node-2'}` and start again")
        with pytest.raises(Refusal, match=hint):
            cluster._check_children()
        state = cluster._folder.read_state()
        assert state is not None
        assert [one.id for one in state.nodes] == [None], "its next start asks for a new id"


def test_members_are_started_before_those_that_they_are_to_let_in() -> None:
    # A node whose folder was gone was waited for before the others ran, who alone could let it in.
    done: list[str] = []

    def child(number: int) -> Any:
        return SimpleNamespace(start=lambda: done.append(f"start {number}"))

    async def answer_of(number: int) -> None:
        done.append(f"answer {number}")

    cluster: Any = LocalCluster.__new__(LocalCluster)
    cluster._folder = SimpleNamespace(is_new=lambda number: number in {2, 4})
    cluster._children = {number: child(number) for number in (1, 2, 3, 4)}
    cluster._answer_of = answer_of
    cluster._write_state = lambda: None
    asyncio.run(cluster._start_nodes())
    assert done[:6] == ["start 1", "start 3", "start 2", "answer 2", "start 4", "answer 4"]
    assert sorted(done[6:]) == [f"answer {number}" for number in (1, 2, 3, 4)]


def test_beside_nodes_with_data_no_node_forms_a_second_cluster(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    first, *others = folder.planned(3, 7400)
    assert "form = true" in folder.write_settings(first, others).read_text(encoding="utf-8")
    folder.data(2).mkdir()
    (folder.data(2) / "identity").touch()
    written = folder.write_settings(first, others).read_text(encoding="utf-8")
    assert "form = true" not in written
    assert "127.0.0.1:7410" in written
