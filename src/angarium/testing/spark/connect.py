"""A Spark Connect server from the PySpark wheel, as a process of this machine."""

from __future__ import annotations

import socket
import subprocess
from typing import TYPE_CHECKING, Final, Self

from angarium.bench.cluster import free_ports
from angarium.errors import PreconditionFailed
from angarium.testing.reserved_port import HOST
from angarium.testing.spark.standalone import (
    QUICK_JAVA,
    READY_SECONDS_MAX,
    cluster_environment,
    kill_tree,
    spark_home,
    until,
)

if TYPE_CHECKING:
    from pathlib import Path

_CLASS: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"
MEMORY: Final = "1g"


class ConnectServer:
    """A server that listens on loopback only: it asks nobody who they are. Use it as a context
    manager; `remote` is its address."""

    def __init__(self, folder: Path, *, master: str = "local[2,4]") -> None:
        self._folder = folder
        self._master = master
        (self._port,) = free_ports(1)
        self.remote = f"sc://{HOST}:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        # What a session of ours cannot set on a server, its own configuration has to.
        from angarium.spark.session import checkpoint_manager  # noqa: PLC0415 (an extra)
        from angarium.spark.settings import session_settings  # noqa: PLC0415

        self._folder.mkdir(parents=True, exist_ok=True)
        settings = {
            one.name: one.value
            for one in session_settings(
                "local[2]", checkpoint_manager=checkpoint_manager(), cores=1
            )
        }
        settings |= {
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": str(self._port),
            "spark.driver.extraJavaOptions": QUICK_JAVA,
            "spark.sql.warehouse.dir": str(self._folder / "warehouse"),
        }
        del settings["spark.driver.memory"]  # said by a variable, below
        given = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        submit = (str(spark_home() / "bin" / "spark-submit"), "--master", self._master)
        with (self._folder / "connect.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*submit, "--class", _CLASS, *given, "spark-internal"],
                env={**cluster_environment(), "SPARK_DAEMON_MEMORY": MEMORY},
                stdout=log,
                stderr=log,
            )
        try:
            until(self._listens, READY_SECONDS_MAX, "Spark Connect listens")
        except BaseException:
            kill_tree(self._process)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None, "only what was entered is left"
        kill_tree(self._process)

    def _listens(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            said = (self._folder / "connect.log").read_text(encoding="utf-8", errors="replace")
            raise PreconditionFailed(f"Spark Connect did not start: {said[-1000:]}")
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self._port)) == 0
