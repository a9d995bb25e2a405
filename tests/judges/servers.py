"""The servers that are judged when none are named, each in a process of its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.judges.tools import ROOT

from angarium.bench.cluster import BenchCluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def node() -> Iterator[str]:
    """Start a node; yield the address of its gRPC door."""
    with tempfile.TemporaryDirectory(prefix="angarium-judges-") as folder:
        cluster = BenchCluster(Path(folder), nodes=1)
        try:
            asyncio.run(cluster.start())
            yield cluster.nodes[0].grpc
        finally:
            cluster.stop()


@contextmanager
def interop_service(*, tls: bool = False, port: int = 0) -> Iterator[str]:
    """Start gRPC's test service; yield its address. It ends well, as a node does."""
    words = ["-m", "tests.doors.interop.on_angarium", f"--port={port}"]
    words += ["--tls"] if tls else []
    serving = subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert serving.stdout is not None
        address = serving.stdout.readline().strip()
        assert address, "the test service did not start; its words are above"
        yield address
    finally:
        serving.terminate()
        serving.wait(timeout=30)
