"""Secrets are planted in every place that takes one, right and wrong; then everything is searched.

What is searched: the log of a node at its most talkative, metrics, status, what `serve --check`
prints, the words that processes were started with, every answer to a caller, tracebacks of a
client, and all files of the data folder.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc.aio
from tests.cluster.command_line import COMMAND, environment, eventually, free_port_base, ran
from tests.doors.speaking import Answer, http
from websockets.asyncio.client import connect

from angarium.client import Client
from angarium.errors import AngariumError
from angarium.proto.v1 import broker_pb2 as pb
from angarium.proto.v1.broker_pb2_grpc import BrokerStub

if TYPE_CHECKING:
    from collections.abc import Iterator

ADMIN = "planted-Administrators-word"
PLANTED = {
    "the administrator's password": ADMIN,
    "a wrong password": "planted-wrong-Passw0rd",
    "a password over REST": "planted-rest-Passw0rd",
    "a password over GraphQL": "planted-graphql-Passw0rd",
    "a password inside a document": "planted-inline-Passw0rd",
    "a password over gRPC": "planted-grpc-Passw0rd",
    "a password of the command": "planted-command-Passw0rd",
    "a password in broken JSON": "planted-broken-Passw0rd",
    "a wrong token": "angt_planted-wrong-token-Zm9vYmFy",
    "a wrong JWT": "eyJhbGciOiJub25lIn0.cGxhbnRlZC1qd3Q.cGxhbnRlZC1zaWduYXR1cmU",
    "a token in an address": "planted-in-an-address",
}
"""By what it is; the text stands nowhere else."""


class Node:
    """One node that asks everybody, and what was heard from it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port_base()
        self.heard: dict[str, str] = {}
        """What somebody could read, by where."""

    @property
    def wire(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def grpc(self) -> str:
        return f"127.0.0.1:{self.port + 1}"

    @property
    def http(self) -> str:
        return f"127.0.0.1:{self.port + 2}"

    @property
    def _words(self) -> list[str]:
        ports = [f"--wire-port={self.port}", f"--grpc-port={self.port + 1}"]
        ports += [f"--http-port={self.port + 2}", "--log-level", "DEBUG"]
        return [*COMMAND, "serve", "--data=data", "--form", "--authentication=required", *ports]

    @contextmanager
    def running(self) -> Iterator[None]:
        secret = {"ANGARIUM_ADMIN_PASSWORD": ADMIN}
        with (
            (self.folder / "log").open("wb") as log,
            subprocess.Popen(
                self._words,
                cwd=self.folder,
                env=environment() | secret,
                stdout=log,
                stderr=log,
            ) as process,
        ):
            try:
                made = "made the first administrator"
                eventually(lambda: made in (self.folder / "log").read_text())
                yield
                for name in ("cmdline", "comm"):
                    told = Path(f"/proc/{process.pid}/{name}").read_text(errors="replace")
                    self.heard[f"ps: {name}"] = told
                process.terminate()
                assert process.wait(timeout=120) == 0
            finally:
                process.kill()
        self.heard["the log"] = (self.folder / "log").read_text()

    def command(self, *words: str, user: str, password: str, stdin: str = "") -> None:
        """Run a command as somebody; keep what it says."""
        who = {"ANGARIUM_USER": user, "ANGARIUM_PASSWORD": password}
        servers = {"ANGARIUM_SERVERS": self.wire}
        done = ran(self.folder, *words, stdin=stdin, **who, **servers)
        self.heard[f"angarium {' '.join(words)} as {user}"] = done.stdout + done.stderr

    def check(self) -> None:
        """Have the settings printed, with a secret among them."""
        more = {"ANGARIUM_ADMIN_PASSWORD": ADMIN}
        done = subprocess.run(
            [*self._words, "--check"],
            cwd=self.folder,
            env=environment() | more,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        self.heard["serve --check"] = done.stdout + done.stderr


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


async def tour(node: Node) -> dict[str, str]:
    """Show every door right and wrong secrets; return what secrets were made on the way."""
    admin, wrong = basic("admin", ADMIN), basic("admin", PLANTED["a wrong password"])
    made: dict[str, str] = {}

    async def ask(method: str, target: str, body: object = None, **headers: str) -> Answer:
        answer = await http(node.http, method, target, body, **headers)
        place = f"{method} {target} {len(node.heard)}"
        node.heard[place] = f"{answer.status} {answer.headers} {answer.body.decode()}"
        return answer

    for proof in (wrong, f"Bearer {PLANTED['a wrong token']}", f"Bearer {PLANTED['a wrong JWT']}"):
        for target in ("/v1/topics", "/metrics", "/v1/topics/t/stream"):
            assert (await ask("GET", target, Authorization=proof)).status == 401
    await ask("GET", f"/v1/topics?token={PLANTED['a token in an address']}")
    users = "/v1/users"
    body: Any = {"name": "rest", "password": PLANTED["a password over REST"], "roles": ["admin"]}
    assert (await ask("POST", users, body, Authorization=admin)).status == 201
    assert (await ask("POST", users, body, Authorization=admin)).status == 409
    body = b'{"name": "x", "password": "' + PLANTED["a password in broken JSON"].encode() + b'", '
    assert (await ask("POST", users, body, Authorization=admin)).status == 400
    answer = await ask("POST", "/v1/users/rest/tokens", {"name": "ci"}, Authorization=admin)
    token = made["a token that was made"] = answer.json["secret"]
    node.heard.popitem()  # who made it is shown it, once
    assert (await ask("GET", "/v1/tokens", Authorization=f"Bearer {token}")).status == 200
    answer = await ask("POST", "/v1/cluster/join-tokens", {}, Authorization=admin)
    made["a join token over REST"] = answer.json["secret"]
    node.heard.popitem()
    assert (await ask("GET", "/v1/cluster/join-tokens", Authorization=admin)).status == 200

    document = 'mutation($p: String!) { createUser(name: "graph", password: $p) { name } }'
    variables = {"p": PLANTED["a password over GraphQL"]}
    await ask("POST", "/graphql", {"query": document, "variables": variables}, Authorization=admin)
    inline = PLANTED["a password inside a document"]
    document = f'mutation {{ createUser(name: "inline", password: "{inline}") {{ nothing }} }}'
    await ask("POST", "/graphql", {"query": document}, Authorization=admin)
    document = "mutation { createJoinToken { secret } }"
    answer = await ask("POST", "/graphql", {"query": document}, Authorization=admin)
    made["a join token over GraphQL"] = answer.json["data"]["createJoinToken"]["secret"]
    node.heard.popitem()

    async with grpc.aio.insecure_channel(node.grpc) as channel:
        stub = BrokerStub(channel)
        request = pb.CreateUserRequest(name="remote", password=PLANTED["a password over gRPC"])
        for proof in (admin, admin, wrong):
            try:
                done = await stub.CreateUser(request, metadata=[("authorization", proof)])
                node.heard["gRPC: made"] = str(done)
            except grpc.aio.AioRpcError as error:
                node.heard[f"gRPC: {error.code()}"] = f"{error} {error.debug_error_string()}"
        proof_of = [("authorization", admin)]
        issued = await stub.CreateJoinToken(pb.CreateJoinTokenRequest(), metadata=proof_of)
        made["a join token over gRPC"] = issued.secret
        listed = await stub.ListJoinTokens(pb.ListJoinTokensRequest(), metadata=proof_of)
        node.heard["gRPC: join tokens"] = str(listed)

    async with connect(f"ws://{node.http}/v1/socket") as socket:
        shown = {"type": "authenticate", "token": PLANTED["a wrong token"]}
        await socket.send(json.dumps(shown))
        try:
            node.heard["the socket"] = str(await socket.recv())
        except Exception as error:
            node.heard["the socket"] = repr(error)

    proofs: tuple[dict[str, Any], ...] = (
        {"user": "admin", "password": PLANTED["a wrong password"]},
        {"token": PLANTED["a wrong token"]},
        {"token": PLANTED["a wrong JWT"]},
    )
    for known in proofs:
        client = Client(node.wire, **known)
        node.heard[f"a client of {list(known)} {len(node.heard)}"] = repr(client)
        try:
            async with client:
                raise AssertionError("it was let in")
        except AngariumError as error:
            told = traceback.TracebackException.from_exception(error, capture_locals=False)
            node.heard[f"a traceback {len(node.heard)}"] = "".join(told.format()) + repr(error)
    async with Client(node.wire, user="admin", password=ADMIN) as client:
        await client.create_topic("t")
        await client.publish("t", b"x")
    for target in ("/metrics", "/status", "/healthz", "/readyz", "/v1/openapi.json"):
        await ask("GET", target, Authorization=admin)
    return made


def test_nothing_secret_is_told(tmp_path: Path) -> None:
    node = Node(tmp_path)
    with node.running():
        made = asyncio.run(tour(node))
        own = PLANTED["a password of the command"]
        node.command("user", "create", "typed", user="admin", password=ADMIN, stdin=own + "\n")
        node.command("whoami", user="typed", password=own)
        node.command("whoami", user="typed", password=PLANTED["a wrong password"])
        node.command("--format", "json", "user", "list", user="admin", password=ADMIN)
        node.command("user", "show", "typed", user="admin", password=ADMIN)
    node.check()
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert len(files) > 3
    for path in files:
        node.heard[os.fspath(path)] = path.read_bytes().decode("latin-1")
    assert "typed" in node.heard["angarium user show typed as admin"], "nothing was heard at all"
    secrets = PLANTED | made
    # Encoded is as good as told.
    searched = {
        what: (secret, base64.b64encode(secret.encode()).decode().rstrip("=")[:-2])
        for what, secret in secrets.items()
    }
    found = [
        f"{what} in {where}"
        for where, text in node.heard.items()
        for what, forms in searched.items()
        if any(form in text for form in forms)
    ]
    assert found == []
