"""Backups in a folder: nothing half, and nothing for others to read."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from angarium.backup.store import PARTIAL, FolderStore, store_at
from angarium.errors import InvalidArgument, NotFound, PreconditionFailed

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_is_there_whole_and_its_owners_alone(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "a" / "b")
    store.write("records/1/x", b"old")
    store.write("records/1/x", b"new")
    assert store.read("records/1/x") == b"new"
    assert store.size("records/1/x") == 3
    for one in [tmp_path / "a" / "b", *(tmp_path / "a" / "b").rglob("*")]:
        assert stat.S_IMODE(one.stat().st_mode) == (0o700 if one.is_dir() else 0o600)


def test_what_was_being_written_when_the_machine_stopped_is_nothing(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.write("records/x", b"x")
    (tmp_path / "records" / f"y{PARTIAL}").write_bytes(b"ha")
    assert store.names("records") == ["records/x"]
    with pytest.raises(NotFound, match="records/y"):
        store.read("records/y")
    store.write("records/y", b"y")
    assert store.names("records") == ["records/x", "records/y"]
    store.delete("records/x")
    store.delete("records/x")
    assert store.names("records") == ["records/y"]
    assert store.names("nowhere") == []


def test_two_processes_do_not_write_a_backup_at_once(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "new")
    other = FolderStore(tmp_path / "new").locked()
    with store.locked(), pytest.raises(PreconditionFailed, match="another process"), other:
        pass
    with store.locked():
        pass


def test_a_place_that_is_no_folder_is_refused_with_a_sentence(tmp_path: Path) -> None:
    assert str(store_at(f"file://{tmp_path}")) == str(tmp_path)
    assert str(store_at("backups")) == "backups"
    with pytest.raises(InvalidArgument, match="mount the object store"):
        store_at("s3://bucket/backups")
