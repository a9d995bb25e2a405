"""A real issuer of JWTs: people who log in at Keycloak use a node of ours through its doors.

    make keycloak

Each line says what was tried and what came of it; one that is not as it should be makes it exit 1.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import grpc.aio
from tests.certificates import Folder
from tests.cluster.command_line import COMMAND, environment, free_port_base
from tests.doors.speaking import http
from tests.keycloak.server import keycloak

from angarium.client import Client
from angarium.errors import AngariumError
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from tests.keycloak.server import Keycloak

REALM: Final = "shop"
AUDIENCE: Final = "angarium"
LIFE_S: Final = 40
"""How long a token lasts. Everything that is tried with one is done by then, at a load of ten."""
LONG_LIFE_S: Final = 600
LEEWAY_S: Final = 1
TOPIC: Final = "orders"
PEOPLE: Final = {"alice": ["publisher"], "bob": ["subscriber"], "carol": []}


def realm() -> dict[str, Any]:
    """Return what Keycloak is told: three people, and two clients, one of them not meant for us."""
    audience = {
        "name": "for the broker",
        "protocol": "openid-connect",
        "protocolMapper": "oidc-audience-mapper",
        "config": {"included.custom.audience": AUDIENCE, "access.token.claim": "true"},
    }
    client = {"publicClient": True, "directAccessGrantsEnabled": True, "enabled": True}
    return {
        "accessTokenLifespan": LIFE_S,
        "roles": {"realm": [{"name": "publisher"}, {"name": "subscriber"}]},
        "clients": [
            {**client, "clientId": "till", "protocolMappers": [audience]},
            {**client, "clientId": "other"},
        ],
        "users": [
            {
                "username": name,
                "enabled": True,
                "emailVerified": True,
                "email": f"{name}@example.org",
                "firstName": name,
                "lastName": "of the shop",
                "credentials": [{"type": "password", "value": password(name)}],
                "realmRoles": roles,
            }
            for name, roles in PEOPLE.items()
        ],
    }


def password(name: str) -> str:
    """Return somebody's password at Keycloak."""
    return f"{name}s-own-word"


class Findings:
    """What was tried, as it goes."""

    def __init__(self) -> None:
        self.wrong = 0

    def tell(self, what: str, *, expected: str, found: str) -> None:
        """Print one line."""
        is_right = found == expected
        self.wrong += not is_right
        print(f"{'ok' if is_right else 'WRONG':6}{what}: {found}", flush=True)
        if not is_right:
            print(f"      expected: {expected}", flush=True)


async def outcome(call: Awaitable[Any]) -> str:
    """Return "ok", or the code of the error that a call ends with."""
    try:
        await call
    except AngariumError as error:
        return error.code
    except grpc.aio.AioRpcError as error:
        return error.code().name
    except TimeoutError:
        return "still open"
    return "ok"


class Node:
    """A node that believes one issuer, and who asks it for something."""

    def __init__(self, port: int) -> None:
        self.wire = f"127.0.0.1:{port}"
        self.grpc = f"127.0.0.1:{port + 1}"
        self.http = f"127.0.0.1:{port + 2}"

    async def make_topic(self) -> None:
        """Wait until it serves, then make the topic, as its administrator."""
        deadline = time.monotonic() + 120
        while not await self._is_ready():
            assert time.monotonic() < deadline, "the node did not come up"
            await asyncio.sleep(0.1)
        async with Client(self.wire, user="admin", password="first-word") as client:
            await client.create_topic(TOPIC)

    async def _is_ready(self) -> bool:
        try:
            return (await http(self.http, "GET", "/readyz")).status == 200
        except ConnectionError:
            return False

    async def publish(self, token: str, door: str) -> str:
        """Publish a record through a door; return what came of it."""
        bearer = f"Bearer {token}"
        match door:
            case "wire":
                return await outcome(self._publish(token))
            case "grpc":
                async with grpc.aio.insecure_channel(self.grpc) as channel:
                    request = pb.PublishRequest(topic=TOPIC, record=pb.NewRecord(value=b"one"))
                    call = BrokerStub(channel).Publish(
                        request, metadata=[("authorization", bearer)], timeout=30
                    )
                    return await outcome(call)
            case _:
                answer = await http(
                    self.http,
                    "POST",
                    f"/v1/topics/{TOPIC}/records",
                    {"value": "one"},
                    Authorization=bearer,
                )
                return "ok" if answer.status < 300 else str(answer.json.get("code"))

    async def _publish(self, token: str) -> None:
        async with Client(self.wire, token=token) as client:
            await client.publish(TOPIC, b"one")

    async def read(self, token: str) -> str:
        """Read the first record; return what came of it."""

        async def first() -> None:
            async with (
                Client(self.wire, token=token) as client,
                client.subscribe(TOPIC, start="earliest") as records,
            ):
                async for _ in records:
                    break

        return await outcome(asyncio.wait_for(first(), 60))

    async def end_of_stream(self, token: str) -> str:
        """Read on until the node ends it; return why."""

        async def all_of_them() -> None:
            async with (
                Client(self.wire, token=token) as client,
                client.subscribe(TOPIC, start="earliest") as records,
            ):
                async for _ in records:
                    pass

        return await outcome(asyncio.wait_for(all_of_them(), 3 * LIFE_S))


