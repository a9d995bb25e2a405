"""A backup of a cluster in which topics are made while it is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.on_a_loop import on_a_loop

from angarium.backup.creating import Creation
from angarium.backup.folder import FolderStore
from angarium.client import Client
from angarium.testing.broker import in_process_broker

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


@on_a_loop
async def test_what_was_made_before_positions_were_read_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a dead letter's topic may be, whose record counts as settled by then."""
    async with in_process_broker(tmp_path / "node") as broker, Client(*broker.addresses) as client:
        await client.create_topic("orders")
        await client.publish("orders", b"1")
        copied = Creation._copy

        async def copy_and_make(creation: Creation) -> None:
            await copied(creation)
            monkeypatch.setattr(Creation, "_copy", copied)
            await client.create_topic("letters")
            await client.publish("letters", b"2")
            await client.alter_topic("orders", partitions=2)

        monkeypatch.setattr(Creation, "_copy", copy_and_make)
        manifest = await Creation(client, FolderStore(tmp_path / "kept")).run()
        found = {one.name: [part.end for part in one.partitions] for one in manifest.topics}
        assert found == {"letters": [1], "orders": [1, 0]}
