"""A listener that other machines can reach needs TLS and authentication, or somebody's word."""

from __future__ import annotations

import asyncio
import http.client
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.accounts import quick_hash
from tests.certificates import Folder
from tests.component.app.test_every_listener_with_tls import HOST, LISTENERS, node
from tests.on_a_loop import on_a_loop

from angarium.app.gateway import GatewayPart
from angarium.app.security_settings import SecuritySettings, TlsSettings, UserSettings
from angarium.app.settings import (
    AdvertiseSettings,
    CompatSettings,
    ListenSettings,
    NodeSettings,
    Settings,
)
from angarium.app.settings_problems import problems
from angarium.cli.main import main

OPEN = ["0.0.0.0", "::", "10.0.0.1", "node-1.example.org", "::ffff:127.0.0.1", "127.1", "0"]
"""Hosts that others can reach, and spellings of which nobody can be sure."""

COMPAT: dict[str, dict[str, Any]] = {
    "none": {},
    "hermes": {"hermes_grpc_port": 1, "hermes_http_port": 2, "hermes_user": "h"},
    "bale": {"bale_grpc_port": 3, "bale_user": "b"},
    "bale with metrics": {"bale_grpc_port": 3, "bale_user": "b", "bale_metrics_ports": (4,)},
    "geo": {"geo_grpc_port": 5},
}


def complaints(
    folder: Folder, host: str, *, tls: bool, asks: bool, compat: str, insecure: bool = False
) -> list[str]:
    """Return what stands in the way of a node with these settings, as far as its host goes."""
    files = [folder.path / name for name in ("one.crt", "one.key")]  # nobody opens them here
    secured = TlsSettings(certificate=files[0], private_key=files[1], authorities=folder.ca)
    settings = Settings(
        node=NodeSettings(data=folder.path, form=True),
        listen=ListenSettings(host=host, insecure=insecure),
        advertise=AdvertiseSettings(host="node-1.example.org"),
        tls=secured if tls else TlsSettings(),
        compat=CompatSettings(**COMPAT[compat]),
        users=UserSettings(hashes={"alice": quick_hash("a secret")}),
        security=SecuritySettings(authentication="required" if asks else "off"),
    )
    return [one.what for one in problems(settings) if one.setting == "listen.host"]


@pytest.mark.parametrize("compat", COMPAT)
def test_every_kind_of_listener_is_asked_for_both(tmp_path: Path, compat: str) -> None:
    folder = Folder(tmp_path)
    for host in OPEN:
        for tls, asks in ((False, False), (True, False), (False, True)):
            [said] = complaints(folder, host, tls=tls, asks=asks, compat=compat)
            assert ("[tls] has no certificate" in said) is not tls
            assert ("authentication is off" in said) is not asks
            assert "--insecure" in said
            found = complaints(folder, host, tls=tls, asks=asks, compat=compat, insecure=True)
            assert found == []
        assert complaints(folder, host, tls=True, asks=True, compat=compat) == []
    for host in ("127.0.0.1", "127.3.2.1", "::1", "localhost"):
        assert complaints(folder, host, tls=False, asks=False, compat=compat) == []


def listened_on() -> set[str]:
    """Return the addresses that this process listens on, as the kernel has them."""
    own = set()
    for one in Path("/proc/self/fd").iterdir():
        try:
            own.add(str(one.readlink()))
        except OSError:  # the one that lists them
            continue
    found = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in own:
                octets = bytes.fromhex(fields[1].partition(":")[0])
                words = [octets[at : at + 4][::-1] for at in range(0, len(octets), 4)]
                found.add(f"{socket.inet_ntop(family, b''.join(words))}:{fields[1][-4:]}")
    return found


@on_a_loop
async def test_no_listener_goes_by_another_host_than_the_one_that_was_looked_at(
    tmp_path: Path,
) -> None:
    before = listened_on()
    async with node(tmp_path):
        await asyncio.sleep(0)
        opened = listened_on() - before
    assert len(opened) == len(LISTENERS)
    assert {one.rpartition(":")[0] for one in opened} == {"127.0.0.1"}


def test_a_node_and_a_gateway_say_so_and_do_not_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANGARIUM_PROFILES", str(tmp_path / "none"))
    words = ("serve", "--form", "--listen", "0.0.0.0", "--advertise", "node-1.example.org")
    for more in ((), ("--authentication", "required")):
        assert main([*words, *more]) == 2
        assert "TLS ([tls] has no certificate)" in capsys.readouterr().err
    assert not (tmp_path / "angarium-data").exists(), "nothing was begun"
    assert main(["gateway", "--listen", "0.0.0.0"]) == 2
    assert "can be reached from other machines" in capsys.readouterr().err


async def asked(port: int, path: str, header: str | None = None) -> tuple[int, str]:
    def ask() -> tuple[int, str]:
        connection = http.client.HTTPConnection(HOST, port, timeout=60)
        try:
            connection.request("GET", path, headers={"Authorization": header} if header else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    return await asyncio.to_thread(ask)


@on_a_loop
async def test_a_gateway_that_others_can_reach_does_not_open_a_cluster_that_asks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with node(tmp_path) as listening:
        monkeypatch.setenv("ANGARIUM_TLS_CA", str(listening.folder.ca))
        cluster = (f"{HOST}:{listening.ports['wire']}",)
        for must_ask, status, ready in ((True, 401, 503), (False, 200, 200)):
            gateway = GatewayPart(cluster, host=HOST, port=0, must_ask=must_ask)
            port = await gateway.start()
            try:
                for header in (None, f"Bearer angt_{'A' * 43}", "Basic YWRtaW46YWRtaW4="):
                    found, _ = await asked(port, "/v1/topics", header)
                    assert found == status, header
                while (said := await asked(port, "/readyz"))[0] != ready or "no node" in said[1]:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
                assert ("asks nobody who it is" in said[1]) is must_ask
                found, _ = await asked(port, "/v1/topics", f"Bearer angt_{'A' * 43}")
                assert found == status
            finally:
                await gateway.stop()
