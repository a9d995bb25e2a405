"""What a node makes in its data folder is its own user's, whatever the umask."""

from __future__ import annotations

import os
import stat
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.on_a_loop import eventually, on_a_loop

from angarium.api import TopicConfig
from angarium.app.composition import NodePart, parts
from angarium.app.invitations import invite
from angarium.app.settings import ListenSettings, NodeSettings, Settings
from angarium.cli.local.folder import Folder
from angarium.log.folder_modes import make_private
from angarium.log.os_disk import OsDisk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    """Return what lies in a folder, itself included, that others may touch, with its mode."""
    found = [folder, *folder.rglob("*")]
    assert len(found) > 1
    return {
        str(one.relative_to(folder)): oct(mode)
        for one in found
        if (mode := stat.S_IMODE(one.stat().st_mode)) != (0o700 if one.is_dir() else 0o600)
    }


class _Signals:
    def fail(self, failure: BaseException) -> None:
        raise failure


@asynccontextmanager
async def node(data: Path) -> AsyncIterator[NodePart]:
    listen = ListenSettings(wire_port=0, grpc_port=None, http_port=None)
    settings = Settings(node=NodeSettings(data=data, form=True), listen=listen)
    signals: Any = _Signals()
    running_node: NodePart
    async with AsyncExitStack() as running:
        for part in parts(settings, signals):
            running.push_async_callback(part.stop)
            await part.start()
            if isinstance(part, NodePart):
                running_node = part
        await eventually(lambda: running_node.node.catalog.is_here)
        await eventually(lambda: not running_node.node.readiness.reasons())
        yield running_node


async def notes(part: NodePart) -> list[str]:
    told = await part.service.upgrading.describe_upgrade()
    return [one for one in told.remarks if "data folder" in one]


@on_a_loop
async def test_a_node_makes_what_its_user_alone_may_read(tmp_path: Path) -> None:
    data = tmp_path / "angarium" / "data"
    async with node(data) as part:
        await part.service.create_topic("orders", partitions=1, config=TopicConfig())
        assert await notes(part) == []
    assert modes(data.parent) == {}


@on_a_loop
async def test_a_folder_that_others_may_enter_is_left_alone_and_noted(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    async with node(data) as part:
        (note,) = await notes(part)
        assert "node 1 (mode 0755)" in note
        assert "chmod 700" in note
        assert stat.S_IMODE(data.stat().st_mode) == 0o755
        # New ones in it are private all the same.
        assert set(modes(data)) == {"."}
        data.chmod(0o700)
        assert await notes(part) == []


def test_a_disk_makes_private_folders_and_files(tmp_path: Path) -> None:
    disk = OsDisk(tmp_path / "a" / "b")
    disk.make_folder("c/d")
    disk.create("c/d/e").close()
    disk.lock().release()
    assert modes(tmp_path / "a") == {}


def test_a_folder_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o770)
    make_private(shared / "a" / "b")
    make_private(shared)
    assert modes(shared) == {".": "0o770"}


def test_what_lies_beside_a_local_cluster_is_private(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "local")
    descriptor = folder.lock()
    assert descriptor is not None
    invite(folder.data(1), [folder.path / "node-2.join-token"])
    os.close(descriptor)
    assert modes(folder.path) == {}
