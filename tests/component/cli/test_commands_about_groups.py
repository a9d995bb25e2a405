"""`angarium group`, `angarium sub --group` and `angarium run`: what they ask for and print."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from tests.component.cli.fake_client import FakeCluster, a_group
from tests.component.cli.test_commands_with_a_fake_client import (  # noqa: F401 (fixtures)
    Shell,
    cluster,
    shell,
    type_in,
)

from angarium.cli.commands.run import found_app
from angarium.cli.complaints import Refusal
from angarium.cli.grammar.quantities import shown_age
from angarium.client.handlers.app import App
from angarium.ids import Micros
from angarium.kinds import Behind, Poison

if TYPE_CHECKING:
    from pathlib import Path

# ruff: noqa: F811 (a fixture is meant by its name)


# --- looking and changing ------------------------------------------------------------------------


def test_groups_are_listed(cluster: FakeCluster, shell: Shell) -> None:
    assert "angarium sub TOPIC --group NAME" in shell("group", "list")
    cluster.groups["workers"] = a_group()
    cluster.groups["lake"] = a_group("lake", paused=True)
    lines = shell("group", "list").splitlines()
    assert lines[1].split() == ["workers", "queue", "active", "1", "25", "5", "30s", "angarium.dlq"]
    assert lines[2].split()[:3] == ["lake", "queue", "paused"]
    (first, _) = json.loads(shell("group", "list", "--format", "json"))
    assert first["kind"] == "queue"
    assert "positions" not in first


def test_a_group_is_described_with_its_lag_in_records_and_time(
    cluster: FakeCluster, shell: Shell
) -> None:
    cluster.groups["workers"] = a_group()
    said = shell("group", "describe", "workers")
    assert "25 records, 1m 35s" in said
    assert "t/0" in said
    (described,) = [json.loads(shell("group", "describe", "workers", "--format", "json"))]
    assert (described["lag"], described["lag_ms"]) == (25, 95_500)
    assert described["config"]["poison"] == "dead-letter"
    assert "waits for" not in said


def test_what_a_group_waits_for_is_told_with_the_time(cluster: FakeCluster, shell: Shell) -> None:
    group = a_group()
    (position,) = group.positions
    waiting = replace(
        position,
        waits_for="another attempt at record 70",
        waits_until=Micros(1_700_000_000_000_000),
    )
    leaderless = replace(position, partition=1, waits_for="a leader of the partition")
    cluster.groups["workers"] = replace(group, positions=(waiting, leaderless))
    said = shell("group", "describe", "workers")
    assert "another attempt at record 70" in said
    assert "2023-11-14 22:13:20.000" in said
    assert "a leader of the partition" in said


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (3_240, "3.2s"),
        (711_000, "11m 51s"),
        (720_400, "12m"),
        (7_500_000, "2h 5m"),
        (3 * 86_400_000 + 3_700_000, "3d 1h"),
    ],
)
def test_ages_are_told_in_the_same_way_whatever_they_are(ms: int, said: str) -> None:
    # "711s" stood beside "13m" in one table: only what divides evenly was told in minutes.
    assert shown_age(ms) == said


def test_an_unknown_group_is_an_error(cluster: FakeCluster, shell: Shell) -> None:
    shell("group", "describe", "nobody", status=3)
    assert "angarium group list" in shell.err
    assert "Did you mean" not in shell.err
    cluster.groups["workers"] = a_group()
    shell("group", "describe", "wrokers", status=3)
    assert "Did you mean workers?" in shell.err


def test_settings_are_changed_one_by_one(cluster: FakeCluster, shell: Shell) -> None:
    cluster.groups["workers"] = a_group()
    shell(
        *("group", "alter", "workers", "--max-attempts", "9", "--ack-timeout", "2m"),
        *("--backoff-min", "1s", "--backoff-max", "1h", "--dead-letter-topic", "dead"),
        *("--poison", "dead-letter", "--behind", "jump"),
    )
    config = cluster.groups["workers"].config
    assert (config.max_attempts, config.ack_timeout_ms) == (9, 120_000)
    assert (config.backoff_min_ms, config.backoff_max_ms) == (1_000, 3_600_000)
    assert (config.dead_letter_topic, config.poison) == ("dead", Poison.DEAD_LETTER)
    assert config.behind is Behind.JUMP
    shell("group", "alter", "workers", status=2)
    assert "nothing to change" in shell.err
    shell("group", "alter", "workers", "--ack-timeout", "none", status=2)
    assert "--ack-timeout" in shell.err


def test_a_seek_can_be_tried_first(cluster: FakeCluster, shell: Shell) -> None:
    said = shell("group", "seek", "workers", "20", "--topic", "t", "--partition", "0", "--dry-run")
    assert "-50" in said
    assert "Nothing was moved" in said
    choices = {"topic": "t", "partition": 0, "dry_run": True}
    assert cluster.calls[0] == ("seek", "workers", 20, choices)
    found = json.loads(shell("group", "seek", "workers", "earliest", "--format", "json"))
    assert found["moved"][0]["new_floor"] == 20
    shell("group", "seek", "workers", "live", status=2)


def test_groups_are_paused_and_go_on(cluster: FakeCluster, shell: Shell) -> None:
    shell("group", "pause", "workers")
    shell("group", "resume", "workers")
    pauses = [call for call in cluster.calls if call[0] == "pause"]
    assert pauses == [("pause", "workers", True), ("pause", "workers", False)]


def test_a_group_is_only_forgotten_when_that_is_meant(cluster: FakeCluster, shell: Shell) -> None:
    cluster.groups["workers"] = a_group()
    shell("group", "delete", "workers", status=2)
    assert "--yes" in shell.err
    assert "forgot workers" in shell("group", "delete", "workers", "--yes")
    assert ("delete group", "workers", None) in cluster.calls


# --- consuming -----------------------------------------------------------------------------------


def test_records_of_a_group_are_acknowledged_as_they_are_printed(
    cluster: FakeCluster, shell: Shell
) -> None:
    shell("pub", "t", "one", "two", "three")
    said = shell(
        *("sub", "t", "--group", "workers", "--kind", "key", "--max", "2", "--format", "raw")
    )
    assert said == "one\ntwo\n"
    assert ("group", "workers", {"kind": "key", "start": "earliest"}) in cluster.calls
    assert ("consume", ("t",), 2) in cluster.calls
    assert [call for call in cluster.calls if call[0] == "ack"] == [("ack", 0), ("ack", 1)]
    assert cluster.calls[-3:] == [("flushed",), ("left",), ("closed",)]


def test_a_record_that_comes_again_says_so(cluster: FakeCluster, shell: Shell) -> None:
    shell("pub", "t", "one", "two")
    consume = ("sub", "t", "--group", "workers", "--max", "1")
    assert shell(*consume).endswith("one (attempt 2)\n")
    assert json.loads(shell(*consume, "--format", "json"))["attempt"] == 2
    assert "attempt" not in shell("sub", "t", "--no-follow", "--format", "json")


def test_records_of_a_group_can_wait_for_a_word(
    cluster: FakeCluster, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("pub", "t", "one", "two", "three", "four")
    type_in(monkeypatch, b"ack\nperhaps\nnack no teapot\nrelease\n")
    shell("sub", "t", "--group", "workers", "--ack", "manual")
    assert "'perhaps' is not one of" in shell.err
    assert [call for call in cluster.calls if call[0] in ("ack", "nack", "release")] == [
        ("ack", 0),
        ("nack", 1, "no teapot"),
        ("release", 2),
    ]


def test_a_group_shares_whole_topics(cluster: FakeCluster, shell: Shell) -> None:
    shell("sub", "t", "--group", "workers", "--partition", "1", status=2)
    assert "--partition" in shell.err


# --- apps ----------------------------------------------------------------------------------------


def test_an_app_is_found_by_module_and_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "shop_workers.py").write_text("from angarium import App\napp = App()\nother = 1\n")
    assert isinstance(found_app("shop_workers:app"), App)
    for written, complaint in (
        ("shop_workers", "MODULE:APP"),
        ("shop_nowhere:app", "no module"),
        ("shop_workers:other", "not an angarium.App"),
        ("shop_workers:missing", "not an angarium.App; did you mean shop_workers:app"),
        ("shop_workers.py:app", "write shop_workers:app"),
    ):
        with pytest.raises(Refusal, match=complaint):
            found_app(written)


def test_a_module_that_lacks_something_says_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "shop_broken.py").write_text("import no_such_library\n")
    with pytest.raises(Refusal, match="no_such_library"):
        found_app("shop_broken:app")


def test_a_handler_that_is_refused_is_told_from_its_own_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "shop_refused.py").write_text(
        "from angarium import App\napp = App()\n"
        "@app.subscriber('t', group='g')\ndef work(value):\n    yield 1\n"
    )
    with pytest.raises(Refusal) as refused:
        found_app("shop_refused:app")
    said = str(refused.value)
    assert 'shop_refused.py", line 3' in said
    assert "work: it is a generator" in said
    assert "binding.py" not in said


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def price():\n    return 1 / 0\n\nprice()\n", "ZeroDivisionError: division by zero"),
        ("app = (\n", "SyntaxError"),
    ],
)
def test_a_mistake_in_the_users_module_is_told_with_its_file_and_line(
    code: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"shop_{said[:6].lower()}"
    (tmp_path / f"{name}.py").write_text(code)
    shell("run", f"{name}:app", status=2)
    assert said in shell.err
    assert f'{name}.py", line ' in shell.err
    assert "a mistake in this program" not in shell.err
    assert "importlib" not in shell.err


def test_a_mistake_in_a_function_for_the_start_is_told_with_its_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "shop_hooked.py").write_text(
        "from angarium import App\n"
        "class Hooked(App):\n"
        "    def run(self):\n"
        "        return {}['price']\n"
        "app = Hooked()\n"
    )
    shell("run", "shop_hooked:app", status=2)
    assert 'shop_hooked.py", line 4' in shell.err
    assert "KeyError: 'price'" in shell.err
