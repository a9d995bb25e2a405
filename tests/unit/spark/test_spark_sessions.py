"""Which Java is taken, and which settings a session gets on which master."""

from __future__ import annotations

import pytest

from angarium.errors import PreconditionFailed
from angarium.spark.settings import (
    MasterKind,
    executors_python,
    kind_of,
    master_with_retries,
    refuse_incomplete,
    session_settings,
)


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
