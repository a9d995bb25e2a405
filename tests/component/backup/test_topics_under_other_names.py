"""A topic of a backup comes back under another name, beside the one that goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.on_a_loop import on_a_loop

from angarium import Client
from angarium.backup.creating import Creation
from angarium.backup.folder import FolderStore
from angarium.backup.restoring import Restoration
from angarium.errors import AlreadyExists, InvalidArgument, NotFound
from angarium.testing.broker import in_process_broker

if TYPE_CHECKING:
    from pathlib import Path


async def _taken(client: Client, topic: str, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    async with client.group("billing").consume(topic) as records:
        async for record in records:
            found.append(record.value)
            await record.ack()
            if len(found) == count:
                break
    return found


@on_a_loop
async def test_it_has_its_records_and_groups_and_the_other_one_is_not_touched(
    tmp_path: Path,
) -> None:
    async with in_process_broker(tmp_path / "node") as broker, Client(*broker.addresses) as client:
        await client.create_topic("orders")
        await client.create_topic("returns")
        for value in (b"1", b"2", b"3"):
            await client.publish("orders", value)
        assert await _taken(client, "orders", 1) == [b"1"]
        store = FolderStore(tmp_path / "kept")
        await Creation(client, store).run()
        await client.publish("orders", b"4")
        assert await _taken(client, "orders", 3) == [b"2", b"3", b"4"]

        with pytest.raises(AlreadyExists, match="orders"):
            await Restoration(client, store, only={"orders": "orders"}).run()
        with pytest.raises(NotFound, match="'none'"):
            await Restoration(client, store, only={"none": "then"}).run()
        with pytest.raises(InvalidArgument, match="under one name"):
            await Restoration(client, store, only={"orders": "then", "returns": "then"}).run()
        await Restoration(client, store, only={"orders": "then"}).run()
        await Restoration(client, store, only={"orders": "then"}, resume=True).run()
        assert [one.value async for one in client.read("then")] == [b"1", b"2", b"3"]
        assert [one.value async for one in client.read("orders")] == [b"1", b"2", b"3", b"4"]
        assert await _taken(client, "then", 2) == [b"2", b"3"]
        assert {one.name for one in await client.list_topics()} == {"orders", "returns", "then"}
