"""`angarium up --compat`: listeners for clients of earlier brokers on every node, said where."""

from __future__ import annotations

import asyncio
import base64
import re
from typing import TYPE_CHECKING
from urllib.request import urlopen

from tests.cluster.command_line import Up, angarium, free_port_base
from tests.doors.compat.calls import geo_calls

if TYPE_CHECKING:
    from pathlib import Path

READY = "Try next, in another terminal:"


def test_profiles_are_turned_on_and_said_where(tmp_path: Path) -> None:
    with Up(tmp_path, more=("--compat", "hermes,bale,geo")) as up:
        up.wait_for(READY)
        up.wait_for("Clients of geo: ")
        said = up.said()
        hermes = re.search(r"Clients of hermes: gRPC (.*); HTTP (.*)", said)
        bale = re.search(r"Clients of bale: gRPC (.*); metrics (.*)", said)
        assert hermes is not None
        assert bale is not None
        assert "user admin, password password" in said
        addresses = hermes[2].split()
        assert len({*hermes[1].split(), *addresses, *bale[1].split(), *bale[2].split()}) == 12
        for address in addresses:
            with urlopen(f"http://{address}/status", timeout=20) as answer:
                assert b'"is_leader"' in answer.read()
        for address in bale[2].split():
            with urlopen(f"http://{address}/metrics", timeout=20) as answer:
                assert b"broker_active_subscribers 0" in answer.read()
        told = angarium(tmp_path, "up", "--compat", "hermes").stdout
        assert "is running" in told
        assert "start it with --compat again" in told
        typo = angarium(tmp_path, "up", "--compat", "hermse", status=2)
        assert "there are hermes, bale, geo" in typo.stderr


def test_clients_of_geo_come_in_as_they_always_did_and_edited_settings_stay(tmp_path: Path) -> None:
    # The last one counts: the second start is on the ports of the first.
    base = ("--port-base", str(free_port_base()))
    more = ("--compat", "geo", "--compat-ports", "own", *base)
    with Up(tmp_path, more=more) as up:
        up.wait_for("Clients of geo: ")
        told = re.search(r"Clients of geo: gRPC (\S+)", up.said())
        assert told is not None
        asyncio.run(_publish_as_admin(told[1]))
    settings = tmp_path / ".angarium" / "node-1.toml"
    text = settings.read_text(encoding="utf-8") + "\n[log]\nlevel = 'DEBUG'  # mine\n"
    settings.write_text(text, encoding="utf-8")
    with Up(tmp_path, more=more) as up:
        up.wait_for("node-1.toml was edited and is kept")
        up.wait_for("Clients of geo: ")
        asyncio.run(_publish_as_admin(told[1]))
    assert settings.read_text(encoding="utf-8") == text


async def _publish_as_admin(address: str) -> None:
    proof = base64.b64encode(b"admin:password").decode()
    async with geo_calls(address) as geo, asyncio.timeout(60):
        request = geo.message("PublishRequest", topic="news", body=b"first")
        call = geo.Publish(
            request, metadata=(("authorization", f"basic {proof}"),), wait_for_ready=True
        )
        assert (await call).id


def test_a_profile_that_nobody_knows_is_refused_before_anything_starts(tmp_path: Path) -> None:
    failed = angarium(tmp_path, "up", "--compat", "kafka", status=2)
    assert "there are hermes, bale, geo" in failed.stderr
    assert not list(tmp_path.glob(".angarium/node-*"))


def test_a_password_becomes_a_line_of_node_toml(tmp_path: Path) -> None:
    line = angarium(tmp_path, "user", "hash", "alice", stdin="a secret\n").stdout
    assert re.fullmatch(r'alice = "\$scrypt\$ln=14,r=8,p=5\$[^$"]+\$[^$"]+"\n', line)
    (tmp_path / "node.toml").write_text(
        f"[users]\n{line}[compat]\ngeo_grpc_port = 8070\n", encoding="utf-8"
    )
    shown = angarium(tmp_path, "serve", "--config", "node.toml", "--check").stdout
    assert re.search(r"users.hashes +alice +ANGARIUM_USERS_HASHES", shown)
    assert "$scrypt" not in shown
    refused = angarium(tmp_path, "user", "hash", stdin="\n", status=2)
    assert "empty password" in refused.stderr
