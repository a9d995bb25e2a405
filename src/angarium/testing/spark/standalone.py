"""Master and workers of a standalone Spark cluster, as processes of this machine.

They come from the PySpark wheel, which has no scripts to start them but all that is needed. None of
them outlives the block, and only processes started here are ever signalled.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from angarium.bench.cluster import free_ports
from angarium.errors import PreconditionFailed
from angarium.testing.reserved_port import HOST

if TYPE_CHECKING:
    from collections.abc import Callable

READY_SECONDS_MAX: Final = 300.0
"""How long master and workers may take to find each other, on a busy machine."""

WORKER_MEMORY: Final = "1g"
EXECUTOR_MEMORY: Final = "768m"
"""What a worker offers, and what a driver should ask for to get an executor on each."""

QUICK_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Compile quickly and badly: what is tested is short."""

_DEPLOY: Final = "org.apache.spark.deploy"
_EXECUTOR: Final = "CoarseGrainedExecutorBackend"


class Standalone:
    """A master and workers of one core each. Use it as a context manager."""

    def __init__(self, folder: Path, *, workers: int = 2) -> None:
        self._folder = folder
        self._count = workers
        self._port, self._page = free_ports(2)
        self.master = f"spark://{HOST}:{self._port}"
        self._processes: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            ports = ("--port", str(self._port), "--webui-port", str(self._page))
            self._start(f"{_DEPLOY}.master.Master", "--host", HOST, *ports)
            self.workers = [self._worker(number) for number in range(self._count)]
            self.wait_for_workers()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def wait_for_workers(self) -> None:
        """Wait until the master knows as many workers as there should be."""
        until(lambda: self._alive() >= self._count, READY_SECONDS_MAX, "all workers are there")

    def kill_worker(self, number: int) -> None:
        """End a worker and its executors at once."""
        kill_tree(self.workers[number])

    def restart_worker(self, number: int) -> None:
        """Start a worker again that was killed."""
        self.workers[number] = self._worker(number)

    def executors(self) -> list[int]:
        """Return the process ids of the executors that run now."""
        return [
            pid
            for worker in self.workers
            for pid in children(worker.pid)
            if _EXECUTOR in command_line(pid)
        ]

    # --- small parts ------------------------------------------------------------------------

    def _worker(self, number: int) -> subprocess.Popen[bytes]:
        room = ("--cores", "1", "--memory", WORKER_MEMORY)
        work = ("--work-dir", str(self._folder / f"worker-{number}"))
        address = ("--host", HOST, "--webui-port", "0")
        return self._start(f"{_DEPLOY}.worker.Worker", *address, *room, *work, self.master)

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        home = spark_home()
        with (self._folder / "spark-cluster.log").open("ab") as log:
            process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), *arguments],
                env=cluster_environment(),
                stdout=log,
                stderr=log,
            )
        self._processes.append(process)
        return process

    def _alive(self) -> int:
        page = f"http://{HOST}:{self._page}/json/"
        # A master that has only just begun answers, but not in JSON yet.
        with suppress(OSError, ValueError), urllib.request.urlopen(page, timeout=5.0) as answer:
            alive: int = json.load(answer)["aliveworkers"]
            return alive
        return 0

    def _end(self) -> None:
        for process in self._processes:
            kill_tree(process)


def spark_home() -> Path:
    """Return where the wheel has put Spark; `PreconditionFailed` if there is none."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise PreconditionFailed("PySpark is not installed: pip install 'angarium[spark]'")
    return Path(found.origin).parent


def cluster_environment() -> dict[str, str]:
    """Return the environment of the cluster's own processes."""
    from angarium.spark.java import java  # noqa: PLC0415 (an extra)
    from angarium.spark.session import cache_folder  # noqa: PLC0415

    return {
        **driver_environment(),
        "JAVA_HOME": str(java(cache_folder()).home),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA,
        "SPARK_SUBMIT_OPTS": QUICK_JAVA,
    }


def driver_environment() -> dict[str, str]:
    """Return the environment of a driver on this machine.

    Its Spark home has no zipped copy of PySpark, which every new Python process would compile anew.
    """
    from angarium.spark.session import linked_home  # noqa: PLC0415 (an extra)

    home = {"SPARK_HOME": str(linked_home()), "SPARK_LOCAL_IP": HOST}
    return {**os.environ, **home, "PYSPARK_PYTHON": sys.executable}


def children(pid: int) -> list[int]:
    """Return the processes that a process has started, and they, and so on."""
    with suppress(OSError):
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
        found = [int(one) for one in text.split()]
        # A process's threads start children, too; Java's do.
        for task in Path(f"/proc/{pid}/task").iterdir():
            if task.name != str(pid):
                with suppress(OSError):
                    found += [int(one) for one in (task / "children").read_text().split()]
        return [*found, *(below for one in found for below in children(one))]
    return []


def command_line(pid: int) -> str:
    """Return how a process was started; nothing if it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """End a process and whatever it started, at once."""
    if process.poll() is not None:
        return
    for pid in [process.pid, *children(process.pid)]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def until(is_so: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"it never came to this: {what}")
        time.sleep(0.1)
