"""Backups in an object store, on a road where things happen: nothing half, nothing unnoticed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.object_server import Road, environment, fresh_place, object_server
from tests.on_a_loop import on_a_loop

from angarium import Client
from angarium.backup import copying, creating, objects
from angarium.backup.creating import Creation
from angarium.backup.manifest import UNFINISHED, Manifest, decoded, loaded, manifest_name, numbers
from angarium.backup.objects import ObjectStore
from angarium.backup.restoring import Restoration
from angarium.backup.s3_settings import s3_settings
from angarium.backup.verifying import verified
from angarium.errors import AlreadyExists, PreconditionFailed, StorageError
from angarium.testing.broker import in_process_broker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    with object_server() as environment:
        yield environment


@pytest.fixture
def road(server: dict[str, str]) -> Iterator[Road]:
    with Road(server["AWS_ENDPOINT_URL"]) as road:
        yield road


@pytest.fixture
def store(
    server: dict[str, str], road: Road, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ObjectStore:
    """A store at the end of the road; one that gives up soon."""
    monkeypatch.setattr(objects, "PAUSE_S", 0.01)
    monkeypatch.setattr(objects, "RETRIES", 2)
    known = {**server, "AWS_ENDPOINT_URL": road.endpoint}
    return ObjectStore(s3_settings(fresh_place(server["BUCKET"]), known, home=tmp_path))


def _once(what: str, *, on: str) -> Callable[[str], str | None]:
    """Have it happen to the first request whose line holds `on`."""
    left = [what]
    return lambda line: left.pop() if left and on in line else None


LARGE = bytes(range(256)) * (objects.PART_BYTES // 128)
"""Two parts."""


@pytest.mark.parametrize("what", ["503", "reset", "lost"])
@pytest.mark.parametrize("size", [100, len(LARGE)])
def test_a_write_that_meets_something_once_is_made(
    store: ObjectStore, road: Road, what: str, size: int
) -> None:
    road.mishap = _once(what, on="PUT")
    store.write("records/x", LARGE[:size])
    assert store.read("records/x") == LARGE[:size]


@pytest.mark.parametrize("what", ["503", "reset", "lost"])
@pytest.mark.parametrize("data", [b"1", b"mine"])  # nothing arrives of the half of one byte
def test_a_name_whose_creation_was_not_answered_is_known_for_ones_own(
    store: ObjectStore, road: Road, what: str, data: bytes
) -> None:
    road.mishap = _once(what, on="PUT")
    store.create("backups/1", data)
    with pytest.raises(AlreadyExists):
        store.create("backups/1", b"another's")
    assert store.read("backups/1") == data


def test_an_object_whose_bytes_never_came_is_not_there(store: ObjectStore, road: Road) -> None:
    road.mishap = lambda line: "reset" if "PUT" in line else None
    with pytest.raises(StorageError):
        store.create("backups/1", b"1")
    road.mishap = lambda _: None
    assert store.names("backups") == []
    store.create("backups/1", b"another's")
    assert store.names("backups") == ["backups/1"]


@pytest.mark.parametrize("what", ["503", "cut"])
def test_an_answer_that_breaks_off_is_asked_for_again(
    store: ObjectStore, road: Road, what: str
) -> None:
    store.write("records/x", LARGE)
    road.mishap = _once(what, on="GET")
    assert store.read("records/x") == LARGE


@pytest.mark.parametrize("what", ["503", "reset"])
def test_a_store_that_fails_for_good_is_named_and_no_secret_told(
    store: ObjectStore, road: Road, what: str
) -> None:
    road.mishap = lambda line: what if "PUT" in line else None
    for data in (b"x", LARGE):
        with pytest.raises(StorageError, match=r"s3://.*records/x") as raised:
            store.write("records/x", data)
        assert not any(secret in str(raised.value) for secret in environment("").values() if secret)
    assert store.names("records") == []


def _put(road: Road, what: str, *, on: str, after: int) -> None:
    """Have it happen for ever, once so many such requests went through."""
    seen = 0

    def mishap(line: str) -> str | None:
        nonlocal seen
        seen += line.startswith("PUT") and on in line
        return what if line.startswith("PUT") and on in line and seen > after else None

    road.mishap = mishap


async def _filled(client: Client, count: int) -> None:
    for number in range(count):
        await client.publish("orders", b"%d" % number * 100, partition=number % 2)


@on_a_loop
async def test_backups_of_a_store_that_comes_and_goes_are_whole_or_nothing(
    store: ObjectStore, road: Road, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "FILE_BYTES", 1_500)
    monkeypatch.setattr(creating, "NOTE_S", 0.0)
    async with in_process_broker(tmp_path / "old") as broker, Client(*broker.addresses) as client:
        await client.create_topic("orders", partitions=2)
        await _filled(client, 60)
        _put(road, "reset", on="/records/", after=1)
        with pytest.raises(StorageError):
            await Creation(client, store).run()
        road.mishap = lambda _: None
        assert numbers(store) == []
        noted = decoded(store.read(UNFINISHED), Manifest, name=UNFINISHED).files()
        _put(road, "503", on="/backups/0", after=0)  # all but the manifest
        with pytest.raises(StorageError):
            await Creation(client, store).run()
        assert numbers(store) == []
        _lost = _once("lost", on="/backups/0")
        road.mishap = lambda line: _lost(line) if line.startswith("PUT") else None
        first = await Creation(client, store).run()
        assert noted, "something was noted before it failed"
        assert all(one in first.files() for one in noted), "and was not copied again"
        assert sorted(store.names("records")) == sorted(
            one.name for one in first.files() if one.name.startswith("records/")
        ), "nothing is left of what failed"
        await _filled(client, 20)
        second = await Creation(client, store).run()
        assert 0 < second.new_bytes < second.bytes
    manifest, faults = verified(store, None, told=lambda *_: None)
    assert (manifest.number, manifest.records, faults) == (2, 80, [])
    async with in_process_broker(tmp_path / "new") as broker, Client(*broker.addresses) as client:
        _cut = _once("cut", on="/records/")
        road.mishap = lambda line: _cut(line) if line.startswith("GET") else None
        await Restoration(client, store).run()
        found = [one.value async for one in client.read("orders")]
        assert len(found) == 80


@on_a_loop
async def test_of_two_backups_at_once_one_counts_and_is_whole(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the first was stopped for so long that the second took it for gone."""
    async with in_process_broker(tmp_path / "node") as broker, Client(*broker.addresses) as client:
        await client.create_topic("orders", partitions=2)
        await _filled(client, 10)
        copied = Creation._copy

        async def copy_and_be_overtaken(creation: Creation) -> None:
            await copied(creation)
            monkeypatch.setattr(Creation, "_copy", copied)
            store.delete("lock")
            await _filled(client, 10)
            await Creation(client, store).run()
            await _filled(client, 10)

        monkeypatch.setattr(Creation, "_copy", copy_and_be_overtaken)
        with pytest.raises(PreconditionFailed, match="another process has finished backup 1"):
            await Creation(client, store).run()
        manifest, faults = verified(store, None, told=lambda *_: None)
        assert (manifest.number, manifest.records, faults) == (1, 20, [])
        assert (await Creation(client, store).run()).records == 30


