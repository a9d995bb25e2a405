"""A whole node with `[tls]`: each of its listeners, tried from outside as strangers would."""

from __future__ import annotations

import asyncio
import re
import ssl
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import grpc
import pytest
from tests.certificates import Folder, Pair, authority
from tests.on_a_loop import eventually, on_a_loop

from angarium.app.composition import NodePart, parts
from angarium.app.gateway import GatewayPart
from angarium.app.security_settings import TlsSettings, UserSettings
from angarium.app.settings import CompatSettings, ListenSettings, NodeSettings, Settings
from angarium.client import Client, ClientSettings
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub
from angarium.security import PasswordHash
from angarium.security.tls import ListenerTls
from angarium.testing.reserved_port import ReservedPort

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path
    from typing import Any


HOST = "127.0.0.1"

LISTENERS = {
    "wire": None,
    "grpc": "h2",
    "http": "http/1.1",
    "hermes_grpc": "h2",
    "hermes_http": "http/1.1",
    "bale_grpc": "h2",
    "bale_metrics": "http/1.1",
    "geo_grpc": "h2",
}
"""What each of them says that it speaks."""


class Listening(NamedTuple):
    """A node that runs here."""

    folder: Folder
    shown: Pair
    ports: dict[str, int]


class _Signals:
    def fail(self, failure: BaseException) -> None:
        raise failure


@asynccontextmanager
async def node(path: Path, *, clients: str = "none") -> AsyncIterator[Listening]:
    """Run a node with every listener there is."""
    certificates = path / "certificates"
    certificates.mkdir()
    folder = Folder(certificates)
    shown = folder.node("one")
    reserved = {name: ReservedPort() for name in LISTENERS}
    ports = {name: one.number for name, one in reserved.items()}
    settings = Settings(
        node=NodeSettings(data=path / "data", form=True),
        listen=ListenSettings(
            wire_port=ports["wire"], grpc_port=ports["grpc"], http_port=ports["http"]
        ),
        tls=TlsSettings(
            certificate=shown.certificate,
            private_key=shown.key,
            authorities=folder.ca,
            client_certificates=clients,  # type: ignore[arg-type]
        ),
        compat=CompatSettings(
            hermes_grpc_port=ports["hermes_grpc"],
            hermes_http_port=ports["hermes_http"],
            bale_grpc_port=ports["bale_grpc"],
            bale_metrics_ports=(ports["bale_metrics"],),
            geo_grpc_port=ports["geo_grpc"],
        ),
        users=UserSettings(hashes={"alice": str(PasswordHash.of("a secret"))}),
    )
    signals: Any = _Signals()
    async with AsyncExitStack() as running:
        for part in parts(settings, signals):
            running.push_async_callback(part.stop)
            await part.start()
            if isinstance(part, NodePart):
                await eventually(partial(is_ready, part))
        yield Listening(folder, shown, ports)
    for one in reserved.values():
        one.release()


def is_ready(part: NodePart) -> bool:
    return part.node.catalog.is_here and not part.node.readiness.reasons()


def context_of(folder: Folder, own: Pair | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder.ca))
    if own is not None:
        context.load_cert_chain(*own)
    return context


