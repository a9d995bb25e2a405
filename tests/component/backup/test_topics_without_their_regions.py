"""Topics that lived in regions come back into a cluster that has none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from tests.on_a_loop import on_a_loop

from angarium import Client, TopicConfig
from angarium.api.settings import level_of, settings_of
from angarium.api.topics import ABOUT_REGIONS
from angarium.backup import restoring
from angarium.backup.creating import Creation
from angarium.backup.folder import FolderStore
from angarium.backup.manifest import loaded
from angarium.backup.restoring import Restoration
from angarium.errors import PreconditionFailed
from angarium.testing.broker import in_process_broker

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.backup.manifest import Manifest
    from angarium.backup.store import BackupStore

WITNESSED = TopicConfig(replication=2, regions=("eu", "us"), witness=("tie",), retention_ms=10**9)


@on_a_loop
async def test_a_topic_with_a_witness_comes_back_without_its_regions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_in_regions(store: BackupStore, number: int | None) -> Manifest:
        """Return the backup as one of a cluster with regions has it."""
        manifest = loaded(store, number)
        topics = tuple(replace(one, config=WITNESSED) for one in manifest.topics)
        return replace(manifest, topics=topics)

    async with in_process_broker(tmp_path / "node") as broker, Client(*broker.addresses) as client:
        await client.create_topic("orders")
        await client.publish("orders", b"1")
        store = FolderStore(tmp_path / "kept")
        await Creation(client, store).run()
        await client.delete_topic("orders")
        monkeypatch.setattr(restoring, "loaded", as_in_regions)
        with pytest.raises(PreconditionFailed):
            await Restoration(client, store).run()
        await Restoration(client, store, replication=1, with_regions=False).run()
        assert [one.value async for one in client.read("orders")] == [b"1"]
        config = (await client.describe_topic("orders")).config
        assert config == TopicConfig(replication=1, retention_ms=10**9)


def test_nothing_that_topics_say_about_regions_is_forgotten() -> None:
    usual = TopicConfig()
    newer = {one.name for one in settings_of(TopicConfig) if one.about.level > level_of(usual)}
    assert newer == set(ABOUT_REGIONS)
