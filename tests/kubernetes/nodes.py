"""Three nodes as users start them, whose only way to each other is Kubernetes."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Final, Self

from tests.cluster.command_line import COMMAND, environment
from tests.kubernetes.server import SERVICE

from angarium.addresses import Address
from angarium.testing.reserved_port import ReservedPort

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.kubernetes.server import ApiServer

PATIENCE_S: Final = 180.0
STOP_S_MAX: Final = 60.0

_ADDRESSES: Final = re.compile(r"^angarium_discovery_addresses(?:\{.*\})? (\d+)", re.MULTILINE)


async def eventually(what: Callable[[], bool], *, until: asyncio.Task[None]) -> bool:
    """Wait until something is so; False if it does not become so. `until` has to go on."""
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        if until.done():
            until.result()
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.05)
    return True


class Node:
    """One of them, through all its starts."""

    def __init__(self, name: str, folder: Path, host: str, settings: dict[str, str]) -> None:
        self.name = name
        self._folder = folder
        self._host = host
        self._environment = environment() | settings
        self._http = ReservedPort()
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._read_from = 0
        self.move()

    def move(self) -> None:
        """Be somewhere else from the next start on."""
        self._wire = ReservedPort()
        self.address = Address(self._host, self._wire.number)

    def start(self, *, form: bool = False) -> None:
        """Start it; it is not told whom to join."""
        words = [*COMMAND, "serve", "--data", self.name, "--discover", f"kubernetes:{SERVICE}"]
        words += ["--listen", "0.0.0.0", "--advertise", self._host, "--insecure"]
        words += ["--wire-port", str(self.address.port), "--grpc-port", "off"]
        words += ["--http-port", str(self._http.number), *(["--form"] if form else [])]
        self._log.touch()
        self.hear_from_now_on()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                words, cwd=self._folder, env=self._environment, stdout=log, stderr=log
            )

    def stop(self) -> None:
        """Stop it."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def unready(self) -> str:
        """Return why it is not ready; empty if it is."""
        where = f"http://127.0.0.1:{self._http.number}/readyz"
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
                where, timeout=5
            ):
                return ""
        except urllib.error.HTTPError as error:
            return error.read().decode(errors="replace").strip()
        except OSError as error:
            return str(error)

    def found(self) -> int:
        """Return how many addresses Kubernetes has, as it knows."""
        where = f"http://127.0.0.1:{self._http.number}/metrics"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(where, timeout=30) as answer:
            page = answer.read().decode()
        (number,) = _ADDRESSES.findall(page)
        return int(number)

    def hear_from_now_on(self) -> None:
        """Let `log` leave out what was said so far."""
        self._read_from = self._log.stat().st_size

    def log(self) -> str:
        """Return what it has said since its last start, or since somebody listens."""
        with self._log.open("rb") as file:
            file.seek(self._read_from)
            return file.read().decode(errors="replace")


class Nodes:
    """All of them. Use it as a context manager."""

    def __init__(self, folder: Path, api: Address, credentials: Path, host: str) -> None:
        self.credentials = credentials
        self.told = ""
        """Why some were not ready, if they were not."""
        self.said = ""
        """The sentence that was waited for."""
        settings = {
            "ANGARIUM_DISCOVERY_KUBERNETES_API": str(api),
            "ANGARIUM_DISCOVERY_KUBERNETES_CREDENTIALS": str(credentials),
        }
        self.all = [Node(f"node-{one}", folder, host, settings) for one in (1, 2, 3)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.all:
            node.stop()

    def move(self, server: ApiServer | None = None) -> None:
        """Have all of them come back somewhere else, as pods do; `server` hears of it."""
        for node in self.all:
            node.stop()
            node.move()
        for node in self.all:
            node.start()
            if server is not None:
                server.set_slice(node.name, node.address)

    def wait_until_ready(self) -> bool:
        """Wait until all are ready; False if they are not in time, and `told` says why."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            said = {node.name: node.unready() for node in self.all}
            self.told = "; ".join(f"{name}: {why}" for name, why in said.items() if why)
            if not self.told or time.monotonic() > deadline:
                return not self.told
            time.sleep(0.1)

    def wait_until_found(self, addresses: int) -> bool:
        """Wait until each of them knows of so many addresses; False if one does not in time."""
        deadline = time.monotonic() + PATIENCE_S
        while any(node.found() != addresses for node in self.all):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    def hear_from_now_on(self) -> None:
        """Let `wait_for` leave out what was said so far."""
        for node in self.all:
            node.hear_from_now_on()

    def wait_for(self, *words: str) -> bool:
        """Wait until one of them says all that in one line."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            for node in self.all:
                for line in node.log().splitlines():
                    if all(one in line for one in words):
                        self.said = str(json.loads(line)["message"])
                        return True
            time.sleep(0.1)
        self.said = self.all[0].log()[-2_000:]
        return False
