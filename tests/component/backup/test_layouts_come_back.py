"""Topics that were given partitions: a restored one keeps the order of keys across the addition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from tests.on_a_loop import on_a_loop

from angarium import Client, TopicConfig
from angarium.backup import restoring
from angarium.backup.creating import Creation
from angarium.backup.folder import FolderStore
from angarium.backup.restoring import Restoration
from angarium.backup.verifying import verified
from angarium.errors import PreconditionFailed
from angarium.testing.broker import in_process_broker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from angarium.api import ClusterStatus, TopicInfo
    from angarium.backup.creating import Progress

KEYS = 12
ROUNDS = 6
"""Records of each key in each layout."""


class Killed(Exception):
    """Stands for the end of the process that restores."""


async def _publish(client: Client, layout: int) -> None:
    for number in range(ROUNDS):
        for key in range(KEYS):
            value = b"%d" % (layout * ROUNDS + number)
            await client.publish("orders", value, key=b"key-%d" % key)


async def _settle(client: Client, count: int) -> list[tuple[bytes, int]]:
    """Have the group settle some records; return their keys and values."""
    found: list[tuple[bytes, int]] = []
    async with client.group("billing").consume("orders") as records:
        async for record in records:
            found.append((record.key or b"", int(record.value or b"")))
            await record.ack()
            if len(found) == count:
                break
    return found


async def _grown(client: Client) -> TopicInfo:
    """Make a topic with three layouts, and records of each; return it."""
    await client.create_topic("orders", partitions=2)
    await _publish(client, 0)
    await client.alter_topic("orders", partitions=4)
    await _publish(client, 1)
    await client.alter_topic("orders", partitions=5)
    await _publish(client, 2)
    return await client.describe_topic("orders")


def _said(info: TopicInfo) -> tuple[object, ...]:
    return info.layouts, info.layout, [one.fences for one in info.partitions]


def _assert_in_order(found: list[tuple[bytes, int]]) -> None:
    for key in {key for key, _ in found}:
        values = [value for one, value in found if one == key]
        assert values == sorted(values), key


def _killed_after(requests: int) -> Callable[[Progress], None]:
    heard = 0

    def told(_: Progress) -> None:
        nonlocal heard
        heard += 1
        if heard == requests:
            raise Killed

    return told


@on_a_loop
async def test_keys_are_in_order_for_who_goes_on_and_for_who_begins_anew(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "kept")
    async with in_process_broker(tmp_path / "old") as broker, Client(*broker.addresses) as client:
        await client.create_topic("quiet")
        await client.alter_topic("quiet", partitions=3)
        before = await _grown(client)
        settled = await _settle(client, 20)
        quiet = await client.describe_topic("quiet")
        await Creation(client, store).run()
        await Creation(client, store).run()
    assert _said(before)[:2] == ((2, 4, 5), 2)
    assert verified(store, None, told=lambda *_: None)[1] == []
    async with (
        in_process_broker(tmp_path / "new", nodes=3, tick_ms=20) as broker,
        Client(*broker.addresses) as client,
    ):
        await Restoration(client, store).run()
        assert _said(await client.describe_topic("orders")) == _said(before)
        assert _said(await client.describe_topic("quiet")) == _said(quiet)
        await _publish(client, 3)
        everything = KEYS * ROUNDS * 4
        anew: list[tuple[bytes, int]] = []
        async with client.subscribe("orders", start="earliest") as records:
            async for record in records:
                anew.append((record.key or b"", int(record.value or b"")))
                if len(anew) == everything:
                    break
        _assert_in_order(anew)
        assert len(set(anew)) == everything
        rest = await _settle(client, everything - len(settled))
        assert not set(rest) & set(settled)
        _assert_in_order(settled + rest)


@on_a_loop
async def test_a_restore_that_is_killed_anywhere_goes_on_to_the_same_fences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restoring, "REQUEST_BYTES", 1_500)
    store = FolderStore(tmp_path / "kept")
    async with in_process_broker(tmp_path / "old") as broker, Client(*broker.addresses) as client:
        before = await _grown(client)
        await Creation(client, store).run()
    async with in_process_broker(tmp_path / "new") as broker, Client(*broker.addresses) as client:
        for requests in (1, 2, 3, 5, 8):
            told = _killed_after(requests)
            with pytest.raises(Killed):
                await Restoration(client, store, resume=True, told=told).run()
        await Restoration(client, store, resume=True).run()
        await Restoration(client, store, resume=True).run()
        after = await client.describe_topic("orders")
        assert _said(after) == _said(before)
        assert [one.end_offset for one in after.partitions] == [
            one.end_offset for one in before.partitions
        ]


@on_a_loop
async def test_what_was_trimmed_before_the_fences_changes_nothing(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "kept")
    async with in_process_broker(tmp_path / "old") as broker, Client(*broker.addresses) as client:
        await client.create_topic("orders", partitions=2, config=TopicConfig(retention_bytes=1))
        await client.alter_topic("orders", partitions=3)
        before = await client.describe_topic("orders")
        await Creation(client, store).run()
    async with in_process_broker(tmp_path / "new") as broker, Client(*broker.addresses) as client:
        await Restoration(client, store).run()
        assert _said(await client.describe_topic("orders")) == _said(before)


@on_a_loop
async def test_partitions_that_are_added_meanwhile_are_in_it_behind_their_fences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copied before the fence, so that nothing behind it is there: the fence is where it ends."""
    store = FolderStore(tmp_path / "kept")
    async with in_process_broker(tmp_path / "old") as broker, Client(*broker.addresses) as client:
        await client.create_topic("orders", partitions=2)
        await _publish(client, 0)
        hidden = Creation._hidden

        async def grow(creation: Creation) -> int | None:
            await client.alter_topic("orders", partitions=4)
            await _publish(client, 1)
            return await hidden(creation)

        monkeypatch.setattr(Creation, "_hidden", grow)
        (topic,) = (await Creation(client, store).run()).topics
    assert topic.layouts == (2, 4)
    assert [(one.end, one.fences) for one in topic.partitions] == [
        *[(one.end, (one.end,)) for one in topic.partitions[:2]],
        *[(0, ()), (0, ())],
    ]
    async with in_process_broker(tmp_path / "new") as broker, Client(*broker.addresses) as client:
        await Restoration(client, store).run()
        info = await client.describe_topic("orders")
        assert (info.layouts, info.layout) == ((2, 4), 1)


@on_a_loop
async def test_a_cluster_that_knows_no_layouts_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderStore(tmp_path / "kept")
    async with in_process_broker(tmp_path / "node") as broker, Client(*broker.addresses) as client:
        await client.create_topic("orders")
        await client.create_topic("quiet")
        await client.alter_topic("orders", partitions=2)
        await Creation(client, store).run()
        await client.delete_topic("orders")
        status = await client.cluster_status()

        async def earlier() -> ClusterStatus:
            return replace(status, feature_level=5)

        monkeypatch.setattr(client, "cluster_status", earlier)
        with pytest.raises(PreconditionFailed, match=r"orders got partitions.*feature level 6"):
            await Restoration(client, store, only={"orders": "orders"}).run()
        assert [one.name for one in await client.list_topics()] == ["quiet"]
        await Restoration(client, store, only={"quiet": "then"}).run()
