"""The guide to backups as printed: a secured node is lost, and another one is what it was."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cluster.command_line import eventually
from tests.cluster.test_users_of_a_cluster import DENIED, Cluster
from tests.object_server import object_server

from angarium import Client, TopicConfig
from angarium.api.access import Action, Grant, ResourceKind, SubjectKind
from angarium.api.dead_letters import DEAD_LETTERS
from angarium.api.quotas import QuotaKind, QuotaSubject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.running import Run

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "backup.md"
ALICE = "alices-secret"
EXISTS = 4
"""How a command ends that finds something in its way."""


def _printed() -> list[list[str]]:
    """Return the commands of the guide, word by word."""
    text = GUIDE.read_text(encoding="utf-8")
    return [one.split() for one in re.findall(r"^    \$ angarium (.+)$", text, re.MULTILINE)]


@pytest.fixture
def object_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have commands find an object store, as the guide says."""
    with object_server() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield


def _administrator(cluster: Cluster) -> str:
    told = cluster.folder / "data" / "first-administrator"
    eventually(told.exists)
    return told.read_text().strip()


def _client(cluster: Cluster, user: str, password: str) -> Client:
    return Client(f"127.0.0.1:{cluster.port}", user=user, password=password)


async def _taken(client: Client, count: int) -> list[bytes]:
    """Have the group settle some records, and give one up; return what it was given."""
    values: list[bytes] = []
    async with client.group("billing").consume("orders") as records:
        async for record in records:
            values.append(record.value or b"")
            await (record.reject("poison") if record.value == b"poison" else record.ack())
            if len(values) == count:
                return values
    return values


def test_what_the_guide_prints_brings_topics_letters_groups_and_users_back(
    run: Run, tmp_path: Path, object_store: None
) -> None:
    create, listing, verify, create_there, verify_there, restore, resume, rename = _printed()
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    old, new = Cluster(tmp_path / "old"), Cluster(tmp_path / "new")
    secrets = [ALICE]

    async def fill() -> None:
        async with _client(old, "admin", password) as client:
            await client.create_topic("orders", config=TopicConfig(retention_ms=30 * 86_400_000))
            for value in (b"one", b"poison", b"two", b"three"):
                await client.publish("orders", value)
            assert len(await _taken(client, 3)) == 3
            await client.create_user("alice", password=ALICE, roles=["subscriber"])
            grant = Grant(actions=(Action.TOPIC_PUBLISH,), kind=ResourceKind.TOPIC, name="orders")
            await client.create_grant(SubjectKind.USER, "alice", grant)
            await client.set_quota(QuotaSubject.USER, "alice", {QuotaKind.REQUESTS: 1_000})
            secrets.append((await client.create_token("alice", "ci")).secret)

    async def look() -> None:
        async with _client(new, "admin", password) as client:
            described = await client.describe_topic("orders")
            assert described.config.retention_ms == 30 * 86_400_000
            assert await _taken(client, 1) == [b"three"]
            then = [one.value async for one in client.read("orders-then")]
            assert then == [b"one", b"poison", b"two", b"three"]
            (letter,) = [one async for one in client.read(DEAD_LETTERS)]
            assert letter.value == b"poison"
            (quota,) = await client.list_quotas()
            assert quota.limits == {QuotaKind.REQUESTS: 1_000}
        async with _client(new, "alice", ALICE) as client:
            assert (await client.publish("orders", b"four")).offset == 4
        async with Client(f"127.0.0.1:{new.port}", token=secrets[1]) as client:
            assert (await client.whoami()).roles == ("subscriber",)

    with old.running("--form"):
        password = _administrator(old)
        run(fill())
        old.angarium(*create, user="alice", password=ALICE, status=DENIED)
        made = old.angarium(*create, user="admin", password=password)
        assert re.search(r"Backup 1 \(2 topics, 5 records, ", made), made
        made = old.angarium(*create_there, user="admin", password=password)
        assert re.search(r"Backup 1 \(2 topics, 5 records, ", made), made
    checked = old.angarium(*verify_there, user="admin", password=password)
    assert "Every byte of backup 1" in checked
    backups = old.folder / "backups"
    assert "1  " in old.angarium(*listing, user="admin", password=password)
    assert "Every byte of backup 1" in old.angarium(*verify, user="admin", password=password)
    for one in [backups, *backups.rglob("*")]:
        assert stat.S_IMODE(one.stat().st_mode) == (0o700 if one.is_dir() else 0o600), one
        if one.is_file():
            assert not any(secret.encode() in one.read_bytes() for secret in secrets), one
    backups.rename(new.folder / "backups")
    with new.running("--form"):
        password = _administrator(new)
        told = new.angarium(*restore, user="admin", password=password)
        assert "Restored 5 records of backup 1" in told
        assert "user admin" in told, "who restores stays who it is"
        refused = new.angarium(*restore, user="admin", password=password, status=EXISTS)
        assert "--resume" in refused
        again = new.angarium(*resume, user="admin", password=password)
        assert "Restored 0 records" in again
        told = new.angarium(*rename, user="admin", password=password)
        assert "Restored 4 records of backup 1" in told
        run(look())
