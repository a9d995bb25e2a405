"""Pages of another scheme at a door that speaks TLS, on requests, streams and WebSockets."""

from __future__ import annotations

import asyncio
import base64
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from tests.certificates import Folder
from tests.component.doors.http.opened_http import LOCALHOST, Wire, opened
from tests.on_a_loop import run

from angarium.security.tls import Door
from angarium.security.tls.contexts import client_context
from angarium.wire.http.admission import Admission
from angarium.wire.http.origins import Origins

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path
    from typing import Any

UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}",
)
ASKED = [
    ("POST", "/v1/topics/orders/records?partition=0", (), 200),
    ("DELETE", "/v1/topics/orders", (), 204),
    ("GET", "/v1/topics/orders/stream", (), 200),
    ("GET", "/v1/socket", UPGRADE, 101),
    ("GET", "/graphql", (*UPGRADE, "Sec-WebSocket-Protocol: graphql-transport-ws"), 101),
]


class Tls:
    """A door with TLS, and clients that believe it."""

    def __init__(self, port: int, folder: Folder) -> None:
        self.port = port
        self._context = client_context(authorities=folder.ca, files=None)

    async def told(self, method: str, target: str, *headers: str) -> tuple[int, dict[str, str]]:
        """Return status and headers of the answer."""
        reader, writer = await asyncio.open_connection(LOCALHOST, self.port, ssl=self._context)
        try:
            said = [f"{method} {target} HTTP/1.1", *headers, "Content-Length: 0", "", ""]
            wire = Wire(reader, writer)
            await wire.say("\r\n".join(said).encode())
            answer = await wire.hear(has_body=False)
            return answer.status, answer.headers
        finally:
            writer.close()


@asynccontextmanager
async def over_tls(path: Path, **more: Any) -> AsyncIterator[Tls]:
    folder = Folder(path)
    async with opened(tls=folder.node_tls().listener(Door.HTTP), **more) as door:
        yield Tls(door.port, folder)


@pytest.mark.parametrize(("method", "target", "more", "status"), ASKED)
def test_a_page_without_tls_does_nothing_at_the_same_host_with_it(
    method: str, target: str, more: tuple[str, ...], status: int, tmp_path: Path
) -> None:
    async def story() -> None:
        async with over_tls(tmp_path) as door:
            for authority in ("localhost", f"localhost:{door.port}"):
                host = f"Host: {authority}"
                refused = f"Origin: http://{authority}"
                assert (await door.told(method, target, host, refused, *more))[0] == 403
                forged = (f"Origin: https://{authority}", "Sec-Fetch-Site: cross-site")
                assert (await door.told(method, target, host, *forged, *more))[0] == 403
            own = ("Origin: https://localhost", "Sec-Fetch-Site: same-origin")
            assert (await door.told(method, target, "Host: localhost", *own, *more))[0] == status

    run(story())


def test_a_plain_door_behind_a_proxy_takes_the_origin_that_the_settings_name() -> None:
    async def story() -> None:
        said = {"Origin": "https://localhost", "Sec-Fetch-Site": "same-origin"}
        async with opened() as door:
            answer = await door.ask("POST", "/v1/topics", {}, headers=said)
            assert answer.status == 403
            assert "'https://localhost'" in answer.json["detail"]
            assert "[http] origins" in answer.json["detail"]
        async with opened(admission=Admission(origins=Origins(["https://localhost"]))) as door:
            assert (await door.ask("GET", "/v1/topics", headers=said)).status == 200

    run(story())


def test_browsers_are_bound_to_tls_where_the_settings_say_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with over_tls(tmp_path, hsts_s=86_400) as door:
            for target, status in (("/healthz", 200), ("/nowhere", 404), ("/graphql", 200)):
                told = await door.told("GET", target, "Host: localhost")
                assert told[0] == status
                assert told[1]["strict-transport-security"] == "max-age=86400"
        async with over_tls(tmp_path) as door:
            told = await door.told("GET", "/healthz", "Host: localhost")
            assert "strict-transport-security" not in told[1]
        # A browser ignores it without TLS, and so may not be told (RFC 6797, section 7.2).
        async with opened(hsts_s=86_400) as plain:
            answer = await plain.ask("GET", "/healthz")
            assert "strict-transport-security" not in answer.headers

    run(story())