@contextmanager
def node(folder: Path, issuer: Keycloak, ca: Path) -> Iterator[Node]:
    """Start a node that believes the issuer."""
    port = free_port_base()
    (folder / "node.toml").write_text(
        f"""
[node]
form = true
[listen]
wire_port = {port}
grpc_port = {port + 1}
http_port = {port + 2}
[security]
authentication = "required"
jwt_issuer = "{issuer.issuer}"
jwt_audience = "{AUDIENCE}"
jwt_keys = "{issuer.keys}"
jwt_keys_ca = "{ca}"
jwt_role_claim = "realm_access.roles"
jwt_name_claim = "preferred_username"
jwt_leeway_s = {LEEWAY_S}
""",
        encoding="utf-8",
    )
    words = [*COMMAND, "serve", "--config", "node.toml", "--data", "data"]
    with (folder / "node.log").open("wb") as log:
        process = subprocess.Popen(
            words,
            cwd=folder,
            env=environment() | {"ANGARIUM_ADMIN_PASSWORD": "first-word"},
            stdout=log,
            stderr=log,
        )
        try:
            yield Node(port)
        finally:
            process.terminate()
            process.wait(timeout=60)


async def story(issuer: Keycloak, node: Node, findings: Findings) -> None:
    """Try what people with and without roles may do, and what ends when tokens and keys do."""
    await node.make_topic()

    def log_in(name: str, client: str = "till") -> str:
        return issuer.token(name, password(name), client=client)

    alice, bob, carol = (log_in(name) for name in PEOPLE)
    for door in ("wire", "grpc", "http"):
        found = await node.publish(alice, door)
        findings.tell(f"a publisher publishes ({door})", expected="ok", found=found)
    for door in ("wire", "grpc", "http"):
        found = await node.publish(carol, door)
        # What somebody may not even see looks as if it were not there.
        who = f"somebody without a role publishes ({door})"
        findings.tell(who, expected="NOT_FOUND", found=found)
    findings.tell("a subscriber reads", expected="ok", found=await node.read(bob))
    found = await node.publish(bob, "wire")
    findings.tell("a subscriber publishes", expected="PERMISSION_DENIED", found=found)
    found = await node.publish(log_in("alice", "other"), "wire")
    findings.tell("a token that is meant for others", expected="UNAUTHENTICATED", found=found)
    found = await node.publish(alice[:-6] + "AAAAAA", "wire")
    findings.tell("a token that was changed", expected="UNAUTHENTICATED", found=found)

    bob = log_in("bob")
    started = time.monotonic()
    found = await node.end_of_stream(bob)
    findings.tell("a stream whose token expires", expected="UNAUTHENTICATED", found=found)
    took = time.monotonic() - started
    print(f"      after {took:.1f} s; the token lasts {LIFE_S} s and {LEEWAY_S} s more", flush=True)
    found = await node.publish(alice, "http")
    findings.tell("a token that has expired", expected="UNAUTHENTICATED", found=found)

    # From here on nothing ends because a token does.
    issuer.alter(accessTokenLifespan=LONG_LIFE_S)
    bob = log_in("bob")
    stream = asyncio.create_task(node.end_of_stream(bob))
    found = await node.read(bob)
    findings.tell("a subscriber reads, before keys change", expected="ok", found=found)
    await asyncio.to_thread(issuer.replace_keys)
    alice = log_in("alice")
    started = time.monotonic()
    # A key that is not known is asked for once a minute at the most.
    while (found := await node.publish(alice, "wire")) != "ok" and time.monotonic() < started + 90:  # noqa: ASYNC110
        await asyncio.sleep(1)
    findings.tell("a token of a new key", expected="ok", found=found)
    print(f"      after {time.monotonic() - started:.1f} s", flush=True)
    found = await stream
    findings.tell("a stream of a key that is withdrawn", expected="UNAUTHENTICATED", found=found)
    print(f"      after {time.monotonic() - started:.1f} s", flush=True)
    found = await node.publish(bob, "wire")
    findings.tell("a token of a key that is withdrawn", expected="UNAUTHENTICATED", found=found)


def main() -> int:
    """Tell the story; return the exit status."""
    findings = Findings()
    with tempfile.TemporaryDirectory(prefix="angarium-keycloak-") as name:
        folder = Path(name)
        certificates = Folder(folder)
        with keycloak(certificates, realm=REALM) as issuer:
            issuer.make(**realm())
            with node(folder, issuer, certificates.ca) as started:
                asyncio.run(story(issuer, started, findings))
    return int(findings.wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
