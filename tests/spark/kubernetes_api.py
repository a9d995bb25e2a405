"""As much of a Kubernetes API as Spark needs to ask for its pods; it starts none, and writes down
what was asked for."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1"


class KubernetesApi:
    """Answers on loopback. Use it as a context manager."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        """Where something was to be made, and what."""
        self.ended = threading.Event()
        self._server = ThreadingHTTPServer((HOST, 0), _handler(self))
        self.master = f"k8s://http://{HOST}:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()

    def pods(self) -> list[dict[str, Any]]:
        """Return the pods that were asked for."""
        return [made for path, made in list(self.asked) if path.endswith("/pods")]

    def config_maps(self) -> list[dict[str, str]]:
        """Return the files that pods are to find."""
        return [made["data"] for path, made in list(self.asked) if "/configmaps" in path]


def environment(pod: dict[str, Any]) -> dict[str, str]:
    """Return the variables of a pod's container."""
    (container,) = pod["spec"]["containers"]
    return {one["name"]: one["value"] for one in container["env"] if "value" in one}


def _handler(api: KubernetesApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if "watch=true" in self.path:
                api.ended.wait()  # whoever watches sees nothing happen
            self._answer(404, {"kind": "Status", "status": "Failure", "code": 404})

        def do_POST(self) -> None:
            made = json.loads(b"".join(self._body()))
            api.asked.append((self.path.partition("?")[0], made))
            self._answer(201, {**made, "metadata": {**made["metadata"], "uid": "1"}})

        do_PATCH = do_PUT = do_POST  # noqa: N815 (the names that the server looks for)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def _body(self) -> Iterator[bytes]:
            if self.headers.get("Transfer-Encoding") != "chunked":
                yield self.rfile.read(int(self.headers.get("Content-Length") or 0))
                return
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()

        def _answer(self, status: int, content: dict[str, Any]) -> None:
            text = json.dumps(content).encode()
            with suppress(OSError):  # who asked may be gone
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

    return Handler
