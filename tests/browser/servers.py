"""What a browser meets: nodes with and without TLS, a proxy that ends TLS, and other sites."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import ssl
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.on_a_loop import eventually

from angarium.app.composition import NodePart, parts
from angarium.app.security_settings import SecuritySettings, TlsSettings
from angarium.app.settings import HttpSettings, ListenSettings, NodeSettings, Settings
from angarium.client import Client, ClientSettings
from angarium.service.access.accounts import CatalogAccounts
from angarium.testing.reserved_port import ReservedPort

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.certificates import Folder, Pair

LOCALHOST: Final = "127.0.0.1"
PASSWORD: Final = "the administrators password"
PAGE: Final = b"<!doctype html><meta charset=utf-8><title>a page</title><p>a page</p>"


class _Signals:
    def fail(self, failure: BaseException) -> None:
        raise failure


class Node(NamedTuple):
    """A node that runs here."""

    part: NodePart
    http_port: int
    client: Client


@asynccontextmanager
async def node(
    path: Path, http: HttpSettings, *, folder: Folder | None = None, shown: Pair | None = None
) -> AsyncIterator[Node]:
    """Run a node; with a certificate it speaks TLS and requires authentication."""
    password = _password_file(path)
    port = ReservedPort()
    more: dict[str, Any] = {}
    if folder is not None and shown is not None:
        more["tls"] = TlsSettings(
            certificate=shown.certificate, private_key=shown.key, authorities=folder.ca
        )
        more["security"] = SecuritySettings(
            authentication="required", admin_password_file=str(password)
        )
    settings = Settings(
        node=NodeSettings(data=path / "data", form=True),
        listen=ListenSettings(wire_port=0, grpc_port=None, http_port=port.number),
        http=http,
        **more,
    )
    signals: Any = _Signals()
    async with AsyncExitStack() as running:
        found: list[NodePart] = []
        for part in parts(settings, signals):
            running.push_async_callback(part.stop)
            await part.start()
            if isinstance(part, NodePart):
                found.append(part)
        (made,) = found
        await eventually(lambda: made.node.catalog.is_here and made.node.catalog.is_current)
        options: dict[str, Any] = {}
        if folder is not None:
            accounts = CatalogAccounts(made.node.catalog)
            await eventually(lambda: accounts.find_user("admin"))
            settings_of_client = ClientSettings(tls=folder.options())
            options = {"user": "admin", "password": PASSWORD, "settings": settings_of_client}
        client = Client(f"{LOCALHOST}:{made.node.wire_port}", **options)
        running.push_async_callback(client.close)
        yield Node(made, port.number, client)
    port.release()


def _password_file(path: Path) -> Path:
    path.mkdir()
    password = path / "password"
    password.write_text(f"{PASSWORD}\n")
    password.chmod(0o600)
    return password


def key_digest(pair: Pair) -> str:
    """Return the digest by which Chromium is told to believe a certificate."""
    certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    public = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(public).digest()).decode()


def tls_of(pair: Pair) -> ssl.SSLContext:
    """Return the context of a server that shows this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


@asynccontextmanager
async def site(*, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve one empty page under every name and path; yield the port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            head = f"Content-Type: text/html\r\nContent-Length: {len(PAGE)}\r\n"
            writer.write(f"HTTP/1.1 200 OK\r\n{head}Connection: close\r\n\r\n".encode() + PAGE)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, LOCALHOST, 0, ssl=tls)
    async with server:
        yield int(server.sockets[0].getsockname()[1])


@asynccontextmanager
async def proxy(port: int, *, tls: ssl.SSLContext) -> AsyncIterator[int]:
    """End TLS in front of a plain port, as it is otherwise; yield the port."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(LOCALHOST, port)
        await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))

    server = await asyncio.start_server(serve, LOCALHOST, 0, ssl=tls)
    async with server:
        yield int(server.sockets[0].getsockname()[1])
