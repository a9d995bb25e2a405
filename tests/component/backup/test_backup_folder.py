"""Backups in a folder: nothing half, and nothing for others to read."""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import TYPE_CHECKING

import pytest

from angarium.backup.folder import PARTIAL, FolderStore
from angarium.backup.store import store_at
from angarium.errors import AlreadyExists, InvalidArgument, NotFound, PreconditionFailed

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_is_its_owners_alone(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "a" / "b")
    store.write("records/1/x", b"new")
    store.create("backups/1", b"new")
    for one in [tmp_path / "a" / "b", *(tmp_path / "a" / "b").rglob("*")]:
        assert stat.S_IMODE(one.stat().st_mode) == (0o700 if one.is_dir() else 0o600)


def test_what_was_being_written_when_the_machine_stopped_is_nothing(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.write("records/x", b"x")
    left = tmp_path / "records" / f"y{PARTIAL}"
    left.write_bytes(b"ha")
    assert store.names("records") == ["records/x"]
    with pytest.raises(NotFound, match="records/y"):
        store.read("records/y")
    with store.locked():
        assert not left.exists(), "whoever writes next makes room"


def test_a_disk_that_is_full_is_told_and_keeps_nothing_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderStore(tmp_path)
    store.write("records/x", b"x")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    for write in (store.write, store.create):
        with pytest.raises(OSError, match="No space left"):
            write("records/y", b"y")
    assert [one.name for one in (tmp_path / "records").iterdir()] == ["x"]


def test_where_files_have_one_name_only_a_name_is_created_once_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr("pathlib.Path.hardlink_to", refused)
    store = FolderStore(tmp_path)
    store.create("backups/1", b"mine")
    with pytest.raises(AlreadyExists):
        store.create("backups/1", b"another's")
    assert store.read("backups/1") == b"mine"
    assert store.names("") == ["backups/1"]


def test_a_place_is_a_folder_or_an_object_store_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert str(store_at(f"file://{tmp_path}")) == str(tmp_path)
    assert str(store_at("backups")) == "backups"
    assert str(store_at("s3://bucket/some/where/")) == "s3://bucket/some/where"
    with pytest.raises(InvalidArgument, match="s3://BUCKET"):
        store_at("ftp://host/backups")
    monkeypatch.setitem(sys.modules, "angarium.backup.objects", None)
    with pytest.raises(PreconditionFailed, match=r"pip install 'angarium\[object-store\]'"):
        store_at("s3://bucket")
