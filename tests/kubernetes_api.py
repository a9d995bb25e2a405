"""What an API server of Kubernetes says about EndpointSlices: list, watch, bookmarks, refusals.

This is an HTTPS server of our own, which takes no time to start. What nodes do with a real API
server is tried by `make kubernetes`, with the same things going wrong.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.certificates import Folder

from angarium.addresses import Address

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HOST = "127.0.0.1"
SERVICE = "angarium"
NAMESPACE = "brokers"
PATH = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"


class KubernetesApi:
    """One service's slices. Use it with `async with`, on any event loop."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.credentials = folder / "serviceaccount"
        """What a pod has under /var/run/secrets/kubernetes.io/serviceaccount."""
        self.credentials.mkdir(exist_ok=True)
        self.token = ""
        self.is_allowed = True
        """Whether the service account has its Role."""
        self.requests: list[str] = []
        """Every path that was asked for."""
        self.bookmark_s = 60.0
        """Seconds between two bookmarks of a watch."""
        self._version = 100
        self._oldest = 100
        """Watches from before this version are refused."""
        self._slices: dict[str, dict[str, Any]] = {}
        self._events: list[tuple[int, dict[str, Any]]] = []
        self._changed = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._is_closed = False
        self._watches: set[asyncio.StreamWriter] = set()
        self.rotate_token("first-token")

    async def __aenter__(self) -> Self:
        keys = Folder(self._folder)
        pair = keys.pair("api", hosts=(HOST, "kubernetes.default.svc"))
        (self.credentials / "ca.crt").write_bytes(keys.ca.read_bytes())
        (self.credentials / "namespace").write_text(NAMESPACE)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        self._server = await asyncio.start_server(self._serve, HOST, 0, ssl=context)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self._is_closed = True
        self.end_watches()
        async with self._changed:
            self._changed.notify_all()
        while self._watches:  # noqa: ASYNC110  (a task that is cancelled instead is told of)
            await asyncio.sleep(0.001)

    @property
    def address(self) -> Address:
        """Where it listens."""
        assert self._server is not None
        return Address(HOST, self._server.sockets[0].getsockname()[1])

    # --- what happens in the cluster --------------------------------------------------------

    def rotate_token(self, token: str) -> None:
        """Replace the service account's token, as the kubelet does; the old one counts no more."""
        self.token = token
        fresh = self.credentials / "token.new"
        fresh.write_text(token)
        fresh.rename(self.credentials / "token")

    async def set_slice(
        self,
        name: str,
        addresses: Sequence[Address],
        *,
        conditions: dict[str, bool] | None = None,
        port_name: str = "wire",
    ) -> None:
        """Have a slice with these pods; all of its endpoints have the port of the first one."""
        verb = "MODIFIED" if name in self._slices else "ADDED"
        self._version += 1
        self._slices[name] = {
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "resourceVersion": str(self._version),
                "labels": {"kubernetes.io/service-name": SERVICE},
            },
            "addressType": "IPv4",
            "endpoints": [
                {
                    "addresses": [one.host],
                    "conditions": conditions or {"ready": True, "serving": True},
                    "targetRef": {"kind": "Pod", "name": f"pod-{number}"},
                }
                for number, one in enumerate(addresses)
            ],
            "ports": [
                {"name": port_name, "protocol": "TCP", "port": one.port} for one in addresses[:1]
            ],
        }
        await self._tell(verb, self._slices[name])

    async def delete_slice(self, name: str) -> None:
        """Take a slice away."""
        self._version += 1
        gone = self._slices.pop(name)
        gone["metadata"]["resourceVersion"] = str(self._version)
        await self._tell("DELETED", gone)

    async def forget_history(self) -> None:
        """Compact: whoever watches, or wants to watch, from an earlier version has to list."""
        self._version += 1
        self._oldest = self._version
        self._events.clear()
        async with self._changed:
            self._changed.notify_all()

    def end_watches(self) -> None:
        """Cut every connection."""
        for writer in list(self._watches):
            writer.transport.abort()

    async def _tell(self, verb: str, one: dict[str, Any]) -> None:
        told = {"type": verb, "object": {**_kind("EndpointSlice"), **json.loads(json.dumps(one))}}
        self._events.append((self._version, told))
        async with self._changed:
            self._changed.notify_all()

    # --- the server -------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._watches.add(writer)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            await self._answer(head, writer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._watches.discard(writer)
            writer.close()

    async def _answer(self, head: str, writer: asyncio.StreamWriter) -> None:
        request, *lines = head.split("\r\n")
        verb, target, _ = request.split(" ")
        assert verb == "GET"
        self.requests.append(target)
        headers = {name.lower(): value for name, _, value in (one.partition(": ") for one in lines)}
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if headers.get("authorization") != f"Bearer {self.token}":
            _refuse(writer, 401, "Unauthorized", "Unauthorized")
        elif not self.is_allowed:
            who = f"system:serviceaccount:{NAMESPACE}:default"
            what = 'endpointslices" in API group "discovery.k8s.io'
            _refuse(
                writer,
                403,
                "Forbidden",
                f'endpointslices.discovery.k8s.io is forbidden: User "{who}" cannot list resource '
                f'"{what}" in the namespace "{NAMESPACE}"',
            )
        elif url.path != PATH:
            _refuse(writer, 404, "NotFound", "the server could not find the requested resource")
        elif query["labelSelector"] != f"kubernetes.io/service-name={SERVICE}":
            _send(writer, self._listed([]))
        elif "watch" not in query:
            _send(writer, self._listed(list(self._slices.values())))
        else:
            assert query["allowWatchBookmarks"] == "true"
            await self._watch(int(query["resourceVersion"]), query, writer)

    def _listed(self, slices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            **_kind("EndpointSliceList"),
            "metadata": {"resourceVersion": str(self._version)},
            "items": slices,
        }

    async def _watch(
        self, version: int, query: dict[str, str], writer: asyncio.StreamWriter
    ) -> None:
        # A watch from a version that is too old begins like any other: an event says it.
        self._begin(writer)
        loop = asyncio.get_running_loop()
        ends = loop.time() + int(query["timeoutSeconds"])
        while loop.time() < ends and not self._is_closed and not writer.is_closing():
            if version < self._oldest:
                write_event(writer, {"type": "ERROR", "object": expired()})
                break
            for number, told in list(self._events):
                if number > version:
                    version = number
                    write_event(writer, told)
            try:
                async with asyncio.timeout(self.bookmark_s), self._changed:
                    await self._changed.wait()
            except TimeoutError:
                version = self._version
                metadata = {"resourceVersion": str(version)}
                noted = {**_kind("EndpointSlice"), "metadata": metadata}
                write_event(writer, {"type": "BOOKMARK", "object": noted})
        writer.write(b"0\r\n\r\n")

    @staticmethod
    def _begin(writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )


def _kind(kind: str) -> dict[str, str]:
    return {"kind": kind, "apiVersion": "discovery.k8s.io/v1"}


def expired() -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "too old resource version: 1 (2)",
        "reason": "Expired",
        "code": 410,
    }


def _refuse(writer: asyncio.StreamWriter, code: int, reason: str, message: str) -> None:
    status = {**expired(), "message": message, "reason": reason, "code": code}
    _send(writer, status, code=code)


def _send(writer: asyncio.StreamWriter, document: dict[str, Any], *, code: int = 200) -> None:
    body = json.dumps(document).encode()
    writer.write(
        f"HTTP/1.1 {code} It\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )


def write_event(writer: asyncio.StreamWriter, event: dict[str, Any]) -> None:
    line = json.dumps(event).encode() + b"\n"
    writer.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