@on_a_loop
async def test_every_object_that_is_changed_or_gone_is_named(
    store: ObjectStore, road: Road, tmp_path: Path
) -> None:
    async with in_process_broker(tmp_path / "node") as broker, Client(*broker.addresses) as client:
        await client.create_topic("orders", partitions=2)
        await _filled(client, 10)
        await Creation(client, store).run()

    def faults() -> list[str]:
        return verified(store, None, told=lambda *_: None)[1]

    assert faults() == []
    for one in loaded(store).files():
        whole = store.read(one.name)
        store.write(one.name, whole[:-1] + bytes([whole[-1] ^ 1]))
        assert [one.name in fault for fault in faults()] == [True]
        store.write(one.name, whole[:-1])
        assert [one.name in fault for fault in faults()] == [True]
        store.delete(one.name)
        assert [one.name in fault for fault in faults()] == [True]
        store.write(one.name, whole)
        # On the way, where nothing but a checksum of our own would notice.
        road.mishap = lambda line, name=one.name: (  # type: ignore[misc]
            "flip" if line.startswith("GET") and name in line else None
        )
        assert [one.name in fault for fault in faults()] == [True]
        road.mishap = lambda _: None
    assert manifest_name(1) in store.names("backups")
    assert faults() == []


@on_a_loop
async def test_a_store_that_does_not_answer_is_no_fault_of_the_backup(
    store: ObjectStore, road: Road, tmp_path: Path
) -> None:
    async with in_process_broker(tmp_path / "node") as broker, Client(*broker.addresses) as client:
        await client.create_topic("orders", partitions=2)
        await _filled(client, 4)
        await Creation(client, store).run()
    road.mishap = lambda line: "503" if "/records/" in line else None
    with pytest.raises(StorageError, match="503"):
        verified(store, None, told=lambda *_: None)
