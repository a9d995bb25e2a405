"""Certificates change, again and again, while publishers of every kind go on: `make rotations`.

Three nodes with TLS and authentication, and clients that are known by their certificates. Each
change puts a new certificate and key of the nodes, and of the client, in the place of the old ones,
each by a rename, as whoever renews them does; every so often a new authority has signed them. It is
over when every node shows the new certificate. Meanwhile six publishers publish, over the wire,
gRPC and HTTPS: one of each keeps its connection all along, one opens a new one after each change,
with the newest files. None of them repeats anything that fails (the wire's client does so inside,
as it always does). In the end the topic holds exactly what was acknowledged.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import sys
import tempfile
import time
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import grpc
import grpc.aio
import uvloop

from angarium.api.access import Action, Grant, ResourceKind, SubjectKind
from angarium.client import Client, ClientSettings, TlsOptions
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub
from angarium.security.tls.issuing import Authority, Names, write_secret
from angarium.testing.cluster import ProcessCluster, eventually
from angarium.testing.reserved_port import HOST

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from angarium.testing.cluster import NodeProcess

CLUSTER: Final = "rotating"
PREFIX: Final = f"angarium://{CLUSTER}/client/"
USER: Final = "publisher-1"
TOPIC: Final = "changes"

AUTHORITY_EVERY: Final = 10
"""After so many changes the next one is by a new authority."""

PAUSE_S: Final = 0.02
"""Between two publishes of one publisher: what is measured are failures, not speed."""

_BODY: Final = json.dumps({"value": "by HTTPS"}).encode()
REQUEST: Final = (
    f"POST /v1/topics/{TOPIC}/records HTTP/1.1\r\nHost: {HOST}\r\n"
    f"Content-Type: application/json\r\nContent-Length: {len(_BODY)}\r\n\r\n"
).encode() + _BODY

TAKEN_S_MAX: Final = 120.0
"""How long a node may take until it shows a new certificate, on a busy machine."""


class Files:
    """The certificates of the cluster and of its client, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = folder / "ca.crt"
        self.changes = 0
        self._authority = self._before = Authority.make("the first", days=30)
        write_secret(self.ca, self._authority.pem)
        self.renew()

    def renew(self) -> None:
        """Put new pairs in the place of the old ones, file by file."""
        node = Names(common_name="node", uri=f"angarium://{CLUSTER}/node/any", hosts=(HOST,))
        client = Names(common_name="client", uri=PREFIX + USER)
        for name, names in (("node", node), ("client", client)):
            certificate, key = self._authority.issue(names, days=20)
            write_secret(self.folder / f"{name}.key", key)
            write_secret(self.folder / f"{name}.crt", certificate)
        self.changes += 1

    def replace_authority(self) -> None:
        """Have a new authority believed beside the one before, which is the first step."""
        new = Authority.make(f"after {self.changes} changes", days=30)
        write_secret(self.ca, new.pem + self._authority.pem)
        self._before, self._authority = self._authority, new

    def forget_the_old_one(self) -> None:
        """Have the new authority alone believed, which is the last step."""
        write_secret(self.ca, self._authority.pem)

    def shown_by_a_client_of(self, *, is_new: bool) -> ssl.SSLContext:
        """Return a context with a certificate of the new authority, or of the one before."""
        authority = self._authority if is_new else self._before
        pair = authority.issue(Names(common_name="somebody", uri=PREFIX + USER), days=20)
        certificate, key = (self.folder / f"somebody.{end}" for end in ("crt", "key"))
        for path, content in zip((certificate, key), pair, strict=True):
            write_secret(path, content)
        context = ssl.create_default_context(cafile=self.ca)
        context.load_cert_chain(certificate, key)
        return context

    @property
    def shown(self) -> bytes:
        """The certificate that nodes have to show."""
        return ssl.PEM_cert_to_DER_cert((self.folder / "node.crt").read_text())

    def options(self) -> TlsOptions:
        """How our own client speaks TLS."""
        own = {one: str(self.folder / f"client.{end}") for one, end in _ENDS.items()}
        return TlsOptions(ca=str(self.ca), **own)

    async def context(self) -> ssl.SSLContext:
        """Return a context of the newest files; a pair may be read between its two renames."""
        while True:
            context = ssl.create_default_context(cafile=self.ca)
            try:
                context.load_cert_chain(self.folder / "client.crt", self.folder / "client.key")
            except ssl.SSLError:
                await asyncio.sleep(0.01)
                continue
            return context

    async def credentials(self) -> grpc.ChannelCredentials:
        """Return the same for gRPC."""
        while True:
            await self.context()
            read = [(self.folder / name).read_bytes() for name in ("client.key", "client.crt")]
            again = [(self.folder / name).read_bytes() for name in ("client.key", "client.crt")]
            if read == again:
                return grpc.ssl_channel_credentials(self.ca.read_bytes(), *read)


_ENDS: Final = {"cert": "crt", "key": "key"}


