"""The first pipeline beside a local cluster: started by itself where Spark is there already.

It is the word `angarium pipeline demo` in a process of its own, so that the cluster is none the
slower to start and nothing of Spark is in this process. What it says appears above the table, one
line at a time; when the cluster stops, it is ended.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable
    from pathlib import Path

STOP_SECONDS: Final = 5.0
"""How long it may take to end when it is told to; then it is killed."""

_NEEDED: Final = ("pyspark", "deltalake")


def spark_is_installed() -> bool:
    """Tell whether a pipeline could run here, without importing anything."""
    return all(importlib.util.find_spec(name) is not None for name in _NEEDED)


class DemoPipeline:
    """One run of it."""

    def __init__(
        self, *, servers: str, folder: Path, say: Callable[[str], None], profiles: Path | None
    ) -> None:
        """`profiles` says how to come into a secure cluster."""
        self._environment = dict(os.environ)
        if profiles is not None:
            self._environment["ANGARIUM_PROFILES"] = str(profiles)
        self._servers = servers
        self._folder = folder
        self._say = say
        self._process: Process | None = None

    async def run(self) -> None:
        """Run it to its end; how it ends is said and changes nothing for the cluster."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "angarium", "pipeline", "demo"),
            *("--servers", self._servers, "--data", str(self._folder)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=self._environment,
            # Ctrl-C reaches the cluster alone, which ends it.
            process_group=0,
        )
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            text = line.decode("utf-8", "replace").rstrip()
            if text:
                self._say(f"pipeline: {text}")
        if await self._process.wait():
            self._say("pipeline: it did not come to its end; `make pipeline` tries again")

    async def stop(self) -> None:
        """End it, with the Java it has started."""
        if self._process is None or self._process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await self._process.wait()
                return
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
