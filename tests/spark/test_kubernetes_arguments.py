"""What Kubernetes is asked for, seen by an API that starts nothing: by the guide's `spark-submit`,
and by a session of ours. No pod ever runs here."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.kubernetes_api import KubernetesApi, environment

pytest.importorskip("pyspark", reason="the extra angarium[spark] is not installed")

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "spark.md"
PATIENCE_S = 500.0

DRIVER = """
import sys
from angarium.spark.session import spark_session

spark_session(sys.argv[1], config=dict(one.split("=", 1) for one in sys.argv[2:]))
"""


def test_the_guides_command_asks_for_a_driver_of_the_image() -> None:
    from angarium.testing.spark.standalone import cluster_environment, spark_home

    text = GUIDE.read_text(encoding="utf-8")
    (written,) = re.findall(r"^spark-submit --master k8s:.*?[^\\]$", text, re.DOTALL | re.MULTILINE)
    _, _, _, *arguments = shlex.split(written.replace("\\\n", " "))
    with KubernetesApi() as api:
        submit = (str(spark_home() / "bin" / "spark-submit"), "--master", api.master)
        no_waiting = ("--conf", "spark.kubernetes.submission.waitAppCompletion=false")
        subprocess.run(
            [*submit, *no_waiting, *arguments],
            # As it is on the machine of whoever submits: a Python that the image does not have.
            env=cluster_environment(),
            check=True,
            capture_output=True,
            timeout=PATIENCE_S,
        )
        (driver,) = api.pods()
        (files,) = api.config_maps()
    assert driver["spec"]["serviceAccountName"] == "spark"
    (container,) = driver["spec"]["containers"]
    assert container["image"] == "registry.example/angarium-spark:1"
    assert container["args"][-1] == "local:///opt/jobs/job.py"
    variables = environment(driver)
    assert variables["ANGARIUM_SERVERS"] == "broker-1:7400"
    assert variables["PYSPARK_PYTHON"] == "python3"
    told = files["spark.properties"]
    assert "spark.python.daemon.module=angarium.spark.daemon" in told
    assert "spark.sql.session.timeZone=UTC" in told
    assert "spark.executor.instances=4" in told


def test_a_session_asks_for_executors_of_the_image(tmp_path: Path) -> None:
    from angarium.testing.spark.standalone import (
        QUICK_JAVA,
        driver_environment,
        kill_tree,
        until,
    )

    config = {
        "spark.kubernetes.container.image": "registry.example/angarium-spark:1",
        "spark.kubernetes.namespace": "pipelines",
        "spark.kubernetes.authenticate.executor.serviceAccountName": "spark-executor",
        "spark.executor.instances": "2",
        "spark.executorEnv.ANGARIUM_SERVERS": "broker-1:7400",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
    }
    own = {name: value for name, value in driver_environment().items() if name != "PYSPARK_PYTHON"}
    with KubernetesApi() as api, (tmp_path / "driver.log").open("wb") as log:
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, api.master, *map("=".join, config.items())],
            env=own,
            stdout=log,
            stderr=log,
        )
        try:
            # The session waits for them for good: they never come.
            until(lambda: len(api.pods()) == 2, PATIENCE_S, "two executors are asked for")
        finally:
            kill_tree(driver)
        executors = api.pods()
        assert all("/namespaces/pipelines/" in path for path, _ in api.asked)
    for pod in executors:
        assert pod["spec"]["serviceAccountName"] == "spark-executor"
        (container,) = pod["spec"]["containers"]
        assert container["image"] == "registry.example/angarium-spark:1"
        assert container["args"] == ["executor"]
        assert environment(pod)["ANGARIUM_SERVERS"] == "broker-1:7400"
