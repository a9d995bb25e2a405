"""Chromium, driven through chromedriver by WebDriver's JSON over HTTP."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from angarium.testing.reserved_port import ReservedPort

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

PROGRAMS: Final = ("chromium", "chromedriver")
INSTALL: Final = "sudo apt-get install -y chromium chromium-driver"

START_S: Final = 60.0
SCRIPT_MS: Final = 20_000
FLAGS: Final = (
    "--headless",
    "--no-sandbox",  # root may not have one
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


def missing() -> str:
    """Return what is not installed; empty if nothing is."""
    return ", ".join(one for one in PROGRAMS if shutil.which(one) is None)


class Browser:
    """One window of one browser with a fresh profile."""

    def __init__(self, driver: str, session: str) -> None:
        self._base = f"{driver}/session/{session}"

    def open(self, url: str) -> None:
        """Go to an address, and wait until its page is loaded."""
        self._do("POST", "/url", url=url)

    @property
    def url(self) -> str:
        """Where the window is."""
        return str(self._do("GET", "/url"))

    @property
    def source(self) -> str:
        """Return the page as it is shown."""
        return str(self._do("GET", "/source"))

    def run(self, script: str, *arguments: object) -> Any:
        """Run a script that calls its last argument with what it found."""
        return self._do("POST", "/execute/async", script=script, args=list(arguments))

    def add_headers(self, headers: Mapping[str, str]) -> None:
        """Send these with every request from now on, whichever page it is for."""
        for command, given in (
            ("Network.enable", {}),
            ("Network.setExtraHTTPHeaders", {"headers": dict(headers)}),
        ):
            self._do("POST", "/goog/cdp/execute", cmd=command, params=given)

    def enter_frame(self, number: int = 0) -> None:
        """Look at a frame of the page from now on."""
        self._do("POST", "/frame", id=number)

    def _do(self, method: str, path: str, **body: object) -> Any:
        return asked(method, self._base + path, body if method == "POST" else None)


@contextmanager
def browser(
    profile: Path, *, addresses: Mapping[str, int], trusted: str, logs: Path
) -> Iterator[Browser]:
    """Start a browser to which each `HOST:PORT` of `addresses` is a port of this machine.

    Certificates whose key has the digest `trusted` (SHA-256 of its SubjectPublicKeyInfo, in base64)
    are good without an authority.
    """
    rules = ", ".join(f"MAP {host} 127.0.0.1:{port}" for host, port in addresses.items())
    flags = (
        *FLAGS,
        f"--user-data-dir={profile}",
        f"--host-resolver-rules={rules}",
        f"--ignore-certificate-errors-spki-list={trusted}",
    )
    wanted = {
        "browserName": "chrome",
        "goog:chromeOptions": {"args": list(flags), "binary": shutil.which(PROGRAMS[0])},
        "timeouts": {"script": SCRIPT_MS, "pageLoad": SCRIPT_MS},
        "pageLoadStrategy": "normal",
    }
    reserved = ReservedPort()
    driver = f"http://127.0.0.1:{reserved.number}"
    with logs.open("wb") as log:
        command = [shutil.which(PROGRAMS[1]) or "", f"--port={reserved.number}"]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _until_ready(driver)
            made = asked("POST", f"{driver}/session", {"capabilities": {"alwaysMatch": wanted}})
            session = str(made["sessionId"])
            try:
                yield Browser(driver, session)
            finally:
                asked("DELETE", f"{driver}/session/{session}")
        finally:
            process.terminate()
            process.wait(START_S)
            reserved.release()


def asked(method: str, url: str, body: object = None) -> Any:
    """Return the value of an answer of chromedriver; `RuntimeError` with what it says is wrong."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=START_S) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise RuntimeError(json.load(error)["value"]["message"].split("\n")[0]) from None


def _until_ready(driver: str) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            if asked("GET", f"{driver}/status")["ready"]:
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.05)
