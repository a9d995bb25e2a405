"""A backup does not build on files of earlier ones that are gone, and leaves none of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.on_a_loop import on_a_loop

from angarium import Client
from angarium.backup.creating import Creation
from angarium.backup.folder import FolderStore
from angarium.backup.manifest import manifest_name
from angarium.backup.verifying import verified
from angarium.testing.broker import in_process_broker

if TYPE_CHECKING:
    from pathlib import Path


@on_a_loop
async def test_what_is_gone_is_copied_anew(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "kept")
    async with in_process_broker(tmp_path / "node") as broker, Client(*broker.addresses) as client:
        await client.create_topic("orders", partitions=2)
        for number in range(10):
            await client.publish("orders", b"%d" % number, partition=number % 2)
        first = await Creation(client, store).run()
        gone, kept = (one.files[0] for one in first.topics[0].partitions)
        store.delete(gone.name)
        second = await Creation(client, store).run()
    assert second.topics[0].partitions[1].files == (kept,)
    assert second.topics[0].partitions[0].files[0].name != gone.name
    assert verified(store, 2, told=lambda *_: None)[1] == []
    assert verified(store, 1, told=lambda *_: None)[1] == [f"{gone.name} is missing"]


@on_a_loop
async def test_nothing_is_left_of_a_run_that_failed_at_the_last_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderStore(tmp_path / "kept")
    created = FolderStore.create

    def failing(of: FolderStore, name: str, data: bytes) -> None:
        if name == manifest_name(1):
            raise OSError("the disk is full")
        created(of, name, data)

    async with in_process_broker(tmp_path / "node") as broker, Client(*broker.addresses) as client:
        await client.create_topic("orders")
        await client.publish("orders", b"1")
        monkeypatch.setattr(FolderStore, "create", failing)
        with pytest.raises(OSError, match="full"):
            await Creation(client, store).run()
        monkeypatch.setattr(FolderStore, "create", created)
        manifest = await Creation(client, store).run()
    listed = [manifest_name(1), "lock", *(one.name for one in manifest.files())]
    assert store.names("") == sorted(listed)
