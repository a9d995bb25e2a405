"""The commands: what people type, and what they read; on the session that all tests share."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.versions import stream_sink

from angarium.cli.main import main

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from angarium import SyncClient

pytest.importorskip("deltalake", reason="the extra angarium[lake] is not installed")


@pytest.fixture
def command(
    spark: SparkSession,
    servers: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., tuple[int, str]]:
    """Runs `angarium pipeline …` and returns its status and what it printed."""

    @contextmanager
    def shared(_: Namespace) -> Iterator[SparkSession]:
        yield spark

    for module in ("pipeline", "pipeline_jobs"):
        monkeypatch.setattr(f"angarium.cli.commands.{module}.starting_spark", shared)

    def run(*words: str) -> tuple[int, str]:
        status = main(["pipeline", *words, "--servers", servers])
        return status, capsys.readouterr().out

    return run


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_replay_tells_how_far_it_is_and_is_a_pipeline_like_others(
    client: SyncClient,
    command: Callable[..., tuple[int, str]],
    tmp_path: Path,
    new_topic: Callable[[int], str],
) -> None:
    topic = new_topic(1)
    client.publish_batch(topic, [b"%d" % number for number in range(10)])
    words = ("replay", topic, "--into", f"{topic}-again", "--from", "4", "--until", "9")
    status, out = command(*words, "--id", f"{topic}-once", "--format", "json")
    assert status == 0
    assert [(one["kind"], one["state"], one["lag"]) for one in lines(out)] == [
        ("replay", "running", 0),
        ("replay", "stopped", 0),
    ]
    assert [one.value for one in client.read(f"{topic}-again")] == [b"4", b"5", b"6", b"7", b"8"]
    status, out = command("status", f"{topic}-once", "--format", "json")
    assert (status, json.loads(out)["state"]) == (0, "stopped")
    # The same from a file, whose name is the replay's.
    path = tmp_path / f"{topic}-once.toml"
    path.write_text(f'[replay]\nsubscribe = "{topic}"\ninto = "{topic}-again"\n', encoding="utf-8")
    assert command("run", str(path))[0] == 0
    assert len(list(client.read(f"{topic}-again"))) == 5
    assert command("replay", "nowhere", "--into", "x")[0] != 0
    assert command("replay", topic, "--into", "x", "--from", "live")[0] == 2


def test_figures_are_printed_and_drawn(
    client: SyncClient,
    command: Callable[..., tuple[int, str]],
    tmp_path: Path,
    new_topic: Callable[[int], str],
) -> None:
    topic = new_topic(1)
    client.publish_batch(topic, [b"abc"] * 30)
    words = ("analytics", topic, "--from", "-1h", "--window", "1 hour")
    picture = tmp_path / "figures.svg"
    status, out = command(*words, "--format", "json", "--plot", str(picture))
    rows = lines(out)
    assert (status, sum(row["records"] for row in rows)) == (0, 30)
    assert sum(row["bytes"] for row in rows) == 90
    assert f">{topic}</text>" in picture.read_text(encoding="utf-8")
    status, out = command(*words, "--plot")
    assert status == 0
    assert f"{topic}: 1 window" in out
    assert "records/s" in out
    status, out = command(*words)
    assert out.splitlines()[1].split()[0] == topic
    assert command("analytics", topic, "--window", "often")[0] == 2


def test_dead_letters_are_listed_by_cause_and_a_set_of_them_is_purged(
    client: SyncClient,
    command: Callable[..., tuple[int, str]],
    servers: str,
    tmp_path: Path,
    new_topic: Callable[[int], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    dead = new_topic(1)
    for number, reason in enumerate(["took 3 s", "took 5 s", "odd"]):
        told = {"topic": "orders", "partition": "0", "offset": str(number), "reason": reason}
        headers = [(f"angarium-dlq-{name}", value) for name, value in told.items()]
        client.publish(dead, b"\x1b[31m%d" % number, headers=headers)
    chosen = tmp_path / "set"
    words = ("dead-letters", "--topic", dead)
    status, out = command(*words, "--cause", "took", "--set", str(chosen), "--format", "json")
    (cause,) = json.loads(out)
    assert (status, cause["cause"], cause["letters"]) == (0, "took <n> s", 2)
    assert chosen.read_text(encoding="utf-8") == "0@0\n0@1\n"
    purge = ["dlq", "purge", "--topic", dead, "--set", str(chosen), "--yes"]
    assert main([*purge, "--servers", servers]) == 0
    assert "2 purged" in capsys.readouterr().out
    status, out = command(*words)
    assert status == 0
    assert "took" not in out, "they were dealt with"
    assert "odd" in out
    assert "\x1b" not in out, "no record steers the terminal"
    chosen.write_text("nonsense\n", encoding="utf-8")
    assert main([*purge, "--servers", servers]) == 2
    assert "line 1: 'nonsense' is not a letter" in capsys.readouterr().err
    assert command("dead-letters", "--topic", "never")[1].startswith("There are no dead letters")


@stream_sink
def test_quality_is_reported_with_a_status(
    client: SyncClient,
    command: Callable[..., tuple[int, str]],
    tmp_path: Path,
    new_topic: Callable[[int], str],
) -> None:
    topic = new_topic(1)
    client.publish_batch(topic, [b"1", b"2", b"three"])
    path = tmp_path / "numbers.toml"

    def written(pattern: str) -> str:
        path.write_text(
            f'checkpoint = "{tmp_path}/c"\ntrigger = "once"\n[quality]\n'
            f'startingOffsets = "earliest"\ndead_letter_topic = "{topic}-dead"\n'
            f"[quality.topic.{topic}]\nmatches.record.value = '{pattern}'\n",
            encoding="utf-8",
        )
        return str(path)

    status, out = command("quality", written("^[0-9]+$"), "--format", "json")
    assert status == 1
    assert [(one["records"], one["failed"]) for one in json.loads(out)] == [(3, 1)]
    status, out = command("quality", written("."))
    assert (status, out.splitlines()[1].split()[-2:]) == (0, ["3", "0"])
    status, out = command("run", written("^[0-9]+$"))
    assert status == 0
    assert f"{topic}: not: record.value matches ^[0-9]+$ 1" in out
    assert [one.value for one in client.read(f"{topic}-dead")] == [b"three"]
    status, out = command("status", "numbers")
    assert "record.value matches" in out


def test_a_question_is_answered_in_part_and_says_so(
    spark: SparkSession,
    client: SyncClient,
    servers: str,
    names: Iterator[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = next(names)
    dotted, dashed = f"{name}.a.b", f"{name}.a-b"
    for topic, count in ((dotted, 5), (dashed, 3)):
        client.create_topic(topic, partitions=1)
        client.publish_batch(topic, [b"x"] * count)
    monkeypatch.setattr(spark, "stop", lambda: None)
    monkeypatch.setattr("angarium.spark.session.spark_session", lambda *_, **__: spark)

    def asked(text: str, *words: str) -> tuple[int, str, str]:
        status = main(["sql", text, "--servers", servers, "--format", "json", *words])
        said = capsys.readouterr()
        return status, said.out, said.err

    both = f"SELECT a.n AS a, b.n AS b FROM (SELECT count(*) n FROM `{dotted}`) a, "
    status, out, _ = asked(f"{both} (SELECT count(*) n FROM `{dashed}`) b")
    assert (status, lines(out)) == (0, [{"a": 5, "b": 3}])
    status, out, err = asked(f"SELECT offset FROM `{dotted}`", "--max", "2")
    assert (status, len(lines(out))) == (0, 2)
    assert "these are the first 2 rows" in err
    assert "these are" not in asked(f"SELECT offset FROM `{dotted}`", "--max", "5")[2]
    status, _, err = asked("SELECT * FROM topik_1")
    assert status != 0
    assert "there is no topic or table topik_1; did you mean topic_1" in err
    status, _, err = asked("SELEC 1")
    assert (status, "PARSE_SYNTAX_ERROR" in err) == (2, True), err