async def handshake(
    port: int, context: ssl.SSLContext, *, alpn: str | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if alpn is not None:
        context.set_alpn_protocols([alpn])
    return await asyncio.open_connection(HOST, port, ssl=context, server_hostname="localhost")


async def refused(port: int, context: ssl.SSLContext, *, begin: bytes = b"") -> bool:
    """Tell whether nothing can be said there: no handshake, or the end right after it."""
    try:
        reader, writer = await handshake(port, context)
    except OSError:  # an SSLError is one
        return True
    try:
        writer.write(begin)
        return await asyncio.wait_for(reader.read(1), 30.0) == b""
    except OSError:
        return True
    finally:
        writer.close()


def old(context: ssl.SSLContext) -> ssl.SSLContext:
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    return context


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@on_a_loop
async def test_every_listener_speaks_tls_and_nothing_else(tmp_path: Path) -> None:
    async with node(tmp_path) as listening:
        folder, ports = listening.folder, listening.ports
        for name, alpn in LISTENERS.items():
            port = ports[name]
            # The right authority, in both versions.
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                context = context_of(folder)
                context.minimum_version = context.maximum_version = version
                _, writer = await handshake(port, context, alpn=alpn)
                spoken = writer.get_extra_info("ssl_object")
                assert spoken.selected_alpn_protocol() == alpn, name
                assert spoken.version() == version.name.replace("_", "."), name
                writer.close()
            # Another authority, another name, and an old version.
            stranger = ssl.create_default_context(cadata=authority("another").pem.decode())
            with pytest.raises(ssl.SSLCertVerificationError):
                await handshake(port, stranger)
            with pytest.raises(ssl.SSLCertVerificationError):
                await asyncio.open_connection(
                    HOST, port, ssl=context_of(folder), server_hostname="elsewhere.example.org"
                )
            assert await refused(port, old(context_of(folder))), name
            # Plaintext: closed, with no more than an alert.
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            with suppress(ConnectionError):
                assert len(await asyncio.wait_for(reader.read(), 30.0)) < 16, name
            writer.close()


@on_a_loop
async def test_every_listener_asks_for_the_certificate_that_is_required(tmp_path: Path) -> None:
    async with node(tmp_path, clients="required") as listening:
        folder, ports = listening.folder, listening.ports
        alice = folder.client("alice")
        eve = folder.client("eve", whose=authority("another"))
        for name, alpn in LISTENERS.items():
            if name == "wire":
                continue  # it answers in its own words: tests/component/wire/test_tls.py
            asked = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
            if alpn == "h2":
                asked = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
            assert await refused(ports[name], context_of(folder), begin=asked), name
            assert await refused(ports[name], context_of(folder, eve), begin=asked), name
            reader, writer = await handshake(ports[name], context_of(folder, alice))
            writer.write(asked)
            assert await asyncio.wait_for(reader.read(1), 30.0) != b"", name
            writer.close()


@on_a_loop
async def test_a_certificate_changes_under_every_client(tmp_path: Path) -> None:
    """What runs goes on, who comes new sees the new one, and the metric counts it."""
    async with node(tmp_path) as listening:
        folder, ports = listening.folder, listening.ports
        first = listening.shown.certificate.read_text(encoding="utf-8")
        tls = folder.options()
        credentials = grpc.ssl_channel_credentials(folder.ca.read_bytes())
        async with (
            Client(f"{HOST}:{ports['wire']}", settings=ClientSettings(tls=tls)) as client,
            grpc.aio.secure_channel(f"{HOST}:{ports['grpc']}", credentials) as channel,
        ):
            stub: Any = BrokerStub(channel)
            await client.publish("orders", b"before")
            await stub.ListTopics(pb.ListTopicsRequest(), timeout=30)
            reader, writer = await handshake(ports["http"], context_of(folder))
            folder.node("one")

            async def is_new() -> bool:
                _, other = await handshake(ports["http"], context_of(folder))
                shown = other.get_extra_info("ssl_object").getpeercert(binary_form=True)
                other.close()
                return ssl.DER_cert_to_PEM_cert(shown) != first

            while not await is_new():  # noqa: ASYNC110  (it is seen from outside alone)
                await asyncio.sleep(0.05)
            await client.publish("orders", b"after")
            await stub.ListTopics(pb.ListTopicsRequest(), timeout=30)
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            page = (await reader.read()).decode()
            assert 'angarium_tls_reloads_total{outcome="taken"} 1' in page
            for use in ("wire", "grpc", "http", "nodes"):
                found = re.search(rf'_days_left{{use="{use}"}} (\S+)\n', page)
                assert found is not None
                assert 19 < float(found[1]) <= 20
            writer.close()


@on_a_loop
async def test_a_gateway_speaks_tls_on_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with node(tmp_path) as listening:
        folder = listening.folder
        monkeypatch.setenv("ANGARIUM_TLS_CA", str(folder.ca))
        door = folder.pair("gateway")
        gateway = GatewayPart(
            (f"{HOST}:{listening.ports['wire']}",),
            host=HOST,
            port=0,
            tls=ListenerTls(folder.files(door)),
        )
        port = await gateway.start()
        try:
            reader, writer = await handshake(port, context_of(folder), alpn="http/1.1")
            body = b'{"value":"x"}'
            head = f"Host: localhost\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
            kind = "Content-Type: application/json\r\n\r\n"
            target = "POST /v1/topics/orders/records HTTP/1.1\r\n"
            writer.write(f"{target}{head}{kind}".encode() + body)
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 200 "), answer
            writer.close()
        finally:
            await gateway.stop()
