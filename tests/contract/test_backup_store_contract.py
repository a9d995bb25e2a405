"""One suite for every place where backups lie: a folder, and an object store over HTTP."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeAlias

import pytest
from tests.object_server import fresh_place, object_server
from tests.unit.backup.memory_store import MemoryStore

from angarium.backup import lease, objects
from angarium.backup.folder import FolderStore
from angarium.backup.objects import ObjectStore
from angarium.backup.s3_settings import s3_settings
from angarium.errors import AlreadyExists, NotFound, PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from angarium.backup.store import BackupStore

    Places: TypeAlias = Callable[[], BackupStore]
    """Each call returns the same place, as another process would open it."""


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    with object_server() as environment:
        yield environment


@pytest.fixture(params=["memory", "folder", "objects", "objects without conditions"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Places:
    if request.param == "memory":
        only = MemoryStore()
        return lambda: only
    if request.param == "folder":
        return lambda: FolderStore(tmp_path / "backups")
    server = request.getfixturevalue("server")
    settings = s3_settings(fresh_place(server["BUCKET"]), server, home=tmp_path)
    if request.param != "objects":
        monkeypatch = request.getfixturevalue("monkeypatch")
        monkeypatch.setenv("AWS_CONDITIONAL_PUT", "disabled")
    return lambda: ObjectStore(settings)


def test_what_is_written_is_there_for_everybody_and_can_be_replaced(places: Places) -> None:
    store = places()
    assert store.names("records") == []
    store.write("records/1/b", b"old")
    store.write("records/1/b", b"new")
    store.write("records/1/a", b"a")
    store.write("recordsandmore/c", b"c")
    other = places()
    assert other.read("records/1/b") == b"new"
    assert other.read("records/1/a") == b"a"
    assert other.names("records") == ["records/1/a", "records/1/b"]
    assert other.names("records/1") == ["records/1/a", "records/1/b"]
    assert other.names("record") == []


def test_what_is_not_there_is_named(places: Places) -> None:
    with pytest.raises(NotFound, match="records/none is not there"):
        places().read("records/none")


def test_names_of_topics_are_names(places: Places) -> None:
    store = places()
    names = sorted(f"records/000001/{one}-0-1.batches" for one in ("a.b", "a_b", "A-b", "x" * 200))
    for one in names:
        store.write(one, one.encode())
    assert store.names("records") == names
    assert [store.read(one) for one in names] == [one.encode() for one in names]


def test_a_name_is_created_once_and_by_one_alone(places: Places) -> None:
    store, other = places(), places()
    store.create("backups/1", b"mine")
    store.create("backups/1", b"mine")  # an attempt whose answer was lost
    with pytest.raises(AlreadyExists, match="backups/1"):
        other.create("backups/1", b"another's")
    assert other.read("backups/1") == b"mine"
    assert store.names("backups") == ["backups/1"]


def test_what_is_deleted_is_gone_and_may_be_deleted_again(places: Places) -> None:
    store = places()
    for one in ("a", "b", "c"):
        store.write(f"records/{one}", b"x")
    store.delete("records/a", "records/none", "records/c")
    store.delete("records/a")
    store.delete()
    assert store.names("records") == ["records/b"]


def test_what_is_larger_than_a_part_comes_back_as_it_was(places: Places) -> None:
    store = places()
    data = bytes(range(256)) * ((objects.PART_BYTES * 2 + 4_096) // 256)
    store.write("records/large", data)
    assert store.read("records/large") == data
    store.create("backups/large", data)
    assert store.read("backups/large") == data


@pytest.mark.parametrize("places", ["folder", "objects"], indirect=True)
def test_of_many_who_create_a_name_at_once_one_does(places: Places) -> None:
    stores = [places() for _ in range(8)]
    begin = threading.Barrier(len(stores))
    won: list[int] = []

    def create(number: int) -> None:
        begin.wait()
        try:
            stores[number].create("backups/1", b"%d" % number)
            won.append(number)
        except AlreadyExists:
            pass

    threads = [threading.Thread(target=create, args=(one,)) for one in range(len(stores))]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert [b"%d" % one for one in won] == [places().read("backups/1")]


@pytest.mark.parametrize("places", ["folder", "objects"], indirect=True)
def test_a_second_writer_is_kept_out_until_the_first_has_ended(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "BEAT_S", 0.05)
    monkeypatch.setattr(lease, "LOOK_S", 0.05)
    store, other = places(), places().locked()
    with store.locked(), pytest.raises(PreconditionFailed, match="another process"), other:
        pass
    with store.locked():
        pass


@pytest.mark.parametrize("places", ["objects", "objects without conditions"], indirect=True)
def test_a_writer_that_was_killed_keeps_nobody_out_for_long(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "WATCH_S", 0.3)
    monkeypatch.setattr(lease, "LOOK_S", 0.05)
    places().write(lease.LEASE, b"somebody who is gone 17\n")
    with places().locked():
        assert not places().read(lease.LEASE).startswith(b"somebody")


@pytest.mark.parametrize("places", ["objects"], indirect=True)
def test_who_lost_the_lease_to_another_leaves_it_alone(places: Places) -> None:
    with places().locked():
        places().write(lease.LEASE, b"another 1\n")
    assert places().read(lease.LEASE) == b"another 1\n"


@pytest.mark.parametrize("places", ["objects"], indirect=True)
def test_long_lists_are_told_and_deleted_page_by_page(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "LISTED_AT_ONCE", 7)
    monkeypatch.setattr(objects, "DELETED_AT_ONCE", 10)
    store = places()
    names = [f"records/{number:03d}" for number in range(25)]
    for one in names:
        store.write(one, b"x")
    assert store.names("records") == names
    store.delete(*names[1:])
    assert store.names("records") == names[:1]


def test_a_bucket_that_is_not_there_is_named(server: dict[str, str], tmp_path: Path) -> None:
    store = ObjectStore(s3_settings("s3://no-such-bucket", server, home=tmp_path))
    for ask in (lambda: store.names("backups"), lambda: store.read("backups/1")):
        with pytest.raises(NotFound, match="no-such-bucket"):
            ask()
