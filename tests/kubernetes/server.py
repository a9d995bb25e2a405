"""A real API server of Kubernetes, with an etcd of its own, on ports of their own.

Nothing else of Kubernetes runs: no controllers, so whoever wants EndpointSlices writes them.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.certificates import Folder
from tests.kubernetes.programs import built

from angarium.addresses import Address
from angarium.testing.reserved_port import HOST, ReservedPort

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.kubernetes.programs import Programs

START_SECONDS_MAX: Final = 300.0
STOP_SECONDS_MAX: Final = 90.0
NAMESPACE: Final = "brokers"
SERVICE: Final = "angarium"

_PATHS: Final = {
    "Namespace": "/api/v1/namespaces",
    "Service": "/api/v1/namespaces/{namespace}/services",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "Secret": "/api/v1/namespaces/{namespace}/secrets",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
    "EndpointSlice": "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices",
}
"""Where things of a kind are made."""


class Refused(Exception):
    """The API server refuses a request."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(f"{status}: {said}")
        self.status = status


class ApiServer:
    """One that can be stopped and started again; its etcd goes on."""

    def __init__(self, folder: Path, programs: Programs, etcd: Address) -> None:
        self._folder = folder
        self._programs = programs
        self._etcd = etcd
        self._keys = Folder(folder)
        self._port = ReservedPort()
        self._admin = secrets.token_hex(16)
        self._process: subprocess.Popen[bytes] | None = None
        self.address = Address(HOST, self._port.number)
        self.ca = self._keys.ca
        self._prepare()

    def _prepare(self) -> None:
        self._pair = self._keys.pair("apiserver", hosts=(HOST, "localhost"))
        key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
        self._signing = self._folder / "service-accounts.key"
        self._signing.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        self._verifying = self._folder / "service-accounts.pub"
        self._verifying.write_bytes(
            key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
        self._tokens = self._folder / "tokens.csv"
        self._tokens.write_text(f'{self._admin},keeper,1,"system:masters"\n', encoding="ascii")

    # --- running --------------------------------------------------------------------------------

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        words = [
            str(self._programs.apiserver),
            f"--etcd-servers=http://{self._etcd}",
            f"--bind-address={HOST}",
            f"--advertise-address={own_address()}",
            f"--secure-port={self.address.port}",
            f"--tls-cert-file={self._pair.certificate}",
            f"--tls-private-key-file={self._pair.key}",
            f"--token-auth-file={self._tokens}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._verifying}",
            f"--service-account-signing-key-file={self._signing}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            "--endpoint-reconciler-type=none",
            # It compacts when the story says so.
            "--etcd-compaction-interval=0",
            "--shutdown-delay-duration=0s",
        ]
        with (self._folder / "apiserver.log").open("ab") as log:
            self._process = subprocess.Popen(words, cwd=self._folder, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = (self._folder / "apiserver.log").read_text(errors="replace")[-4_000:]
                raise RuntimeError(f"the API server did not start: {said}")
            time.sleep(0.2)

    def stop(self, *, by_force: bool = False) -> None:
        """Stop it; by force: as a machine does that loses its power."""
        if self._process is not None:
            _end(self._process, by_force=by_force)
            self._process = None

    def _is_ready(self) -> bool:
        try:
            self.ask("GET", "/readyz")
        except (Refused, OSError):
            return False
        return True

    # --- asking, as its administrator -----------------------------------------------------------

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send a request; `body` is YAML, or a value that becomes JSON."""
        is_text = isinstance(body, str)
        data = None if body is None else (str(body) if is_text else json.dumps(body)).encode()
        request = urllib.request.Request(f"https://{self.address}{path}", data, method=method)
        request.add_header("Authorization", f"Bearer {self._admin}")
        if data is not None:
            kind = "application/yaml" if is_text else "application/json"
            request.add_header("Content-Type", kind)
        request.add_header("Accept", "application/json")
        context = ssl.create_default_context(cafile=str(self.ca))
        handlers = urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=30) as answer:
                told = answer.read()
        except urllib.error.HTTPError as error:
            raise Refused(error.code, error.read().decode(errors="replace")) from None
        return json.loads(told) if told.startswith(b"{") else told.decode()

    def make(self, kind: str, name: str, **content: object) -> None:
        """Make a thing."""
        self.ask("POST", _path(kind), {"metadata": {"name": name}, **content})

    def apply(self, manifest: str) -> list[str]:
        """Make what a manifest has, document by document; return the kinds."""
        kinds = []
        for document in manifest.split("---\n"):
            (kind,) = (
                line.removeprefix("kind: ")
                for line in document.splitlines()
                if line.startswith("kind: ")
            )
            self.ask("POST", _path(kind), document)
            kinds.append(kind)
        return kinds

    def delete(self, kind: str, name: str) -> None:
        """Take a thing away."""
        self.ask("DELETE", f"{_path(kind)}/{name}")

    def token(self, account: str, *, bound_to: str) -> str:
        """Issue a token of a service account, which is good as long as a new Secret is there."""
        self.make("Secret", bound_to)
        reference = {"kind": "Secret", "apiVersion": "v1", "name": bound_to}
        path = f"{_path('ServiceAccount')}/{account}/token"
        told = self.ask("POST", path, {"spec": {"boundObjectRef": reference}})
        return str(told["status"]["token"])

    def set_slice(self, name: str, *addresses: Address) -> None:
        """Have a slice with these pods, all of which have the port of the first one."""
        made = {
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": SERVICE}},
            "addressType": "IPv4",
            "endpoints": [
                {"addresses": [one.host], "conditions": {"ready": False, "serving": False}}
                for one in addresses
            ],
            "ports": [{"name": "wire", "protocol": "TCP", "port": addresses[0].port}],
        }
        try:
            self.ask("POST", _path("EndpointSlice"), made)
        except Refused as refused:
            if refused.status != 409:  # there is one
                raise
            self.ask("PUT", f"{_path('EndpointSlice')}/{name}", made)

    def version(self) -> str:
        """Return the version that a list of slices has now."""
        return str(self.ask("GET", _path("EndpointSlice"))["metadata"]["resourceVersion"])

    # --- etcd -----------------------------------------------------------------------------------

    def compact(self) -> int:
        """Have etcd forget what was before its newest revision; return that one."""
        newest = int(self._ask_etcd("kv/range", {"key": "AA=="})["header"]["revision"])
        self._ask_etcd("kv/compaction", {"revision": str(newest), "physical": True})
        return newest

    def _ask_etcd(self, call: str, body: dict[str, Any]) -> Any:
        return _ask_plainly(f"http://{self._etcd}/v3/{call}", json.dumps(body).encode())


@contextmanager
def api_server(folder: Path) -> Iterator[ApiServer]:
    """Start etcd and an API server, and end both with the block."""
    programs = built()
    ports = ReservedPort(), ReservedPort()
    clients, peers = (f"http://{HOST}:{one.number}" for one in ports)
    words = [
        str(programs.etcd),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        "--unsafe-no-fsync",
        # As kubeadm has it: bookmarks go on while nothing of their kind changes.
        "--watch-progress-notify-interval=5s",
    ]
    with (folder / "etcd.log").open("wb") as log:
        etcd = subprocess.Popen(words, cwd=folder, env=_quiet(), stdout=log, stderr=log)
    server = None
    try:
        _wait_for_etcd(f"{clients}/health", etcd, folder / "etcd.log")
        server = ApiServer(folder, programs, Address(HOST, ports[0].number))
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop()
        _end(etcd)


def _wait_for_etcd(health: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            _ask_plainly(health)
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                said = log.read_text(errors="replace")[-4_000:]
                raise RuntimeError(f"etcd did not start: {said}") from None
            time.sleep(0.1)
        else:
            return


def _ask_plainly(where: str, data: bytes | None = None) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(where, data), timeout=30) as answer:
        return json.loads(answer.read())


def _end(process: subprocess.Popen[bytes], *, by_force: bool = False) -> None:
    if by_force:
        process.kill()
    else:
        process.terminate()
    try:
        process.wait(timeout=STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _path(kind: str) -> str:
    return _PATHS[kind].format(namespace=NAMESPACE)


def _quiet() -> dict[str, str]:
    """Return our environment without what would steer etcd elsewhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith("ETCD_")}


def write_credentials(folder: Path, server: ApiServer, token: str) -> None:
    """Write what a pod has of its service account; what is there is replaced in one step each."""
    folder.mkdir(exist_ok=True)
    content = {"token": token, "namespace": NAMESPACE, "ca.crt": server.ca.read_text("ascii")}
    for name, text in content.items():
        fresh = folder / f"..{name}"
        fresh.write_text(text, encoding="ascii")
        fresh.rename(folder / name)


def own_address(others: Sequence[str] = ("192.0.2.1", "10.0.0.1")) -> str:
    """Return an address of this machine that is not a loopback: endpoints may not have those."""
    for other in others:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((other, 9))  # nothing is sent
            except OSError:
                continue
            found = str(probe.getsockname()[0])
            if not found.startswith("127."):
                return found
    raise RuntimeError("this machine has no address but the loopback, which no endpoint may have")