@dataclass
class Tally:
    """What became of the publishes of one publisher."""

    name: str
    acknowledged: int = 0
    connections: int = 0
    failed: list[str] = field(default_factory=list)

    @contextmanager
    def counting_failures(self) -> Iterator[None]:
        """Note whatever goes wrong, and go on."""
        try:
            yield
        except Exception as error:
            self.failed.append(f"{type(error).__name__}: {error}"[:300])


Publish: TypeAlias = "Callable[[], Awaitable[object]]"
Opened: TypeAlias = "Callable[[Tally], AbstractAsyncContextManager[Publish]]"


@dataclass
class Report:
    """How a run went."""

    changes: int
    authorities: int
    seconds: float
    taken: int
    """How often a node was seen to show a new certificate: three times for each change."""
    tallies: list[Tally]
    stored: int

    @property
    def acknowledged(self) -> int:
        """Records of all publishers."""
        return sum(one.acknowledged for one in self.tallies)

    @property
    def failures(self) -> list[str]:
        """Every publish that failed."""
        return [f"{one.name}: {said}" for one in self.tallies for said in one.failed]

    def lines(self) -> list[str]:
        """Return it for a page."""
        rows = [
            f"| {one.name} | {one.acknowledged:,} | {one.connections:,} | {len(one.failed)} |"
            for one in self.tallies
        ]
        return [
            f"{self.changes:,} changes of node and client certificates, {self.authorities} of them"
            f" by a new authority, in {self.seconds:,.0f} s; nodes took {self.taken:,}.",
            "",
            "| publisher | acknowledged | connections | failed |",
            "|---|---|---|---|",
            *rows,
            "",
            f"The topic holds {self.stored:,} records, {self.acknowledged:,} were acknowledged.",
        ]


HEARD_S_MAX: Final = 30.0


