"""The folder of a local cluster: one owner, settings a node understands, ports that are free."""

from __future__ import annotations

import os
import re
import socket
import time
from typing import TYPE_CHECKING

import pytest

from angarium.app.sources import load_settings
from angarium.cli.complaints import Refusal
from angarium.cli.local.folder import Folder, LocalNode, State
from angarium.cli.local.node_file import is_edited
from angarium.cli.local.ports import check_ports
from angarium.cli.local.processes import Child

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


def test_beside_nodes_with_data_no_node_forms_a_second_cluster(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    first, *others = folder.planned(3, 7400)
    assert "form = true" in folder.write_settings(first, others).read_text(encoding="utf-8")
    folder.data(2).mkdir()
    (folder.data(2) / "identity").touch()
    written = folder.write_settings(first, others).read_text(encoding="utf-8")
    assert "form = true" not in written
    assert "127.0.0.1:7410" in written


# --- settings that somebody edited ----------------------------------------------------------------


def edited(path: Path, old: str, new: str) -> str:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path.read_text(encoding="utf-8")


def test_settings_are_written_anew_until_somebody_edits_them(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    node, *others = folder.planned(3, 9000)
    path = folder.write_settings(node, others)
    assert not is_edited(path)
    more = "\n[compat]\nbale_grpc_port = 8081\n"
    folder.write_settings(node, others, more=more)
    assert load_settings(file=path).compat.bale_grpc_port == 8081
    kept = edited(path, "[listen]", '[http]\norigins = ["*"]\n\n[listen]')
    assert is_edited(path)
    (tmp_path / "node-1").mkdir()
    (tmp_path / "node-1" / "identity").touch()
    folder.write_settings(node, others, more=more)
    folder.write_settings(node, others)
    assert path.read_text(encoding="utf-8") == kept
    path.unlink()
    folder.write_settings(node, others)
    assert not is_edited(path)


@pytest.mark.parametrize(
    ("old", "new", "more", "sentence"),
    [
        ("= 9000", "= 9100", "", "listen.wire_port is 9100, and has to be 9000"),
        ("[listen]", "[users]\n[listen]", "[compat]\ngeo_grpc_port = 8070\n", "8070"),
        ("form = true", 'join = ["127.0.0.1:1"]', "", "node.form is not there, and has to be true"),
        ("[listen]", "[listen", "", "cannot be read any more"),
    ],
)
def test_edited_settings_that_a_node_cannot_start_with_are_named_and_kept(
    tmp_path: Path, old: str, new: str, more: str, sentence: str
) -> None:
    folder = Folder(tmp_path)
    node, *others = folder.planned(3, 9000)
    kept = edited(folder.write_settings(node, others), old, new)
    with pytest.raises(Refusal, match=sentence):
        folder.write_settings(node, others, more=more)
    assert folder.settings(1).read_text(encoding="utf-8") == kept


def test_a_wiped_node_with_edited_settings_does_not_form_a_second_cluster(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    node, *others = folder.planned(3, 9000)
    edited(folder.write_settings(node, others), "[listen]", "[log]\n[listen]")
    known = LocalNode(number=1, wire_port=9000, id=1)
    with pytest.raises(Refusal, match=r"node\.form is true, and has to be not there; node\.id"):
        folder.write_settings(known, others)


def test_edited_settings_without_an_account_are_told_the_line_that_makes_one(
    tmp_path: Path,
) -> None:
    # Whoever wrote the port that was asked for met a node that ended for want of an account.
    folder = Folder(tmp_path)
    first, *others = folder.planned(3, 7400)
    path = folder.write_settings(first, others)
    edited = path.read_text(encoding="utf-8") + "[compat]\ngeo_grpc_port = 7407\n"
    path.write_text(edited, encoding="utf-8")
    more = '[compat]\ngeo_grpc_port = 7407\n\n[users]\nadmin = "$scrypt$a$b$c"\n'
    line = 'admin = "$scrypt$a$b$c"'
    with pytest.raises(Refusal, match=rf"\[users\] is empty.* {re.escape(line)}\."):
        folder.write_settings(first, others, more=more)
    own = f'{edited}\n[users]\nsomebody = "$scrypt$d$e$f"\n'
    path.write_text(own, encoding="utf-8")
    assert folder.write_settings(first, others, more=more).read_text(encoding="utf-8") == own


def test_of_a_nodes_log_only_its_latest_start_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "node-1.log"
    log.write_text("what was yesterday\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    child = Child(settings=tmp_path / "node-1.toml", log=log)  # there is no such file
    child.start()
    ended = time.monotonic() + 60
    while child.is_running and time.monotonic() < ended:
        time.sleep(0.01)
    lines = child.last_lines(5)
    assert "node-1.toml" in lines[0]
    assert "what was yesterday" not in lines
