"""A real object store for tests: SeaweedFS, with S3's API; and a road to it on which things happen.

`TEST_OBJECT_STORE=http://HOST:PORT/BUCKET`, with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, has
the tests use another one that runs already: MinIO, Ceph, versitygw.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Self

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOST = "127.0.0.1"
STARTED_S = 120.0
BUCKET = "backups"
ACCESS_KEY = "AKIAOFTHETESTS"
SECRET_KEY = "the-secret-of-the-tests"

PORTS = (
    *("master.port", "master.port.grpc", "volume.port", "volume.port.grpc"),
    *("filer.port", "filer.port.grpc", "s3.port", "s3.port.grpc"),
)


class ObjectServer:
    """SeaweedFS in one process. Use it with `with`."""

    def __init__(self) -> None:
        # Sockets have short paths: not below pytest's folder.
        self._folder = Path(tempfile.mkdtemp(prefix="weed"))
        self._process: subprocess.Popen[bytes] | None = None
        # Bound as long as this lives, so that nobody else is given one of the numbers.
        self._reserved = {name: _reserved() for name in PORTS}
        self.endpoint = ""

    def __enter__(self) -> Self:
        if not self._started():
            log = (self._folder / "log").read_text(errors="replace")
            self.__exit__()
            raise AssertionError(log[-4_000:])
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        for one in self._reserved.values():
            one.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def environment(self) -> dict[str, str]:
        """What somebody has to set who wants to use it."""
        return environment(self.endpoint)

    def _started(self) -> bool:
        folder = self._folder
        identity = {
            "name": "tests",
            "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
            "actions": ["Admin", "Read", "Write", "List"],
        }
        (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
        (folder / "data").mkdir(exist_ok=True)
        ports = {name: one.getsockname()[1] for name, one in self._reserved.items()}
        with (folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(Path(sys.executable).with_name("weed")),
                    "server",
                    f"-dir={folder / 'data'}",
                    f"-ip={HOST}",
                    f"-ip.bind={HOST}",
                    "-master.telemetry=false",
                    "-master.volumePreallocate=false",
                    "-master.volumeSizeLimitMB=64",
                    "-volume.max=20",
                    "-s3",
                    "-s3.iam=false",
                    "-s3.port.iceberg=0",
                    "-s3.port.lance=0",
                    f"-s3.config={folder / 's3.json'}",
                    f"-s3.localSocket={folder / 's3.sock'}",
                    f"-filer.localSocket={folder / 'filer.sock'}",
                    *(f"-{name}={port}" for name, port in ports.items()),
                ],
                stdout=log,
                stderr=log,
                env={key: value for key, value in os.environ.items() if key[:4] != "AWS_"},
            )
        self.endpoint = f"http://{HOST}:{ports['s3.port']}"
        deadline = time.monotonic() + STARTED_S
        while time.monotonic() < deadline and self._process.poll() is None:
            if _has_bucket(self.endpoint):
                return True
            time.sleep(0.1)
        return False


@contextmanager
def object_server() -> Iterator[dict[str, str]]:
    """Yield the environment of whoever uses the store, and a bucket's name as `BUCKET`."""
    other = os.environ.get("TEST_OBJECT_STORE")
    if other:
        endpoint, _, bucket = other.rpartition("/")
        named = {one: os.environ[one] for one in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
        yield {**environment(endpoint), **named, "BUCKET": bucket}
        return
    with ObjectServer() as server:
        yield {**server.environment, "BUCKET": BUCKET}


def environment(endpoint: str) -> dict[str, str]:
    """Return how a store at this address is reached."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": "us-east-1",
    }


def fresh_place(bucket: str) -> str:
    """Return where nobody has a backup yet."""
    return f"s3://{bucket}/{secrets.token_hex(6)}/nightly"


class Road:
    """What lies between a client and an object store: it hands everything on, unless told not to.

    `mishap` is asked for each request, as `PUT /bucket/name`; what it returns happens instead.
    """

    def __init__(self, endpoint: str) -> None:
        self._target = endpoint.removeprefix("http://")
        self.mishap: Callable[[str], str | None] = lambda _: None
        """`503`; `reset`: the request gets there in part, and then the connection is gone;
        `lost`: the request is carried out, and the answer never comes; `cut`: the answer breaks off
        in the middle; `flip`: a bit of its body is another one."""
        self.requests: list[str] = []
        road = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def handle_one_request(self) -> None:
                """Take any method: what it means is the store's business."""
                self.raw_requestline = self.rfile.readline(65_537)
                if not self.raw_requestline:
                    self.close_connection = True
                elif self.parse_request():
                    road._pass(self)
                    self.wfile.flush()

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://{HOST}:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _pass(self, asked: BaseHTTPRequestHandler) -> None:
        line = f"{asked.command} {asked.path}"
        body = asked.rfile.read(int(asked.headers.get("Content-Length") or 0))
        self.requests.append(line)
        mishap = self.mishap(line)
        if mishap == "503":
            asked.send_response(503)
            asked.send_header("Content-Length", "0")
            asked.end_headers()
            return
        if mishap == "reset":
            self._send_half(asked, body)
            asked.close_connection = True
            return
        # Headers as they came, Host included: they are signed.
        onward = http.client.HTTPConnection(self._target, timeout=60)
        try:
            onward.putrequest(asked.command, asked.path, skip_host=True, skip_accept_encoding=True)
            for name, value in asked.headers.items():
                onward.putheader(name, value)
            onward.endheaders(body)
            answer = onward.getresponse()
            content = answer.read()
        finally:
            onward.close()
        if mishap == "lost":
            asked.close_connection = True
            return
        if mishap == "flip" and content:
            content = content[:-1] + bytes([content[-1] ^ 1])
        asked.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in {"transfer-encoding", "connection", "content-length"}:
                asked.send_header(name, value)
        size = answer.getheader("Content-Length") if asked.command == "HEAD" else str(len(content))
        if size is not None:
            asked.send_header("Content-Length", size)
        asked.end_headers()
        if mishap == "cut":
            content = content[: len(content) // 2]
            asked.close_connection = True
        asked.wfile.write(content)

    def _send_half(self, asked: BaseHTTPRequestHandler, body: bytes) -> None:
        host, _, port = self._target.partition(":")
        lines = [f"{asked.command} {asked.path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in asked.headers.items()]
        with suppress(OSError), socket.create_connection((host, int(port)), timeout=60) as onward:
            onward.sendall("\r\n".join([*lines, "", ""]).encode() + body[: len(body) // 2])


def _has_bucket(endpoint: str) -> bool:
    """Tell whether objects can be put; the first one makes the bucket."""
    store = S3Store(
        BUCKET,
        endpoint=endpoint,
        access_key_id=ACCESS_KEY,
        secret_access_key=SECRET_KEY,
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )
    try:
        obstore.put(store, "begun", b"")
    except BaseError:
        return False
    return True


def _reserved() -> socket.socket:
    """Return a socket that keeps its port from others, but not from who says SO_REUSEADDR too."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((HOST, 0))
    return made