class Rotation:
    """One run."""

    def __init__(self, cluster: ProcessCluster, files: Files) -> None:
        self._cluster = cluster
        self._files = files
        self._nodes = list(cluster.nodes.values())
        self._is_over = False
        self._taken = 0
        self._authorities = 0

    async def run(self, changes: int, *, say: Callable[[str], None] = lambda _: None) -> Report:
        """Change so many times, and tell how it went."""
        await self._prepare()
        began = time.monotonic()
        ways = {"wire": self._wire, "gRPC": self._grpc, "HTTPS": self._https}
        tallies = []
        async with asyncio.TaskGroup() as publishing:
            for name, opened in ways.items():
                for is_steady in (True, False):
                    kind = "one connection" if is_steady else "a new one after each change"
                    tallies.append(Tally(f"{name}, {kind}"))
                    publishing.create_task(
                        self._keep_publishing(tallies[-1], opened, is_steady=is_steady)
                    )
            try:
                for change in range(1, changes + 1):
                    await self._change(is_by_new_authority=change % AUTHORITY_EVERY == 0)
                    if change % 50 == 0:
                        failed = sum(len(one.failed) for one in tallies)
                        say(f"{change} changes, {time.monotonic() - began:.0f} s, {failed} failed")
            finally:
                self._is_over = True
        return Report(
            changes=changes,
            authorities=self._authorities,
            seconds=time.monotonic() - began,
            taken=self._taken,
            tallies=tallies,
            stored=await self._stored(sum(one.acknowledged for one in tallies)),
        )

    # --- changing -------------------------------------------------------------------------------

    async def _change(self, *, is_by_new_authority: bool) -> None:
        if is_by_new_authority:
            self._files.replace_authority()
            # Whoever is shown a certificate of it has to believe it by then, clients included.
            await self._believed(is_new=True, is_let_in=True)
            self._authorities += 1
        self._files.renew()
        for node in self._nodes:
            await eventually(
                lambda one=node: self._shows_newest(one),  # type: ignore[misc]
                within_s=TAKEN_S_MAX,
                what=f"{node.name} shows the new certificate",
            )
            self._taken += 1
        if is_by_new_authority:
            await asyncio.sleep(2.5)  # clients look at their files when they dial, once a second
            self._files.forget_the_old_one()
            await self._believed(is_new=False, is_let_in=False)

    async def _believed(self, *, is_new: bool, is_let_in: bool) -> None:
        """Wait until every node lets somebody in, or not, who has a certificate of that authority.

        It is tried, and not read from a log: a node that read files while they changed reads them
        again, and says twice that it took some.
        """
        shown = self._files.shown_by_a_client_of(is_new=is_new)

        async def as_wanted(node: NodeProcess) -> bool:
            return await self._lets_in(node, shown) is is_let_in

        for node in self._nodes:
            await eventually(
                lambda one=node: as_wanted(one),  # type: ignore[misc]
                within_s=TAKEN_S_MAX,
                what=f"{node.name} believes the authorities in the file",
            )

    async def _lets_in(self, node: NodeProcess, context: ssl.SSLContext) -> bool:
        assert node.http_port is not None
        try:
            reader, writer = await asyncio.open_connection(HOST, node.http_port.number, ssl=context)
            try:
                writer.write(f"GET /healthz HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
                async with asyncio.timeout(TAKEN_S_MAX):
                    return bool(await reader.read(1))
            finally:
                writer.close()
        except OSError:  # an SSLError is one
            return False

    async def _shows_newest(self, node: NodeProcess) -> bool:
        assert node.http_port is not None
        try:
            _, writer = await asyncio.open_connection(
                HOST, node.http_port.number, ssl=await self._files.context()
            )
        except OSError:
            return False
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return bool(shown == self._files.shown)

    # --- publishing -----------------------------------------------------------------------------

    async def _keep_publishing(self, tally: Tally, opened: Opened, *, is_steady: bool) -> None:
        """Publish to the end; unless `is_steady`, by a new connection after each change."""
        while not self._is_over:
            seen = self._files.changes
            with tally.counting_failures():
                async with opened(tally) as publish:
                    tally.connections += 1
                    while not self._is_over and (is_steady or self._files.changes == seen):
                        with tally.counting_failures():
                            await publish()
                            tally.acknowledged += 1
                        await asyncio.sleep(PAUSE_S)

    @asynccontextmanager
    async def _wire(self, _: Tally) -> AsyncIterator[Publish]:
        addresses = [node.address for node in self._nodes]
        settings = ClientSettings(tls=self._files.options(), publish_timeout_s=60.0)
        async with Client(*addresses, settings=settings) as client:
            yield lambda: client.publish(TOPIC, b"by wire")

    @asynccontextmanager
    async def _grpc(self, tally: Tally) -> AsyncIterator[Publish]:
        address = f"{HOST}:{self._port_for(tally, 'grpc_port')}"
        asked = pb.PublishRequest(topic=TOPIC, record=pb.NewRecord(value=b"by gRPC"))
        async with grpc.aio.secure_channel(address, await self._files.credentials()) as channel:
            stub: Any = BrokerStub(channel)
            yield lambda: stub.Publish(asked, timeout=60)

    @asynccontextmanager
    async def _https(self, tally: Tally) -> AsyncIterator[Publish]:
        port, context = self._port_for(tally, "http_port"), await self._files.context()
        reader, writer = await asyncio.open_connection(HOST, port, ssl=context)

        async def post() -> None:
            writer.write(REQUEST)
            async with asyncio.timeout(60):
                answer = await reader.readuntil(b"\r\n\r\n")
                length = int(answer.lower().split(b"content-length:")[1].split()[0])
                told = await reader.readexactly(length)
            if not answer.startswith(b"HTTP/1.1 200 "):
                raise RuntimeError((answer + told).decode())

        try:
            yield post
        finally:
            writer.close()

    def _port_for(self, tally: Tally, door: str) -> int:
        """Return a node's port, each time another node's."""
        port = getattr(self._nodes[tally.connections % len(self._nodes)], door)
        return int(port.number)

    # --- before and after -----------------------------------------------------------------------

    def _admin(self) -> Client:
        settings = ClientSettings(tls=self._files.options(), request_timeout_s=60.0)
        addresses = [node.address for node in self._nodes]
        return Client(*addresses, settings=settings, login=self._cluster.login)

    async def _prepare(self) -> None:
        async with self._admin() as admin:
            await admin.create_topic(TOPIC, partitions=3)
            await admin.create_user(USER)
            grant = Grant(
                actions=(Action.TOPIC_PUBLISH, Action.TOPIC_DESCRIBE),
                kind=ResourceKind.TOPIC,
                name=TOPIC,
            )
            await admin.create_grant(SubjectKind.USER, USER, grant)
        await self._cluster.settled()

    async def _stored(self, acknowledged: int) -> int:
        """Return how many records there are; a node that follows hears of the last ones later."""
        stored = 0
        deadline = time.monotonic() + HEARD_S_MAX
        async with self._admin() as admin:
            while stored < acknowledged and time.monotonic() < deadline:
                found = await admin.describe_topic(TOPIC)
                stored = sum(int(one.end_offset or 0) for one in found.partitions)
                await asyncio.sleep(0.1)
        return stored


async def rotated(
    folder: Path, changes: int, *, say: Callable[[str], None] = lambda _: None
) -> Report:
    """Run a cluster in `folder` and change its certificates so many times."""
    certificates = folder / "certificates"
    certificates.mkdir()
    files = Files(certificates)
    cluster = ProcessCluster(
        folder / "cluster",
        tls=certificates,
        users=True,
        doors=True,
        sections={
            "tls": {"client_certificates": "required"},
            "security": {"certificate_user": "uri", "certificate_prefix": PREFIX},
        },
    )
    cluster.client_certificate = certificates / "client.crt", certificates / "client.key"
    try:
        async with cluster:
            return await Rotation(cluster, files).run(changes, say=say)
    except BaseException:
        print(cluster.report())
        raise


def main() -> int:
    """Run it as `make rotations` does."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--changes", type=int, default=1_000)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        report = runner.run(
            rotated(Path(folder), options.changes, say=lambda line: print(line, flush=True))
        )
    print("\n".join(["", *report.lines(), *report.failures]))
    return int(bool(report.failures) or report.stored != report.acknowledged)


if __name__ == "__main__":
    sys.exit(main())
