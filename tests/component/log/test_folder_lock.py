"""A data folder belongs to one process at a time, and to nobody once that process is gone."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from angarium.app.processes import is_new
from angarium.ids import Incarnation, NodeId
from angarium.log import folder_identity
from angarium.log.folder_identity import FolderIdentity
from angarium.log.folder_lock import LOCK_NAME, FolderInUse, lock_folder
from angarium.log.os_disk import OsDisk

if TYPE_CHECKING:
    from pathlib import Path

HOLD = """
import sys
from pathlib import Path
from angarium.log.folder_lock import lock_folder
lock = lock_folder(Path(sys.argv[1]))
print("locked", flush=True)
sys.stdin.read()
"""


def holder_of(folder: Path) -> subprocess.Popen[str]:
    """Return another process that has locked `folder`."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    return process


def test_a_second_process_is_refused_and_told_who_has_the_folder(tmp_path: Path) -> None:
    with holder_of(tmp_path) as process:
        with pytest.raises(FolderInUse) as refused:
            lock_folder(tmp_path)
        process.kill()
    assert f"process {process.pid} on {os.uname().nodename}" in str(refused.value)
    assert "choose another folder" in str(refused.value)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_the_lock_goes_with_its_process(tmp_path: Path, end: signal.Signals) -> None:
    with holder_of(tmp_path) as process:
        process.send_signal(end)
    assert (tmp_path / LOCK_NAME).exists()
    lock_folder(tmp_path).release()


def test_a_folder_that_was_let_go_can_be_had_again(tmp_path: Path) -> None:
    first = lock_folder(tmp_path)
    with pytest.raises(FolderInUse):
        lock_folder(tmp_path)  # not even by the same process
    first.release()
    first.release()
    lock_folder(tmp_path).release()


def test_a_child_that_has_only_been_forked_does_not_keep_what_was_let_go(tmp_path: Path) -> None:
    lock = lock_folder(tmp_path)
    child = os.fork()
    if not child:
        signal.pause()
    try:
        lock.release()
        lock_folder(tmp_path).release()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_child_does_not_inherit_the_lock(tmp_path: Path) -> None:
    lock = lock_folder(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"],
        stdin=subprocess.PIPE,
        close_fds=False,
    ):
        lock.release()
        lock_folder(tmp_path).release()


def test_removing_the_lock_file_of_a_living_process_unlocks_nothing(tmp_path: Path) -> None:
    with holder_of(tmp_path) as process:
        (tmp_path / LOCK_NAME).unlink()
        with pytest.raises(FolderInUse, match="in use by another process"):
            lock_folder(tmp_path)
        process.kill()
    lock_folder(tmp_path).release()


def test_a_file_system_that_locks_no_folders_locks_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock

    def refuse_folders(descriptor: int, operation: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EBADF, "as NFS does where it was opened for reading only")
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", refuse_folders)
    lock = lock_folder(tmp_path)
    assert lock.is_kept
    with pytest.raises(FolderInUse, match=f"process {os.getpid()}"):
        lock_folder(tmp_path)
    lock.release()
    lock_folder(tmp_path).release()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_keeps_nobody_from_working(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    lock = lock_folder(tmp_path)
    assert not lock.is_kept
    lock.release()


def test_a_lock_file_is_no_data(tmp_path: Path) -> None:
    lock_folder(tmp_path).release()
    assert is_new(tmp_path)
    disk = OsDisk(tmp_path)
    assert folder_identity.load(disk) is None
    new = FolderIdentity(cluster_id=7, node_id=NodeId(1), incarnation=Incarnation(9))
    folder_identity.create(disk, new)
    assert folder_identity.load(disk) == new
    assert not is_new(tmp_path)


def test_what_a_stranger_wrote_into_the_lock_file_is_not_repeated(tmp_path: Path) -> None:
    lock = lock_folder(tmp_path)
    (tmp_path / LOCK_NAME).write_bytes(b"\x1b[2J process 1\n")
    with pytest.raises(FolderInUse, match="in use by another process"):
        lock_folder(tmp_path)
    lock.release()
